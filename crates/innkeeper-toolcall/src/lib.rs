//! Everything pure about a model calling a tool, without I/O, clock, threads or randomness.
//!
//! In reading order: [`Tool`] is what a model may call and [`Json`] what it says, with each number
//! as it was written. A [`Family`] is the form in which a model writes its calls; [`prompt`] puts
//! tools into words for models that know none, [`grammar`] keeps local ones to calls that fit.

mod json;
mod tool;

mod family;
mod safe;

pub mod prompt;

pub mod grammar;

pub use family::Family;
pub use json::Json;
pub use tool::{Tool, Tools};

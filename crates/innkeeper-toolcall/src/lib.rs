//! Everything pure about a model calling a tool, without I/O, clock, threads or randomness.
//!
//! In reading order: [`Tool`] is what a model may call and [`Json`] what it says, with each number
//! as it was written. [`Aliases`] are the names by which a provider knows the tools,
//! and [`fit`] puts their schemas into its words.

mod alias;
mod fit;
mod json;
mod tool;

pub use alias::{Aliases, NameRules};
pub use fit::{Change, Dialect, Fitted, Loss, fit, fit_all};
pub use json::Json;
pub use tool::{Tool, Tools};

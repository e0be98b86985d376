//! The formats in which models write calls, as data.

mod table;

pub use table::Format;
pub(crate) use table::{Lexing, Mark, Marker};

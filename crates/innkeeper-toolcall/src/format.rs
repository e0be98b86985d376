//! The call formats of models, as data.

mod table;

pub use table::Format;
pub(crate) use table::{LexerKind, Marker, MarkerKind};

//! The call formats of models, as data.

mod markers;
mod table;

pub use table::Format;
pub(crate) use table::{GemmaTokens, LexerKind, Marker, MarkerKind};

//! Text for terminals: escaped, wrapped, shortened.

mod escape;
mod wrap;

pub(crate) use escape::{block as escape_block, escape_inline, is_deceptive};
pub(crate) use wrap::{shorten, wrap, wrap_message};

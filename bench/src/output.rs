//! The part of the command-line program's output module that its log requires.

mod escape;

pub(crate) use escape::{escape_inline, is_deceptive};

//! The part of the command-line program's text module that its log requires.

mod escape;

pub(crate) use escape::{escape_inline, is_deceptive};

/// Returns the text unchanged: the benchmark programs log JSON lines, which are never wrapped.
pub(crate) fn wrap_message(text: &str, _columns: Option<usize>) -> String {
    text.to_owned()
}

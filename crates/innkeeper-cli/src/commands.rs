//! The verbs: each takes its arguments, does its work, and prints.

mod completions;
mod import;

pub(crate) use completions::completions;
pub(crate) use import::import;

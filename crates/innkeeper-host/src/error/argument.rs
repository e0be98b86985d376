//! A problem with one argument.

use std::fmt;

use serde::Serialize;

/// A part of the arguments that does not match the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArgumentProblem {
    /// JSON pointer into the arguments; empty for the whole object.
    pub pointer: String,
    /// Description of the problem.
    pub message: String,
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "`{}`: {}", self.pointer, self.message)
        }
    }
}

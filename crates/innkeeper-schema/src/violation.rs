//! A violation of a schema.

use std::fmt;

use serde::Serialize;

use crate::quote::quote;

/// Maximum length of a reported pointer in bytes, because names in a value can be as long as the
/// value.
pub(crate) const MAX_POINTER_BYTES: usize = 1 << 10;

/// A part of a value that violates the schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Violation {
    /// JSON pointer of the part; empty for the whole value.
    pub pointer: String,
    /// Description of the violation, without the part.
    pub message: String,
}

impl Violation {
    /// Creates a violation. Of a pointer of more than 1 KiB, the end is left out.
    pub fn new(mut pointer: String, message: String) -> Self {
        if pointer.len() > MAX_POINTER_BYTES {
            pointer.truncate(pointer.floor_char_boundary(MAX_POINTER_BYTES));
            pointer.push('…');
            pointer.shrink_to_fit();
        }
        Self { pointer, message }
    }

    /// Creates a violation of the whole value.
    pub fn of_whole_value(message: String) -> Self {
        Self { pointer: String::new(), message }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "{}: {}", quote(&self.pointer), self.message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_at_the_limit_is_whole_and_of_a_longer_one_the_end_is_left_out() {
        let longest = "x".repeat(MAX_POINTER_BYTES);
        assert_eq!(Violation::new(longest.clone(), String::new()).pointer, longest);
        let longer = Violation::new(format!("{longest}y"), String::new());
        assert_eq!(longer.pointer, format!("{longest}…"));
    }
}

//! Values that print as a mask or as written by the user.

mod mask;

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// Text in place of a secret.
pub(super) const MASK: &str = "***";

/// A value that is never printed: an environment value or a header.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Wraps `value` so that it is never printed.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns the value, for the code that uses it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// A value after expansion of `${…}` that prints as the user wrote it.
///
/// Messages quote the text of the file; values of variables are never printed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ExpandedValue<T = String> {
    value: T,
    written: String,
}

impl<T> ExpandedValue<T> {
    /// Pairs a value with its text in the file.
    pub fn new(value: T, source_text: impl Into<String>) -> Self {
        Self { value, written: source_text.into() }
    }

    /// Returns the expanded value.
    pub fn expose(&self) -> &T {
        &self.value
    }

    /// Returns the text in the file.
    pub fn as_written(&self) -> &str {
        &self.written
    }
}

impl From<&str> for ExpandedValue {
    fn from(literal: &str) -> Self {
        Self::new(literal.to_owned(), literal)
    }
}

impl From<&str> for ExpandedValue<PathBuf> {
    fn from(literal: &str) -> Self {
        Self::new(PathBuf::from(literal), literal)
    }
}

impl<T> fmt::Debug for ExpandedValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.written, f)
    }
}

impl<T> fmt::Display for ExpandedValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl<T> Serialize for ExpandedValue<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

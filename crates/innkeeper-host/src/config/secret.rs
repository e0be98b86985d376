//! Values that cannot be printed, and values that print as the user wrote them.

mod mask;

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// What is printed in place of a secret.
pub(super) const MASK: &str = "***";

/// A value that is used but never shown: an environment value or a header.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Hides `value` from every way of printing it.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the one place that hands it on.
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
/// Messages quote what stands in the file; what a variable held stays inside.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Expanded<T = String> {
    value: T,
    written: String,
}

impl<T> Expanded<T> {
    /// Pairs a value with the words it is shown by.
    pub fn new(value: T, written: impl Into<String>) -> Self {
        Self { value, written: written.into() }
    }

    /// The value itself, variables replaced.
    pub fn expose(&self) -> &T {
        &self.value
    }

    /// The value as it stands in the file.
    pub fn as_written(&self) -> &str {
        &self.written
    }
}

impl From<&str> for Expanded {
    fn from(literal: &str) -> Self {
        Self::new(literal.to_owned(), literal)
    }
}

impl From<&str> for Expanded<PathBuf> {
    fn from(literal: &str) -> Self {
        Self::new(PathBuf::from(literal), literal)
    }
}

impl<T> fmt::Debug for Expanded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.written, f)
    }
}

impl<T> fmt::Display for Expanded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl<T> Serialize for Expanded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

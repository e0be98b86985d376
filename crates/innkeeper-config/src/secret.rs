//! Values that print as a mask or as written by the user.

mod mask;

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// Text in place of a secret.
pub(crate) const MASK: &str = "***";

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
    source: String,
    /// The text with masks over what looks like a secret; `None` if nothing does.
    masked: Option<String>,
}

impl<T> ExpandedValue<T> {
    /// Pairs a value with its text in the file.
    pub fn new(value: T, source_text: impl Into<String>) -> Self {
        Self { value, source: source_text.into(), masked: None }
    }

    /// Sets the text for messages, with masks over what looks like a secret.
    #[must_use]
    pub(crate) fn with_masked(mut self, masked: String) -> Self {
        self.masked = Some(masked).filter(|masked| *masked != self.source);
        self
    }

    /// Returns the expanded value.
    pub fn expose(&self) -> &T {
        &self.value
    }

    /// Returns the text in the file, with masks over what looks like a secret.
    pub fn as_written(&self) -> &str {
        self.masked.as_deref().unwrap_or(&self.source)
    }

    /// Returns the exact text in the file, to be shown only to the user who decides about it: behind a
    /// mask, a file could hide what it starts.
    pub fn source(&self) -> &str {
        &self.source
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
        fmt::Debug::fmt(self.as_written(), f)
    }
}

impl<T> fmt::Display for ExpandedValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_written())
    }
}

impl<T> Serialize for ExpandedValue<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_written())
    }
}

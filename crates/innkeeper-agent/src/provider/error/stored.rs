//! The stored form of an error: its fields, with the texts of its sources.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{LlmError, LlmErrorKind};

/// Maximum number of stored sources; a chain that refers to itself ends there.
const MAX_SOURCES: usize = 32;

#[derive(Serialize, Deserialize)]
struct StoredError {
    provider: String,
    model: Box<str>,
    kind: LlmErrorKind,
    status: Option<u16>,
    message: Box<str>,
    partial_output: Option<Box<str>>,
    /// The text of each source, outermost first.
    sources: Vec<String>,
}

/// A source of a stored error: its text and its own source.
#[derive(Debug)]
struct StoredSource {
    text: String,
    source: Option<Box<Self>>,
}

impl fmt::Display for StoredSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for StoredSource {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl LlmError {
    /// Returns the text of each source, outermost first.
    pub(super) fn source_texts(&self) -> Vec<String> {
        let sources = std::iter::successors(self.source(), |&source| source.source());
        sources.take(MAX_SOURCES).map(ToString::to_string).collect()
    }
}

/// Writes the sources as texts.
impl Serialize for LlmError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = StoredError {
            provider: self.provider.clone(),
            model: self.model.clone(),
            kind: self.kind,
            status: self.status,
            message: self.message.clone(),
            partial_output: self.partial_output.clone(),
            sources: self.source_texts(),
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LlmError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredError::deserialize(deserializer)?;
        let mut source = None;
        for text in stored.sources.into_iter().take(MAX_SOURCES).rev() {
            source = Some(Box::new(StoredSource { text, source }));
        }
        Ok(Self {
            provider: stored.provider,
            model: stored.model,
            kind: stored.kind,
            status: stored.status,
            message: stored.message,
            partial_output: stored.partial_output,
            source: source.map(|source| source as Box<dyn Error + Send + Sync>),
        })
    }
}

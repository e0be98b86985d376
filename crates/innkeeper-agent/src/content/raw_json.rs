//! A JSON value, byte for byte.

use std::fmt;
use std::sync::Arc;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer as _, Serialize};
use serde_json::value::RawValue;

/// A JSON value as its sender wrote it, byte for byte. Clones share the text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// Returns the text of the value.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl From<&RawValue> for RawJson {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned().into())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

/// Decodes a JSON string. Replaces lone surrogates, which come from servers that split text by
/// UTF-16 units.
pub(crate) fn decode_string(raw: &RawValue) -> Option<String> {
    struct LossyStringVisitor;

    impl Visitor<'_> for LossyStringVisitor {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }

    let text = raw.get();
    if !text.starts_with('"') {
        return None;
    }
    let exact = serde_json::from_str(text).ok();
    exact.or_else(|| {
        serde_json::Deserializer::from_str(text).deserialize_bytes(LossyStringVisitor).ok()
    })
}

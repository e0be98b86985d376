//! A schema before compilation.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::SchemaError;
use crate::limits::MAX_SCHEMA_BYTES;

/// A schema before compilation.
#[derive(Debug)]
pub(crate) enum SchemaSource {
    Text(Box<RawValue>),
    Value(Value),
}

impl SchemaSource {
    /// Returns the schema as a value.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is too long or invalid.
    pub(crate) fn to_value(&self) -> Result<Cow<'_, Value>, SchemaError> {
        match self {
            Self::Value(schema) => Ok(Cow::Borrowed(schema)),
            Self::Text(text) if text.get().len() > MAX_SCHEMA_BYTES => Err(SchemaError::TooLong),
            Self::Text(text) => serde_json::from_str(text.get())
                .map(Cow::Owned)
                .map_err(|error| SchemaError::InvalidJson { reason: error.to_string() }),
        }
    }
}

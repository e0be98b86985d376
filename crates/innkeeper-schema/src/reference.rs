//! Resolves references within one schema.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::error::SchemaError;

#[derive(Debug, PartialEq)]
pub(crate) enum ReferenceTarget<'s> {
    /// The subschema at a JSON pointer.
    Subschema(&'s Value),
    /// The subschemas with an anchor of this name.
    Anchor(&'s str),
}

/// Resolves `text` in `schema`.
///
/// # Errors
///
/// Returns an error if the reference points outside the schema or has no target. Nothing is
/// fetched.
pub(crate) fn resolve<'s>(
    schema: &'s Value,
    text: &'s str,
) -> Result<ReferenceTarget<'s>, SchemaError> {
    let Some(fragment) = text.strip_prefix('#') else {
        return Err(SchemaError::ExternalReference { reference: text.to_owned() });
    };
    if fragment.is_empty() {
        return Ok(ReferenceTarget::Subschema(schema));
    }
    if !fragment.starts_with('/') {
        return Ok(ReferenceTarget::Anchor(fragment));
    }
    let pointer = percent_decode_str(fragment).decode_utf8().map_err(|_| unresolved(text))?;
    schema.pointer(&pointer).map(ReferenceTarget::Subschema).ok_or_else(|| unresolved(text))
}

pub(crate) fn unresolved(text: &str) -> SchemaError {
    SchemaError::UnresolvedReference { reference: text.to_owned() }
}

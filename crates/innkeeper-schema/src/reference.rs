//! Resolves references within one schema.

use serde_json::Value;

use crate::error::SchemaError;

/// The target of a reference.
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
    let pointer = decode_percent(fragment).ok_or_else(|| unresolved(text))?;
    schema.pointer(&pointer).map(ReferenceTarget::Subschema).ok_or_else(|| unresolved(text))
}

pub(crate) fn unresolved(text: &str) -> SchemaError {
    SchemaError::UnresolvedReference { reference: text.to_owned() }
}

/// Decodes percent-encoding; returns `None` if the result is not UTF-8.
fn decode_percent(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let escaped = tail.split_at_checked(2).filter(|_| *first == b'%');
        let byte = escaped.and_then(|(digits, after)| {
            // The integer parser would accept a sign.
            digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        match byte {
            Some((byte, after)) => {
                bytes.push(byte);
                rest = after;
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok()
}

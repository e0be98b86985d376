//! Checks the size of a schema before anything else.

use serde_json::Value;

use crate::error::SchemaError;
use crate::limits::{MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_VALUES};

/// Maximum size of a schema whose text alone can show that the schema is within the limits.
const MAX_SHORT_BYTES: usize = 4 << 10;

/// Maximum number of arrays and objects of such a schema; the JSON parser reads more inside one another.
const MAX_SHORT_CONTAINERS: usize = 100;

/// Maximum number of consecutive digits that a 64-bit float can have before its decimal point.
const MAX_DIGITS: usize = 300;

/// Returns whether the text of a schema shows that the schema is within all limits, also those of its
/// references, its cost and its patterns: it is short and has none of them. Most schemas of tools are
/// so, and a start reads many.
pub(crate) fn is_certainly_small(text: &str) -> bool {
    if text.len() > MAX_SHORT_BYTES {
        return false;
    }
    let mut containers = 0;
    let mut digits = 0;
    for byte in text.bytes() {
        match byte {
            // References, dialects and base addresses; names with escapes.
            b'$' | b'\\' => return false,
            // A number that may be out of range.
            b'e' | b'E' if digits > 0 => return false,
            b'{' | b'[' => containers += 1,
            _ => {}
        }
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > MAX_DIGITS {
            return false;
        }
    }
    containers <= MAX_SHORT_CONTAINERS
        && !text.contains("\"pattern")
        && !text.contains("\"unevaluated")
}

/// Checks the number of values, the depth, and the length of names and strings, without recursion.
///
/// # Errors
///
/// Returns the exceeded limit.
pub(crate) fn check_size(schema: &Value) -> Result<(), SchemaError> {
    let mut values = 1;
    let mut bytes = 0_usize;
    let mut open = vec![(schema, 1)];
    while let Some((value, depth)) = open.pop() {
        match value {
            Value::Array(_) | Value::Object(_) if depth > MAX_SCHEMA_DEPTH => {
                return Err(SchemaError::TooDeep);
            }
            Value::Array(items) => {
                values += items.len();
                open.extend(items.iter().map(|item| (item, depth + 1)));
            }
            Value::Object(members) => {
                values += members.len();
                bytes += members.keys().map(String::len).sum::<usize>();
                open.extend(members.values().map(|member| (member, depth + 1)));
            }
            Value::String(text) => bytes += text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if values > MAX_SCHEMA_VALUES {
            return Err(SchemaError::TooManyValues);
        }
        if bytes > MAX_SCHEMA_BYTES {
            return Err(SchemaError::TooLong);
        }
    }
    Ok(())
}

//! Size limits of a schema, checked before anything else.

use serde_json::Value;

use crate::error::SchemaError;

/// Maximum size of a schema in bytes; the largest known schemas have a few ten thousand.
pub(crate) const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// Maximum number of JSON values in a schema.
pub(crate) const MAX_SCHEMA_VALUES: usize = 5_000;

/// Maximum nesting of arrays and objects in a schema; the JSON parser has about the same limit.
pub(crate) const MAX_SCHEMA_DEPTH: usize = 128;

/// Checks the number of values, the depth, and the length of names and strings, without recursion.
///
/// # Errors
///
/// Returns the exceeded limit.
pub(crate) fn check_size(schema: &Value) -> Result<(), SchemaError> {
    let (mut values, mut bytes) = (1, 0_usize);
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

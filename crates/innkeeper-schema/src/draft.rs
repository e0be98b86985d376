//! The dialect of a schema.

use jsonschema::Draft;
use serde_json::Value;

use crate::error::SchemaError;

/// Returns the declared dialect, or 2020-12, the default of MCP.
///
/// # Errors
///
/// Returns an error for an unknown dialect.
pub(crate) fn detect_draft(schema: &Value) -> Result<Draft, SchemaError> {
    let declared = schema.get("$schema").and_then(Value::as_str);
    let Some(uri) = declared else { return Ok(Draft::Draft202012) };
    match Draft::from_schema_uri(uri) {
        supported @ (Draft::Draft4
        | Draft::Draft6
        | Draft::Draft7
        | Draft::Draft201909
        | Draft::Draft202012) => Ok(supported),
        _ => Err(SchemaError::UnknownDialect { uri: uri.to_owned() }),
    }
}

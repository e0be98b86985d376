//! The dialect of a schema.

use jsonschema::Draft;
use serde_json::Value;

use crate::error::SchemaError;

/// The URI of the current dialect, whichever that is.
const LATEST: &str = "http://json-schema.org/schema";

/// The URI of draft 4.
pub(crate) const DRAFT_4: &str = "http://json-schema.org/draft-04/schema#";

/// Returns the declared dialect, or 2020-12, the default of MCP. Draft 3 is read as draft 4 after
/// its [correction](crate::correction).
///
/// # Errors
///
/// Returns an error for an unknown dialect.
pub(crate) fn detect_draft(schema: &Value) -> Result<Draft, SchemaError> {
    let declared = schema.get("$schema").and_then(Value::as_str);
    // The URI without a version means the current one.
    let Some(uri) = declared.filter(|uri| uri.trim_end_matches('#') != LATEST) else {
        return Ok(Draft::Draft202012);
    };
    if is_draft3(schema) {
        return Ok(Draft::Draft4);
    }
    match Draft::from_schema_uri(uri) {
        supported @ (Draft::Draft4
        | Draft::Draft6
        | Draft::Draft7
        | Draft::Draft201909
        | Draft::Draft202012) => Ok(supported),
        _ => Err(SchemaError::UnknownDialect { uri: uri.to_owned() }),
    }
}

/// Returns whether the schema declares draft 3, whose habits draft 4 does not allow.
pub(crate) fn is_draft3(schema: &Value) -> bool {
    let declared = schema.get("$schema").and_then(Value::as_str);
    declared
        .is_some_and(|uri| uri.trim_end_matches('#') == "http://json-schema.org/draft-03/schema")
}

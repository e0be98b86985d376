//! Checks whether strict mode supports a schema.

use innkeeper_toolcall::{Dialect, lower_schema};
use serde_json::Value;

/// Whether a schema is strict without changes. OpenAI, like some compatible servers, rejects a
/// strict schema outside of its subset, and lowering the schema would change the form of the
/// output. Local servers enforce a schema without strict mode too.
pub(in crate::provider) fn is_strict(schema: &Value) -> bool {
    let lowered = lower_schema(schema, Dialect::OpenAiStrict);
    lowered.strict && lowered.schema == *schema
}

//! Whether an answer can be held to a schema strictly.

use innkeeper_toolcall::{Dialect, fit};
use serde_json::Value;

/// OpenAI, and some that speak like it, refuse a strict schema that is not in its subset, and an
/// answer would come in another form if it were brought there: so strict is what needs no change.
/// Local servers hold an answer to its schema either way.
pub(in crate::provider) fn is_strict(schema: &Value) -> bool {
    let fitted = fit(schema, Dialect::OpenAiStrict);
    fitted.strict && fitted.schema == *schema
}

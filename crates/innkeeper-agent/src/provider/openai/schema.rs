//! Whether an answer can be held to a schema strictly.

use innkeeper_toolcall::{Dialect, fit};
use serde_json::Value;

use crate::provider::Capabilities;

/// OpenAI refuses a strict schema that is not in its subset, and an answer would come in another form
/// if it were brought there: so strict is what needs no change. Other servers have no such subset.
pub(in crate::provider) fn is_strict(schema: &Value, can: &Capabilities) -> bool {
    if !can.strict_tools {
        return true;
    }
    let fitted = fit(schema, Dialect::OpenAiStrict);
    fitted.strict && fitted.losses.is_empty() && fitted.schema == *schema
}

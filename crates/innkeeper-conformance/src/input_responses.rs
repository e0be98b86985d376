//! Responses to server requests: accepts forms with defaults, returns a fixed text, no roots.

use innkeeper_host::callback::{CallbackError, ServerRequest};
use serde_json::{Map, Value, json};

pub(crate) async fn respond(request: ServerRequest) -> Result<Value, CallbackError> {
    let params = request.params.as_deref().map_or("{}", |params| params.get());
    let params: Value = serde_json::from_str(params).unwrap_or_default();
    match &*request.method {
        "elicitation/create" => Ok(json!({
            "action": "accept",
            "content": schema_defaults(&params["requestedSchema"]),
        })),
        "sampling/createMessage" => Ok(json!({
            "role": "assistant",
            "content": { "type": "text", "text": "a text for a test" },
            "model": "none",
            "stopReason": "endTurn",
        })),
        "roots/list" => Ok(json!({ "roots": [] })),
        other => Err(CallbackError::new(-32601, format!("unknown method `{other}`"))),
    }
}

/// Fills a form with its defaults; a required field without a default gets a value of its type.
fn schema_defaults(schema: &Value) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let Some(properties) = schema["properties"].as_object() else { return json!({}) };
    let filled = properties.iter().filter_map(|(name, property)| {
        let default = property.get("default").cloned();
        Some((
            name.clone(),
            default.or_else(|| {
                required.contains(&json!(name)).then(|| crate::sample::sample_value(property))
            })?,
        ))
    });
    Value::Object(filled.collect::<Map<_, _>>())
}

//! What the application says when a server asks: accepts with defaults, a fixed text, no roots.

use innkeeper_host::callback::{Refusal, ServerRequest};
use serde_json::{Map, Value, json};

/// Answers one request of a server.
pub(crate) async fn answer(request: ServerRequest) -> Result<Value, Refusal> {
    let params = request.params.as_deref().map_or("{}", |params| params.get());
    let params: Value = serde_json::from_str(params).unwrap_or_default();
    match &*request.method {
        "elicitation/create" => Ok(json!({
            "action": "accept",
            "content": defaults(&params["requestedSchema"]),
        })),
        "sampling/createMessage" => Ok(json!({
            "role": "assistant",
            "content": { "type": "text", "text": "a text for a test" },
            "model": "none",
            "stopReason": "endTurn",
        })),
        "roots/list" => Ok(json!({ "roots": [] })),
        other => Err(Refusal::new(-32601, format!("`{other}` is not known here"))),
    }
}

/// A form filled with its defaults; what is required and has none is given a value of its type.
fn defaults(schema: &Value) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let Some(properties) = schema["properties"].as_object() else { return json!({}) };
    let filled = properties.iter().filter_map(|(name, property)| {
        let default = property.get("default").cloned();
        let wanted = || required.contains(&json!(name)).then(|| crate::sample::value(property));
        Some((name.clone(), default.or_else(wanted)?))
    });
    Value::Object(filled.collect::<Map<_, _>>())
}

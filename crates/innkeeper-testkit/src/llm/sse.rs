//! Server-Sent Events as text.

use serde_json::Value;

/// Formats an event with data only.
pub(super) fn data_event(json: &str) -> String {
    format!("data: {json}\n\n")
}

/// Formats an event; its name is the `type` of its data.
pub(super) fn typed_event(event: &Value, json: &str) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {json}\n\n")
}

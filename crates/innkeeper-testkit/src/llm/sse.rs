//! Server-Sent Events as text.

use serde_json::Value;

/// An event with data alone.
pub(super) fn data(json: &str) -> String {
    format!("data: {json}\n\n")
}

/// An event whose name is the `type` of its data.
pub(super) fn typed(event: &Value, json: &str) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {json}\n\n")
}

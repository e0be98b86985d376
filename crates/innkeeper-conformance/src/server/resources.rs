//! The contents of the resources.

use serde_json::{Value, json};

use super::message::{Era, INVALID_PARAMS, Outcome, RESOURCE_NOT_FOUND, RpcError};

/// A PNG image with one pixel, in Base64.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Returns the result of `resources/read`.
pub(crate) fn read(uri: &str, era: Era) -> Outcome {
    let content = match uri {
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        "test://mixed-content-resource" => {
            json_content(uri, &json!({ "test": "data", "value": 123 }))
        }
        "test://static-text" => {
            text_content(uri, "This is the content of the static text resource.")
        }
        "test://watched-resource" => text_content(uri, "This text changes."),
        "test://embedded-resource" => text_content(uri, "This is an embedded resource content."),
        "test://example-resource" => text_content(uri, "This is an example."),
        _ => match template_id(uri) {
            Some(id) => {
                let data = format!("Data for ID: {id}");
                json_content(uri, &json!({ "id": id, "templateTest": true, "data": data }))
            }
            None => return Err(not_found(uri, era)),
        },
    };
    Ok(json!({ "contents": [content] }))
}

fn template_id(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

fn not_found(uri: &str, era: Era) -> RpcError {
    let code = match era {
        Era::Legacy => RESOURCE_NOT_FOUND,
        Era::Modern => INVALID_PARAMS,
    };
    RpcError::new(code, "resource not found").with_data(json!({ "uri": uri }))
}

pub(crate) fn text_content(uri: &str, text: &str) -> Value {
    json!({ "uri": uri, "mimeType": "text/plain", "text": text })
}

pub(crate) fn json_content(uri: &str, value: &Value) -> Value {
    json!({ "uri": uri, "mimeType": "application/json", "text": value.to_string() })
}

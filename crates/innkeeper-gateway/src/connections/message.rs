//! Messages with metadata, and the JSON-RPC messages in them.

use chrono::{DateTime, Utc};
use innkeeper_protocol::RequestId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{ConnectionError, ErrorCode};

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageType {
    /// A request, which requires a response.
    Request,
    /// The result of a request.
    Response,
    /// A message without a response.
    Notification,
    /// The error of a request.
    Error,
}

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageDirection {
    /// The client sends the message.
    ClientToServer,
    /// The server sends the message.
    ServerToClient,
}

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageCategory {
    /// The lifecycle of the connection.
    Lifecycle,
    /// Any other method.
    Jsonrpc,
    /// A resource.
    Resource,
    /// A tool.
    Tool,
    /// The context of a model.
    Context,
    /// A job.
    Job,
    /// A method of the application.
    Custom,
}

/// What is known about a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageMetadata {
    /// The time of the message.
    #[serde(default = "Utc::now")]
    pub timestamp: DateTime<Utc>,
    /// The kind.
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// Who sends the message.
    pub direction: MessageDirection,
    /// What the message is about.
    pub category: MessageCategory,
    /// The connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<String>,
    /// The id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

impl MessageMetadata {
    /// Creates the metadata of a message that is sent now.
    pub fn new(kind: MessageType, direction: MessageDirection, category: MessageCategory) -> Self {
        Self {
            timestamp: Utc::now(),
            kind,
            direction,
            category,
            connection_id: None,
            request_id: None,
            trace_id: None,
        }
    }
}

/// The version of JSON-RPC, which each message contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum JsonRpcVersion {
    #[default]
    #[serde(rename = "2.0")]
    V2,
}

/// A request of JSON-RPC; a notification if it has no id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonRpcRequest {
    jsonrpc: JsonRpcVersion,
    /// The method.
    pub method: String,
    /// The parameters: an object or an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<JsonRpcParams>,
    /// The id; `None` for a notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RequestId>,
}

/// The parameters of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum JsonRpcParams {
    /// By name.
    Named(Map<String, Value>),
    /// By position.
    Positional(Vec<Value>),
}

/// A response of JSON-RPC: a result, which can be `null`, or an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ResponseMembers", into = "ResponseMembers")]
pub struct JsonRpcResponse {
    /// The id of the request; `None` if the request had no usable id.
    pub id: Option<RequestId>,
    /// The result or the error.
    pub outcome: Result<Value, ConnectionError>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResponseMembers {
    jsonrpc: JsonRpcVersion,
    id: Option<RequestId>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ConnectionError>,
}

/// Reads a member that is present, also if it is `null`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl TryFrom<ResponseMembers> for JsonRpcResponse {
    type Error = &'static str;

    fn try_from(members: ResponseMembers) -> Result<Self, &'static str> {
        let outcome = match (members.result, members.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            (Some(_), Some(_)) | (None, None) => {
                return Err("a response has either `result` or `error`");
            }
        };
        Ok(Self { id: members.id, outcome })
    }
}

impl From<JsonRpcResponse> for ResponseMembers {
    fn from(JsonRpcResponse { id, outcome }: JsonRpcResponse) -> Self {
        let (result, error) = match outcome {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        Self { jsonrpc: JsonRpcVersion::V2, id, result, error }
    }
}

impl JsonRpcRequest {
    /// Creates a request.
    pub fn new(
        method: impl Into<String>,
        params: Option<JsonRpcParams>,
        id: impl Into<RequestId>,
    ) -> Self {
        Self { id: Some(id.into()), ..Self::notification(method, params) }
    }

    /// Creates a notification.
    pub fn notification(method: impl Into<String>, params: Option<JsonRpcParams>) -> Self {
        Self { jsonrpc: JsonRpcVersion::V2, method: method.into(), params, id: None }
    }
}

/// The requests of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonRpcBatchRequest {
    /// The requests.
    pub requests: Vec<JsonRpcRequest>,
}

/// The responses to the requests of one call; a notification has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonRpcBatchResponse {
    /// The responses.
    pub responses: Vec<JsonRpcResponse>,
}

/// The JSON-RPC message in a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MessagePayload {
    /// A request or a notification.
    Request(JsonRpcRequest),
    /// A response.
    Response(JsonRpcResponse),
    /// Several requests.
    BatchRequest(JsonRpcBatchRequest),
    /// Several responses.
    BatchResponse(JsonRpcBatchResponse),
}

/// A message with metadata.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionMessage {
    /// What is known about the message.
    pub metadata: MessageMetadata,
    /// The JSON-RPC message.
    pub payload: MessagePayload,
}

impl ConnectionMessage {
    /// Parses a message.
    ///
    /// # Errors
    ///
    /// Returns an error with the code -32700 for a text that is not JSON, and with -32200 for another
    /// structure than that of a message, or for a payload of another kind than the metadata say.
    pub fn from_json(text: &[u8]) -> Result<Self, ConnectionError> {
        let value: Value = serde_json::from_slice(text).map_err(|error| {
            ConnectionError::new(ErrorCode::ParseError, format!("the message is not JSON: {error}"))
        })?;
        let message = Self::deserialize(value).map_err(|error| invalid(&error.to_string()))?;
        let fits = match (&message.payload, message.metadata.kind) {
            (MessagePayload::Request(request), MessageType::Request) => request.id.is_some(),
            (MessagePayload::Request(request), MessageType::Notification) => request.id.is_none(),
            (MessagePayload::Response(response), MessageType::Response) => response.outcome.is_ok(),
            (MessagePayload::Response(response), MessageType::Error) => response.outcome.is_err(),
            (MessagePayload::BatchRequest(_), MessageType::Request)
            | (MessagePayload::BatchResponse(_), MessageType::Response) => true,
            _ => false,
        };
        if fits { Ok(message) } else { Err(invalid("`metadata/type` does not fit the payload")) }
    }
}

fn invalid(reason: &str) -> ConnectionError {
    let message = format!("invalid message: {}", innkeeper_host::display_safe(reason));
    ConnectionError::new(ErrorCode::ValidationError, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(kind: &str) -> Value {
        json!({ "timestamp": "2026-11-26T03:00:00Z", "type": kind,
            "direction": "client_to_server", "category": "jsonrpc",
            "connection_id": "conn-123", "request_id": "req-456" })
    }

    fn parse(kind: &str, payload: &Value) -> Result<ConnectionMessage, ConnectionError> {
        let message = json!({ "metadata": metadata(kind), "payload": payload });
        ConnectionMessage::from_json(message.to_string().as_bytes())
    }

    fn request() -> Value {
        json!({ "jsonrpc": "2.0", "method": "get_job_status", "params": { "job_id": "job-789" },
            "id": "req-456" })
    }

    /// Proves: B30, B31, B32
    #[test]
    fn each_kind_of_message_keeps_its_metadata_and_its_payload() {
        let error = json!({ "code": -32_400, "message": "unknown tool" });
        for (kind, payload) in [
            ("request", request()),
            ("notification", json!({ "jsonrpc": "2.0", "method": "exit" })),
            ("response", json!({ "jsonrpc": "2.0", "id": 7, "result": { "a": [1] } })),
            ("error", json!({ "jsonrpc": "2.0", "id": null, "error": error })),
        ] {
            let message = parse(kind, &payload).unwrap();
            let written = serde_json::to_value(&message).unwrap();
            assert_eq!(written["payload"], payload);
            assert_eq!(written["metadata"], metadata(kind));
        }
    }

    /// Proves: B32
    #[test]
    fn a_request_of_the_document_is_made_from_its_parts() {
        let params = json!({ "job_id": "job-789" }).as_object().cloned().map(JsonRpcParams::Named);
        let message = ConnectionMessage {
            metadata: MessageMetadata {
                connection_id: Some("conn-123".to_owned()),
                request_id: Some("req-456".to_owned()),
                ..MessageMetadata::new(
                    MessageType::Request,
                    MessageDirection::ClientToServer,
                    MessageCategory::Jsonrpc,
                )
            },
            payload: MessagePayload::Request(JsonRpcRequest::new(
                "get_job_status",
                params,
                "req-456",
            )),
        };
        let text = serde_json::to_vec(&message).unwrap();
        assert_eq!(ConnectionMessage::from_json(&text).unwrap(), message);
        assert_eq!(serde_json::to_value(&message).unwrap()["payload"], request());
    }

    #[test]
    fn a_null_result_is_a_result() {
        let payload = json!({ "jsonrpc": "2.0", "id": 1, "result": null });
        let message = parse("response", &payload).unwrap();
        let MessagePayload::Response(response) = &message.payload else { panic!("{message:?}") };
        assert_eq!(response.outcome, Ok(Value::Null));
        assert_eq!(serde_json::to_value(&message).unwrap()["payload"], payload);
    }

    /// Proves: B41
    #[test]
    fn another_structure_is_a_validation_error() {
        let both = json!({ "jsonrpc": "2.0", "id": 1, "result": 1,
            "error": { "code": -32_603, "message": "" } });
        for (kind, payload) in [
            ("request", json!({ "jsonrpc": "2.0", "method": "a" })),
            ("notification", request()),
            ("response", request()),
            ("response", both),
            ("response", json!({ "jsonrpc": "2.0", "id": 1 })),
            ("error", json!({ "jsonrpc": "2.0", "id": 1, "result": 1 })),
            ("request", json!({ "jsonrpc": "1.0", "method": "a", "id": 1 })),
            ("request", json!({ "jsonrpc": "2.0", "method": 5, "id": 1 })),
            ("request", json!({ "jsonrpc": "2.0", "method": "a", "id": 1, "params": "text" })),
            ("request", json!({ "jsonrpc": "2.0", "method": "a", "id": 1, "more": 1 })),
            ("question", request()),
        ] {
            let error = parse(kind, &payload).unwrap_err();
            assert_eq!(error.code, ErrorCode::ValidationError, "{kind}: {payload}");
        }
        let error = ConnectionMessage::from_json(b"{").unwrap_err();
        assert_eq!(error.code, ErrorCode::ParseError);
    }

    /// Proves: B43
    #[test]
    fn a_batch_is_a_list_of_requests_and_of_responses() {
        let batch = JsonRpcBatchRequest {
            requests: vec![
                JsonRpcRequest::new("method1", None, "1"),
                JsonRpcRequest::new("method2", None, 2),
            ],
        };
        let written = serde_json::to_value(&batch).unwrap();
        assert_eq!(
            written,
            json!([{ "jsonrpc": "2.0", "method": "method1", "id": "1" },
                { "jsonrpc": "2.0", "method": "method2", "id": 2 }])
        );
        let responses = batch.requests.iter().map(|request| JsonRpcResponse {
            id: request.id.clone(),
            outcome: Ok(json!(request.method)),
        });
        let responses = JsonRpcBatchResponse { responses: responses.collect() };
        let written = serde_json::to_value(&responses).unwrap();
        assert_eq!(
            written,
            json!([{ "jsonrpc": "2.0", "id": "1", "result": "method1" },
                { "jsonrpc": "2.0", "id": 2, "result": "method2" }])
        );
        assert!(matches!(
            parse("request", &json!([request()])),
            Ok(ConnectionMessage { payload: MessagePayload::BatchRequest(_), .. })
        ));
    }
}

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
mod tests;

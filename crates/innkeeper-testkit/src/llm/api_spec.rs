//! The description of one provider API.

use serde_json::Value;

use super::issued_calls::IssuedCalls;
use super::response::{ModelResponse, ToolCall};
use super::{anthropic, gemini, interactions, ollama, openai_chat, openai_responses};

/// The request parser and response writer of one provider API.
pub(super) struct ApiSpec {
    /// Prefix of call ids.
    pub(super) id_prefix: &'static str,
    pub(super) stream: StreamSpec,
    pub(super) tool_names: fn(&Value) -> Vec<String>,
    /// The validation of a conversation.
    pub(super) validate: fn(&Value, &IssuedCalls) -> Result<(), BadRequest>,
    /// The body of a response without streaming.
    pub(super) response_body: fn(&ModelResponse) -> Value,
    /// The server's error for a call that the server cannot parse.
    pub(super) parse_failure: Option<fn(&ToolCall) -> String>,
    /// The body of an error response: status, error code, message.
    pub(super) error_body: fn(u16, Option<&str>, &BadRequest) -> Value,
}

/// How a provider API streams.
pub(super) struct StreamSpec {
    /// Whether responses stream if the request does not say so.
    pub(super) is_default: bool,
    pub(super) content_type: &'static str,
    /// The chunks of a response: one event or line each.
    pub(super) chunks: fn(&ModelResponse) -> Vec<String>,
}

/// The reason for rejecting a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BadRequest {
    pub(super) message: String,
    /// The provider's error code, unless it is the code of every bad request.
    pub(super) code: Option<&'static str>,
    /// The invalid part of the request.
    pub(super) param: Option<String>,
}

impl BadRequest {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    pub(super) fn with_param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }
}

/// The target of a request: its API, the model if the path has it, and whether the path requests a
/// stream.
pub(super) struct RequestTarget {
    pub(super) api: &'static ApiSpec,
    pub(super) model: Option<String>,
    pub(super) streams: Option<bool>,
}

impl RequestTarget {
    /// Returns the target of a path; none if the path belongs to no model.
    pub(super) fn from_path(path: &str) -> Option<Self> {
        if path.ends_with("/chat/completions") {
            return Some(Self { api: &openai_chat::API, model: None, streams: None });
        }
        if path.ends_with("/responses") {
            return Some(Self { api: &openai_responses::API, model: None, streams: None });
        }
        if path.ends_with("/v1/messages") {
            return Some(Self { api: &anthropic::API, model: None, streams: None });
        }
        if path.ends_with("/api/chat") {
            return Some(Self { api: &ollama::API, model: None, streams: None });
        }
        if path.ends_with("/interactions") {
            return Some(Self { api: &interactions::API, model: None, streams: None });
        }
        let (model, method) = path.rsplit_once("/models/")?.1.rsplit_once(':')?;
        let streams = match method {
            "generateContent" => false,
            "streamGenerateContent" => true,
            _ => return None,
        };
        let model = Some(model.to_owned());
        Some(Self { api: &gemini::API, model, streams: Some(streams) })
    }
}

/// Returns the strings at `key` of the objects in a list.
pub(super) fn strings_at<'a>(list: &'a Value, key: &'a str) -> impl Iterator<Item = &'a str> {
    list.as_array().into_iter().flatten().filter_map(move |item| item[key].as_str())
}

/// Returns the items of a list; empty if the value is not a list.
pub(super) fn array_items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

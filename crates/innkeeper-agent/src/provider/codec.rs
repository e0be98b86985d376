//! Codecs of the provider APIs, without I/O.
//!
//! Each [`ProviderApi`] has a module beside this one with three functions:
//! `encode` turns a request into an HTTP request, `response_decoder` returns a decoder for the
//! response body in chunks of any size, and `decode_error` decodes an HTTP error response. This
//! module holds the shared parts.

mod buffered_decoder;
mod checked_decoder;
#[cfg(any(test, fuzzing))]
pub(crate) mod chunking;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod object_view;
#[cfg(any(test, fuzzing))]
pub(crate) mod request_encoding;
mod stream_splitter;
mod string_joiner;

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::content_lowering::lower_messages;
use super::tool_encoding::EncodedTools;
use super::{
    Capabilities, LlmErrorKind, OutputConstraint, ProviderApi, Request, Response, StreamChunk,
    anthropic, gemini_generate, gemini_interactions, ollama, openai_chat, openai_responses,
};

pub(crate) use buffered_decoder::BufferedDecoder;
use checked_decoder::CheckedDecoder;
pub(crate) use checked_decoder::are_same_arguments;
pub(crate) use object_view::{
    MAX_OBJECT_FIELDS, ObjectView, arguments_text, decode_string, is_json, parse_array,
    texts_of_field,
};
pub(crate) use stream_splitter::{EventSplitter, LineSplitter};
pub(crate) use string_joiner::StringJoiner;

/// Maximum number of bytes in a response, streamed or not: a hundred times the longest output of a
/// model.
pub(crate) const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Maximum number of bytes in one event of a stream. Gemini sends complete tool calls in one event.
pub(crate) const MAX_EVENT_BYTES: usize = 16 << 20;

/// Maximum number of content parts in a response; no model writes more.
pub(crate) const MAX_CONTENT_PARTS: usize = 4096;

/// Maximum number of items in a list. Many text items become one part, and a server may send one
/// item per token: no model writes more items in one response, and scanning this number costs one
/// MiB.
pub(crate) const MAX_LIST_ITEMS: usize = 65_536;

/// Maximum number of characters in a stored error message.
const MAX_ERROR_MESSAGE_CHARS: usize = 2000;

/// A request with its model and tools, as input of an encoder.
#[derive(Clone, Copy)]
pub(crate) struct EncodeRequest<'r> {
    pub(crate) request: &'r Request,
    /// The request's tools with the names and schemas of the API.
    pub(crate) encoded_tools: &'r EncodedTools,
    pub(crate) model: &'r str,
    pub(crate) capabilities: &'r Capabilities,
    /// Whether to request a streamed response.
    pub(crate) streaming: bool,
}

impl<'r> EncodeRequest<'r> {
    /// Returns the temperature, if the model takes one and JSON can express it.
    pub(crate) fn temperature(self) -> Option<f64> {
        let accepts_it = self.capabilities.temperature;
        self.request.temperature.filter(|temperature| accepts_it && temperature.is_finite())
    }

    /// Returns the schema of the response, if the API can enforce it.
    pub(crate) fn response_schema(self) -> Option<&'r Value> {
        match self.request.output_constraint.as_ref()? {
            OutputConstraint::JsonSchema(schema) => {
                self.capabilities.constraints.json_schema.then_some(schema)
            }
            OutputConstraint::Gbnf(_) | OutputConstraint::StructuralTag(_) => None,
        }
    }
}

/// A POST request without authentication, which the transport adds.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    /// The path after the base URL, with a leading `/`.
    pub(crate) path: String,
    /// Headers in addition to `content-type: application/json`.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body as JSON.
    pub(crate) body: Vec<u8>,
}

impl HttpRequest {
    /// Creates a request without further headers.
    pub(crate) fn new(path: impl Into<String>, body: &impl Serialize) -> Result<Self, ApiError> {
        let body = serde_json::to_vec(body)
            .map_err(|error| ApiError::new(LlmErrorKind::InvalidRequest, error.to_string()))?;
        Ok(Self { path: path.into(), headers: Vec::new(), body })
    }
}

/// A decoder of one successful response.
///
/// The response has the tool names of the API; the caller restores the public names.
pub(crate) trait ResponseDecoder: Send {
    /// Feeds bytes of the body and appends the completed chunks to `chunks`, all except
    /// [`StreamChunk::Done`].
    fn push(&mut self, bytes: &[u8], pieces: &mut Vec<StreamChunk>) -> Result<(), ApiError>;

    /// Whether the response has reported its end. The decoder accepts later bytes, but the caller
    /// waits only briefly for more.
    fn is_finished(&self) -> bool {
        false
    }

    /// Returns the response at the end of the body. An incomplete response is an [`ApiError`] with
    /// the partial output.
    fn finish(self: Box<Self>) -> Result<Response, ApiError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) kind: LlmErrorKind,
    pub(crate) message: String,
    /// The model's output before the error, if the provider reports it.
    pub(crate) partial_output: Option<String>,
}

impl ApiError {
    pub(crate) fn new(kind: LlmErrorKind, message: impl AsRef<str>) -> Self {
        let message = message.as_ref().chars().take(MAX_ERROR_MESSAGE_CHARS).collect();
        Self { kind, message, partial_output: None }
    }

    /// Returns an error for a body that does not match the API.
    pub(crate) fn invalid_response(message: impl AsRef<str>) -> Self {
        Self::new(LlmErrorKind::InvalidResponse, message)
    }

    /// Returns an error for a response that exceeds [`MAX_CONTENT_PARTS`].
    pub(crate) fn too_many(items: &str) -> Self {
        Self::invalid_response(format!("the response has more than {MAX_CONTENT_PARTS} {items}"))
    }

    /// Returns an error for a response of more than `limit` bytes.
    pub(crate) fn too_long(limit: usize) -> Self {
        Self::invalid_response(format!("the response is longer than {limit} bytes"))
    }

    /// Returns an error for a stream that ended before the response was complete.
    pub(crate) fn incomplete_stream(partial_output: String) -> Self {
        let message = "the stream ended before the response was complete";
        Self {
            partial_output: Some(partial_output),
            ..Self::new(LlmErrorKind::Connection, message)
        }
    }
}

/// Maps an HTTP status, for errors without a more specific code.
pub(crate) fn kind_from_status(status: u16) -> LlmErrorKind {
    match status {
        401 | 403 => LlmErrorKind::Authentication,
        402 => LlmErrorKind::Billing,
        404 => LlmErrorKind::NotFound,
        408 | 504 => LlmErrorKind::TimedOut,
        413 => LlmErrorKind::ContextLength,
        409 | 429 | 500..=599 => LlmErrorKind::RetryLater { after: None },
        _ => LlmErrorKind::InvalidRequest,
    }
}

/// Returns a body or an event as text.
pub(crate) fn response_text(bytes: &[u8]) -> Result<&str, ApiError> {
    std::str::from_utf8(bytes).map_err(|_| ApiError::invalid_response("the response is not UTF-8"))
}

/// Returns the provider's error message, or a default if it is empty.
pub(crate) fn message_or_default(message: &str) -> &str {
    let message = message.trim();
    if message.is_empty() { "no error message" } else { message }
}

/// Whether the text is a JSON object that every API reads. An API rejects each later request of a
/// conversation because of one other object: with a number outside the range of a float, with a lone
/// surrogate, or nested deeper than 127.
pub(crate) fn is_sendable_object(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|value: serde_json::Value| value.is_object())
}

/// Returns the arguments of a call as a JSON object, for APIs that do not accept text. Arguments
/// that are no [sendable object](is_sendable_object) are wrapped in an object.
pub(crate) fn arguments_object(arguments: &str) -> Box<RawValue> {
    let text = arguments.trim();
    let sendable = is_sendable_object(text).then(|| RawValue::from_string(text.to_owned()).ok());
    sendable.flatten().unwrap_or_else(|| {
        let object = if text.is_empty() {
            serde_json::json!({})
        } else {
            serde_json::json!({"unreadable": text})
        };
        serde_json::value::to_raw_value(&object).unwrap_or_default()
    })
}

/// Encodes a request, with its content lowered to what the API and the model take.
pub(crate) fn encode(
    api: ProviderApi,
    encode_request: EncodeRequest<'_>,
) -> Result<HttpRequest, ApiError> {
    let EncodeRequest { request, capabilities, .. } = encode_request;
    match lower_messages(api, capabilities.content, &request.messages) {
        Some(messages) => {
            let lowered = Request { messages, ..request.clone() };
            encode_lowered(api, EncodeRequest { request: &lowered, ..encode_request })
        }
        None => encode_lowered(api, encode_request),
    }
}

fn encode_lowered(
    api: ProviderApi,
    encode_request: EncodeRequest<'_>,
) -> Result<HttpRequest, ApiError> {
    match api {
        ProviderApi::OpenAiChat => openai_chat::encode(encode_request),
        ProviderApi::OpenAiResponses => openai_responses::encode(encode_request),
        ProviderApi::Anthropic => anthropic::encode(encode_request),
        ProviderApi::GeminiGenerate => gemini_generate::encode(encode_request),
        ProviderApi::GeminiInteractions => gemini_interactions::encode(encode_request),
        ProviderApi::Ollama => ollama::encode(encode_request),
    }
}

/// Returns a decoder for the response of `model` to a request with these tools.
pub(crate) fn response_decoder(
    api: ProviderApi,
    model: &str,
    encoded_tools: &Arc<EncodedTools>,
    streaming: bool,
) -> Box<dyn ResponseDecoder> {
    Box::new(CheckedDecoder(match api {
        ProviderApi::OpenAiChat => openai_chat::response_decoder(model, encoded_tools, streaming),
        ProviderApi::OpenAiResponses => openai_responses::response_decoder(model, streaming),
        ProviderApi::Anthropic => anthropic::response_decoder(model, streaming),
        ProviderApi::GeminiGenerate => gemini_generate::response_decoder(model, streaming),
        ProviderApi::GeminiInteractions => gemini_interactions::response_decoder(model, streaming),
        ProviderApi::Ollama => ollama::response_decoder(model, streaming),
    }))
}

/// Decodes an HTTP error response. The transport reads the retry delay from the headers.
pub(crate) fn decode_error(api: ProviderApi, status: u16, body: &[u8]) -> ApiError {
    match api {
        ProviderApi::OpenAiChat => openai_chat::decode_error(status, body),
        ProviderApi::OpenAiResponses => openai_responses::decode_error(status, body),
        ProviderApi::Anthropic => anthropic::decode_error(status, body),
        ProviderApi::GeminiGenerate => gemini_generate::decode_error(status, body),
        ProviderApi::GeminiInteractions => gemini_interactions::decode_error(status, body),
        ProviderApi::Ollama => ollama::decode_error(status, body),
    }
}

#[cfg(test)]
mod tests;

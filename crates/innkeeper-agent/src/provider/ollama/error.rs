//! Decodes Ollama's errors.

use crate::provider::LlmErrorKind;
use crate::provider::codec::{ApiError, ObjectView, kind_from_status, message_or_default};

/// The start of Ollama's message about a tool call that it cannot parse.
const TOOL_CALL_PARSE_ERROR: &str = "error parsing tool call";

/// The markers around the raw tool call in that message.
const RAW_START: &str = "raw='";
const RAW_END: &str = "', err=";

/// Decodes the body of an HTTP error response.
pub(super) fn decode_error(status: u16, body: &[u8]) -> ApiError {
    let text = String::from_utf8_lossy(body);
    let error = ObjectView::parse(&text).and_then(|body| decode_error_object(Some(status), &body));
    error.unwrap_or_else(|| ApiError::new(kind_from_status(status), message_or_default(&text)))
}

/// Decodes an error object; `None` if the object is not an error. An error in a stream has no HTTP
/// status.
pub(super) fn decode_error_object(status: Option<u16>, body: &ObjectView<'_>) -> Option<ApiError> {
    // Some versions use the message as the member name.
    if let Some(reason) = body.text(TOOL_CALL_PARSE_ERROR) {
        return Some(ApiError::new(
            LlmErrorKind::MalformedToolCall,
            format!("{TOOL_CALL_PARSE_ERROR}: {reason}"),
        ));
    }
    body.get("error")?;
    let inner = body.object("error").and_then(|error| error.text("message"));
    let message = body.text("error").or(inner).unwrap_or_default();
    let status =
        status.or_else(|| body.number("status_code").and_then(|status| u16::try_from(status).ok()));
    let kind = kind_from_message(&message)
        .or_else(|| status.map(kind_from_status))
        .unwrap_or(LlmErrorKind::RetryLater { after: None });
    let partial_output = raw_tool_call(&message);
    Some(ApiError { partial_output, ..ApiError::new(kind, message_or_default(&message)) })
}

/// Returns the raw tool call in a parse error message.
fn raw_tool_call(message: &str) -> Option<String> {
    let (_, rest) = message.split_once(TOOL_CALL_PARSE_ERROR)?;
    let (_, raw) = rest.split_once(RAW_START)?;
    let end = raw.rfind(RAW_END);
    let raw = end.map_or_else(|| raw.strip_suffix('\'').unwrap_or(raw), |end| &raw[..end]);
    Some(raw.to_owned())
}

fn kind_from_message(message: &str) -> Option<LlmErrorKind> {
    let message = message.to_ascii_lowercase();
    if message.contains(TOOL_CALL_PARSE_ERROR)
        || (message.contains("xml syntax error") && message.contains("element"))
    {
        Some(LlmErrorKind::MalformedToolCall)
    } else if message.contains("does not support tools") {
        Some(LlmErrorKind::ToolsUnsupported)
    } else if message.contains("model") && message.contains("not found") {
        Some(LlmErrorKind::NotFound)
    } else if message.contains("context length")
        || message.contains("context window")
        || message.contains("context size")
    {
        Some(LlmErrorKind::ContextLength)
    } else if message.contains("more system memory") {
        // Waiting does not reduce the memory that the model needs.
        Some(LlmErrorKind::InvalidRequest)
    } else {
        None
    }
}

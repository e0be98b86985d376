//! Decodes errors of Anthropic's API, also of llama.cpp's server.

use crate::provider::LlmErrorKind;
use crate::provider::codec::{ApiError, ObjectView, kind_from_status, message_or_default};

/// Decodes the body of an HTTP error response.
pub(super) fn decode_error(status: u16, body: &[u8]) -> ApiError {
    let text = String::from_utf8_lossy(body);
    match ObjectView::parse(&text) {
        Some(body) => decode_error_object(Some(status), &body),
        None => ApiError::new(kind_from_status(status), message_or_default(&text)),
    }
}

/// Decodes an error object. An error in a stream has no status, and llama.cpp's server then sends
/// only the object that is otherwise the value of `error`.
pub(super) fn decode_error_object(status: Option<u16>, body: &ObjectView<'_>) -> ApiError {
    let inner = body.object("error");
    let error = inner.as_ref().unwrap_or(body);
    let kind = error.text("type").unwrap_or_default();
    let message_text = error.text("message").or_else(|| body.text("error"));
    let message = match message_text {
        Some(message) => message_or_default(&message).to_owned(),
        None => message_or_default(&kind).to_owned(),
    };
    let code =
        error.object("details").and_then(|details| details.text("error_code")).unwrap_or_default();
    let status = status
        .or_else(|| error.number("code").and_then(|code_number| u16::try_from(code_number).ok()));
    let error_kind = kind_from_code(&code)
        .or_else(|| kind_from_type(&kind))
        .or_else(|| kind_from_message(&message))
        .or_else(|| status.map(kind_from_status))
        .unwrap_or_else(|| fallback_kind(&kind));
    ApiError::new(error_kind, message)
}

/// Maps error codes. Spending limits have the same HTTP status as rate limits, so the code decides.
fn kind_from_code(code: &str) -> Option<LlmErrorKind> {
    match code {
        "contract_spend_limit_reached"
        | "enforced_spend_limit_reached"
        | "linked_organization_spend_limit_reached"
        | "linked_organization_billing_unavailable" => Some(LlmErrorKind::Billing),
        _ => None,
    }
}

/// Maps the error types that are unambiguous.
fn kind_from_type(kind: &str) -> Option<LlmErrorKind> {
    match kind {
        "authentication_error" | "permission_error" => Some(LlmErrorKind::Authentication),
        "billing_error" => Some(LlmErrorKind::Billing),
        "not_found_error" => Some(LlmErrorKind::NotFound),
        "rate_limit_error" | "overloaded_error" | "unavailable_error" => {
            Some(LlmErrorKind::RetryLater { after: None })
        }
        "timeout_error" => Some(LlmErrorKind::TimedOut),
        "request_too_large" | "exceed_context_size_error" => Some(LlmErrorKind::ContextLength),
        _ => None,
    }
}

/// Maps phrases of the message, because `invalid_request_error` and `server_error` cover many
/// errors.
fn kind_from_message(message: &str) -> Option<LlmErrorKind> {
    let message = message.to_ascii_lowercase();
    let phrases_by_kind = [
        (
            LlmErrorKind::ContextLength,
            &["prompt is too long", "exceed context limit", "context size", "context length"][..],
        ),
        (
            LlmErrorKind::Billing,
            &["credit balance is too low", "reached your specified api usage limit"],
        ),
        (LlmErrorKind::Refusal, &["blocked by content filtering"]),
        (
            LlmErrorKind::ToolsUnsupported,
            &["requires --jinja", "does not support tool", "tools are not supported"],
        ),
        (LlmErrorKind::MalformedToolCall, &["failed to parse input"]),
    ];
    let entry = phrases_by_kind
        .iter()
        .find(|(_, phrases)| phrases.iter().any(|phrase| message.contains(phrase)));
    entry.map(|(kind, _)| *kind)
}

/// Returns the kind of a stream error from the error type alone.
fn fallback_kind(kind: &str) -> LlmErrorKind {
    match kind {
        "invalid_request_error" | "not_supported_error" => LlmErrorKind::InvalidRequest,
        _ => LlmErrorKind::RetryLater { after: None },
    }
}

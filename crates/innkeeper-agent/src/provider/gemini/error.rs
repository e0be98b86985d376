//! Decodes errors of Gemini's two APIs: one object, or a list with one object.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::provider::LlmErrorKind;
use crate::provider::codec::{ApiError, ObjectView, kind_from_status, parse_array};

/// Decodes an HTTP error response.
pub(crate) fn decode_error(status: u16, body: &[u8]) -> ApiError {
    let body = String::from_utf8_lossy(body);
    let body = body.trim();
    let raw: Option<&RawValue> = serde_json::from_str(body).ok();
    // A streaming request gets its error in a list.
    let raw = raw
        .map(|raw| parse_array(raw.get()).and_then(|items| items.first().copied()).unwrap_or(raw));
    let error =
        raw.and_then(ObjectView::from_raw).map(|fields| decode_error_object(&fields, status));
    error.unwrap_or_else(|| {
        let message = if body.is_empty() {
            format!("status {status} without an error message")
        } else {
            body.to_owned()
        };
        ApiError::new(kind_from_status(status), message)
    })
}

/// Decodes an error object, or the object in its `error` field.
pub(crate) fn decode_error_object(fields: &ObjectView<'_>, status: u16) -> ApiError {
    let inner = fields.object("error").filter(|object| object.iter().next().is_some());
    let error = inner.as_ref().unwrap_or(fields);
    let error_code = error.text("status").or_else(|| error.text("code")).unwrap_or_default();
    // A code of the Interactions API may be the last segment of a URL, in lower case.
    let error_code = error_code.rsplit('/').next().unwrap_or_default().to_ascii_uppercase();
    let message = error.text("message").or_else(|| fields.text("error"));
    let message = message.unwrap_or_else(|| match error_code.as_str() {
        "" => format!("status {status} without an error message"),
        code_text => code_text.to_owned(),
    });
    let details = error.list("details").unwrap_or_default();
    let details: Vec<_> = details.into_iter().filter_map(ObjectView::from_raw).collect();
    let reason = details.iter().find_map(|detail| detail.text("reason")).unwrap_or_default();
    let after = details
        .iter()
        .find_map(|detail| detail.text("retryDelay"))
        .and_then(|delay| parse_seconds(&delay));
    // A code below 100 is a gRPC code.
    let code = error.number("code").filter(|code| *code >= 100);
    let status = code.and_then(|code| u16::try_from(code).ok()).unwrap_or(status);
    let kind = match error_kind(&error_code, &reason, &message.to_ascii_lowercase(), status) {
        LlmErrorKind::RetryLater { .. } => LlmErrorKind::RetryLater { after },
        kind => kind,
    };
    ApiError::new(kind, message)
}

/// Returns the kind from the most specific of code, reason, message and status. The message is in
/// lower case.
fn error_kind(error_code: &str, reason: &str, lower_message: &str, status: u16) -> LlmErrorKind {
    if reason.starts_with("API_KEY_") || lower_message.contains("api key") {
        return LlmErrorKind::Authentication;
    }
    match error_code {
        "RESOURCE_EXHAUSTED" if lower_message.contains("credits are depleted") => {
            LlmErrorKind::Billing
        }
        "RESOURCE_EXHAUSTED" | "TOO_MANY_REQUESTS" | "RATE_LIMIT_EXCEEDED" => retry_later(),
        "PERMISSION_DENIED" if reason == "BILLING_DISABLED" => LlmErrorKind::Billing,
        "UNAUTHENTICATED" | "PERMISSION_DENIED" => LlmErrorKind::Authentication,
        "INVALID_ARGUMENT" | "INVALID_REQUEST" | "OUT_OF_RANGE" => {
            request_error_kind(lower_message)
        }
        "FAILED_PRECONDITION" if lower_message.contains("billing") => LlmErrorKind::Billing,
        "FAILED_PRECONDITION" => LlmErrorKind::InvalidRequest,
        "NOT_FOUND" => LlmErrorKind::NotFound,
        "UNAVAILABLE"
        | "SERVICE_UNAVAILABLE"
        | "INTERNAL"
        | "INTERNAL_ERROR"
        | "ABORTED"
        | "OVERLOADED" => retry_later(),
        "DEADLINE_EXCEEDED" | "GATEWAY_TIMEOUT" => LlmErrorKind::TimedOut,
        _ if status == 400 => request_error_kind(lower_message),
        _ => kind_from_status(status),
    }
}

fn retry_later() -> LlmErrorKind {
    LlmErrorKind::RetryLater { after: None }
}

/// Returns the kind of an invalid request, which only the message specifies.
fn request_error_kind(lower_message: &str) -> LlmErrorKind {
    if lower_message.contains("token count") || lower_message.contains("maximum number of tokens") {
        LlmErrorKind::ContextLength
    } else if lower_message.contains("function calling is not enabled") {
        LlmErrorKind::ToolsUnsupported
    } else {
        LlmErrorKind::InvalidRequest
    }
}

/// Parses a duration such as `34s` or `34.07s`.
fn parse_seconds(text: &str) -> Option<Duration> {
    let seconds = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests;

//! Decides what a failed request says about the session that it carried.

use innkeeper_protocol::ErrorObject;
use serde_json::Value;

use super::post::missing_response;
use super::response_error::StatusFailure;
use crate::error::ProtocolError;
use crate::session::RequestError;
use crate::session::unknown_session::{names_unknown_session, plainly_refuses_session};

/// The codes of errors about the message itself: they say nothing about the session.
const MESSAGE_CODES: [i64; 3] = [-32_700, -32_601, -32_602];

/// Maximum size in bytes of a message that can say that a session is unknown.
const MAX_REFUSAL_BYTES: usize = 4 << 10;

/// What a failed request says about its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionFate {
    /// The server does not know the session, and did not run the request.
    Forgotten,
    /// The server does not know the session, or the error is the result of the request.
    Ambiguous,
    /// The server may have lost the session, and the request may have run.
    Uncertain,
    /// Nothing.
    Known,
}

/// The failure of one attempt to send a request.
#[derive(Debug)]
pub(super) struct ExchangeFailure {
    pub(super) fate: SessionFate,
    /// Whether the server did not read the request, because it has other sessions or revisions than
    /// the handshake agreed on.
    pub(super) is_outdated: bool,
    pub(super) error: RequestError,
}

impl From<RequestError> for ExchangeFailure {
    fn from(error: RequestError) -> Self {
        Self { fate: SessionFate::Known, is_outdated: false, error }
    }
}

impl ExchangeFailure {
    /// Converts a response without a success status to the request with this id.
    ///
    /// Servers report an unknown session in many ways. Those that name the request in their error
    /// have read it, and the error may be that of a tool.
    pub(super) fn from_status(failure: StatusFailure, id: Option<u64>) -> Self {
        let (code, message) = match &failure.error {
            RequestError::ErrorResponse(error) => (Some(error.code), &*error.message),
            RequestError::Protocol(ProtocolError::HttpStatus { body, .. }) => (None, &**body),
            RequestError::Protocol(_)
            | RequestError::TooLarge { .. }
            | RequestError::Unavailable { .. }
            | RequestError::Timeout => (None, ""),
        };
        let is_own = id.is_some() && failure.id == id;
        let refused = match &failure.error {
            RequestError::ErrorResponse(error) if is_own => fate_by_words(error),
            _ => SessionFate::Forgotten,
        };
        let fate = match failure.status {
            // Without a challenge, which the client for tokens handles.
            401 | 404 | 410 => refused,
            400..=499 if names_unknown_session(message) => refused,
            400 if !is_own && code.is_some_and(|code| !MESSAGE_CODES.contains(&code)) => {
                SessionFate::Forgotten
            }
            500 if !(is_own && code.is_some()) => SessionFate::Uncertain,
            _ => SessionFate::Known,
        };
        let is_outdated = failure.status == 400
            && !is_own
            && (names_unknown_session(message) || names_revision(message));
        Self { fate, is_outdated, error: failure.error }
    }

    /// Returns the failure of a request whose successful HTTP response contains this message in place
    /// of the response to the request.
    pub(super) fn from_other_message(text: &[u8], id: u64) -> Self {
        refused_session(text, Some(id)).unwrap_or_else(|| missing_response().into())
    }
}

/// Returns the failure if the message, the response to the request with this id, says that the session
/// is unknown.
pub(super) fn refused_session(text: &[u8], id: Option<u64>) -> Option<ExchangeFailure> {
    if text.len() > MAX_REFUSAL_BYTES {
        return None;
    }
    let mut message: Value = serde_json::from_slice(text).ok()?;
    if let Some([only]) = message.as_array_mut().map(Vec::as_mut_slice) {
        message = only.take();
    }
    let error = message.get("error").filter(|_| message.get("method").is_none())?;
    let words = error.get("message").unwrap_or(error).as_str()?;
    let is_own = id.is_some() && message.get("id").and_then(Value::as_u64) == id;
    let error = error.get("code").and_then(Value::as_i64).map_or_else(missing_response, |code| {
        let message = words.to_owned();
        RequestError::ErrorResponse(ErrorObject { code, message, data: None })
    });
    let fate = match &error {
        RequestError::ErrorResponse(error) if is_own => fate_by_words(error),
        _ => SessionFate::Forgotten,
    };
    names_unknown_session(words).then_some(ExchangeFailure { fate, is_outdated: false, error })
}

/// Returns whether a refusal is about the revision of the protocol.
fn names_revision(words: &str) -> bool {
    words.to_lowercase().contains("protocol version")
}

/// Returns what an error that names its request says about the session.
fn fate_by_words(error: &ErrorObject) -> SessionFate {
    match plainly_refuses_session(error) {
        true => SessionFate::Forgotten,
        false => SessionFate::Ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(status: u16, id: Option<u64>, code: Option<i64>, text: &str) -> SessionFate {
        let error = match code {
            Some(code) => RequestError::ErrorResponse(ErrorObject {
                code,
                message: text.to_owned(),
                data: None,
            }),
            None => RequestError::Protocol(ProtocolError::HttpStatus { status, body: text.into() }),
        };
        ExchangeFailure::from_status(StatusFailure { status, id, error }, Some(7)).fate
    }

    #[test]
    fn a_refusal_that_can_only_mean_an_unknown_session_is_recognized() {
        use SessionFate::{Ambiguous, Forgotten, Known, Uncertain};
        let own = Some(7);
        for (expected, status, id, code, text) in [
            (Forgotten, 404, None, None, "404 page not found"),
            (Forgotten, 404, None, Some(-32_000), "Not Found"),
            (Forgotten, 404, own, Some(-32_001), "Session not found"),
            (Ambiguous, 404, own, Some(-32_001), "session 7f not found"),
            (Ambiguous, 404, own, Some(-32_602), "project not found"),
            (Ambiguous, 401, own, Some(-32_000), "card declined"),
            (Ambiguous, 400, own, Some(-32_602), "session_id is required"),
            (Forgotten, 410, None, None, "gone"),
            (Forgotten, 401, None, None, "unauthorized"),
            (Forgotten, 400, None, None, "Invalid session ID"),
            (Forgotten, 400, None, Some(-32_000), "Bad Request: Server not initialized"),
            (Forgotten, 400, Some(0), Some(-32_600), "Bad Request"),
            (Ambiguous, 403, own, Some(-32_000), "Session expired"),
            (Known, 400, None, Some(-32_602), "text too long"),
            (Known, 400, own, Some(-32_000), "out of range"),
            (Known, 400, None, None, "bad request"),
            (Known, 403, None, None, "plan does not include MCP"),
            (Uncertain, 500, None, None, "internal error"),
            (Uncertain, 500, None, Some(-32_001), "Session not found"),
            (Known, 500, own, Some(-32_603), "database down"),
            (Known, 502, None, None, "session not found"),
        ] {
            assert_eq!(fate(status, id, code, text), expected, "{status} {text}");
        }
    }

    #[test]
    fn a_message_in_place_of_the_response_is_recognized_by_its_words() {
        for text in [
            r#"{"error":"Session not found"}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"unknown session"}}"#,
            r#"[{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"Session not found"}}]"#,
        ] {
            let fate = refused_session(text.as_bytes(), Some(7)).unwrap().fate;
            assert_eq!(fate, SessionFate::Forgotten, "{text}");
        }
        for text in [
            r#"{"error":"boom"}"#,
            r#"{"jsonrpc":"2.0","method":"x","error":"session not found"}"#,
            "session not found",
        ] {
            assert!(refused_session(text.as_bytes(), Some(7)).is_none(), "{text}");
        }
    }
}

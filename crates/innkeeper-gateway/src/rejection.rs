//! An HTTP response to a request that reaches no server.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::json;

/// The JSON-RPC error code of a rejection: the first code that JSON-RPC leaves to servers. The
/// status contains the reason.
const REJECTION_CODE: i32 = -32000;

/// An HTTP response with a JSON-RPC error as its body. No part of the request was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection(Box<RejectedResponse>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct RejectedResponse {
    status: StatusCode,
    headers: HeaderMap,
    message: String,
}

impl Rejection {
    /// Creates a rejection. The message is for the developer of the client, and contains no text of
    /// the request.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self(Box::new(RejectedResponse { status, headers, message: message.into() }))
    }

    /// Adds the time after which the client can try again, in whole seconds and at least one.
    #[must_use]
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        self.0.headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        self
    }

    /// Adds the challenge of an authentication scheme; without a challenge that a header can
    /// contain, adds none.
    #[must_use]
    pub(crate) fn with_challenge(mut self, challenge: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(challenge) {
            self.0.headers.insert(WWW_AUTHENTICATE, value);
        }
        self
    }

    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// Ends the connection of HTTP/1.1 after the response.
    #[must_use]
    pub(crate) fn with_close(mut self) -> Self {
        self.0.headers.insert(CONNECTION, HeaderValue::from_static("close"));
        self
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the body: a JSON-RPC error response without an id, because the body of the request
    /// was not read.
    pub fn body(&self) -> Bytes {
        let error = json!({"code": REJECTION_CODE, "message": self.0.message});
        json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string().into()
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let body = self.body();
        (self.0.status, self.0.headers, body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_a_json_rpc_error_and_a_part_of_a_second_is_rounded_up() {
        let rejection = Rejection::new(StatusCode::FORBIDDEN, "no \"entry\"");
        let rejection = rejection.with_retry_after(Duration::from_millis(1001));
        let body: serde_json::Value = serde_json::from_slice(&rejection.body()).unwrap();
        assert_eq!(body["error"]["message"], "no \"entry\"");
        assert_eq!((&body["jsonrpc"], body["id"].is_null()), (&json!("2.0"), true));
        let response = rejection.clone().into_response();
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        assert_eq!(response.headers()[RETRY_AFTER], "2");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let at_once = rejection.with_retry_after(Duration::ZERO);
        assert_eq!(at_once.headers()[RETRY_AFTER], "1");
    }
}

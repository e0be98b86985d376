//! Starts a new session after the server forgot the old session.

use std::time::Duration;

use innkeeper_protocol::envelope::{self, Incoming, Message};
use innkeeper_protocol::sse::{SseDecoder, SseEvent};
use innkeeper_protocol::{ErrorObject, Revision, http, method, skim};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use super::post::strip_bom;
use super::session::{CONTROL_TIMEOUT, FailedReinitialize, HttpSession};
use super::session_state::InitializeRequest;
use super::status_error;
use crate::error::{ProtocolError, UnavailableReason};
use crate::session::RequestError;

/// Timeout for the `initialize` response: the default timeout of a first handshake.
const REINITIALIZE_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why no new session started.
#[derive(Debug)]
enum ReinitializeError {
    /// The request failed.
    Request(RequestError),
    /// The server returned an error.
    Rejected(ErrorObject),
    /// The server answered with a different revision than negotiated.
    RevisionChanged,
    /// The response is absent or invalid.
    InvalidResponse,
    /// The timeout expired.
    Timeout,
}

impl ReinitializeError {
    /// Returns why the session is lost. The server's message is dropped because it answers
    /// `initialize`, not the request that needs the session.
    fn into_reason(self) -> UnavailableReason {
        let not = |detail: &str| {
            UnavailableReason::ConnectionLost(
                format!("cannot re-establish the session: {detail}").into(),
            )
        };
        match self {
            Self::Request(RequestError::Unavailable { reason, .. }) => reason,
            Self::Request(RequestError::Protocol(ProtocolError::HttpStatus { status, .. })) => {
                not(&format!("HTTP {status}"))
            }
            Self::Request(RequestError::ErrorResponse(error)) | Self::Rejected(error) => {
                not(&format!("error {}", error.code))
            }
            Self::Request(RequestError::Protocol(_)) | Self::InvalidResponse => {
                not("invalid response")
            }
            Self::Request(RequestError::TooLarge { .. }) => not("the message is too large"),
            Self::RevisionChanged => not("different protocol revision"),
            Self::Request(RequestError::Timeout) | Self::Timeout => not("no response in time"),
        }
    }
}

impl HttpSession {
    /// Starts a new session in place of `expired`, unless another task already did. Tasks that wait for
    /// a failed attempt get its error, so that many calls do not ask one after the other.
    ///
    /// The error states that the caller's request was not sent.
    pub(super) async fn reinitialize(&self, expired: &HeaderValue) -> Result<(), RequestError> {
        let asked = Instant::now();
        let mut last_failure = self.reinitialize_lock.lock().await;
        let init_request =
            self.state.initialize_request().filter(|_| self.session_id().as_ref() == Some(expired));
        let Some(init_request) = init_request else { return Ok(()) };
        if let Some(failure) = last_failure.as_ref().filter(|failure| failure.ended > asked) {
            return Err(failure.request_error());
        }
        let server = self.inbound.server();
        tracing::warn!(server, "session expired, re-initializing");
        let initialized = timeout(REINITIALIZE_TIMEOUT, self.initialize(&init_request)).await;
        let headers = match initialized.unwrap_or(Err(ReinitializeError::Timeout)) {
            Ok(headers) => headers,
            Err(error) => {
                if matches!(error, ReinitializeError::RevisionChanged) {
                    self.mark_outdated();
                }
                let failure =
                    FailedReinitialize { ended: Instant::now(), reason: error.into_reason() };
                return Err(last_failure.insert(failure).request_error());
            }
        };
        let mut body = Vec::new();
        let _ = envelope::write_notification(&mut body, method::INITIALIZED, None::<&()>);
        let notification = self.send(self.build_post(headers.get(http::SESSION_ID), body.into()));
        let _ = timeout(CONTROL_TIMEOUT, notification).await;
        // Other tasks see the session only now. A caller that gave up earlier leaves the old
        // session for renewal.
        self.set_session(init_request, &headers);
        self.inbound.mark_reinitialized();
        Ok(())
    }

    /// Sends `initialize` again and returns the headers of a successful response.
    async fn initialize(
        &self,
        init_request: &InitializeRequest,
    ) -> Result<HeaderMap, ReinitializeError> {
        let response = self.send(self.build_post(None, init_request.body.clone())).await;
        let response = response.map_err(ReinitializeError::Request)?;
        if !response.status().is_success() {
            return Err(ReinitializeError::Request(status_error(response).await));
        }
        let headers = response.headers().clone();
        self.read_response(response, init_request.id).await?;
        Ok(headers)
    }

    /// Reads until the response to this request. The other content of the result is known from the
    /// first handshake.
    async fn read_response(
        &self,
        mut response: Response,
        id: u64,
    ) -> Result<(), ReinitializeError> {
        let limit = self.inbound.max_message_bytes();
        let revision = self.inbound.revision();
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let streamed =
            kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with(b"text/event-stream"));
        let mut decoder = SseDecoder::new(limit);
        let mut body = Vec::new();
        let mut read = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            read += chunk.len();
            if read > limit {
                return Err(ReinitializeError::InvalidResponse);
            }
            if !streamed {
                body.extend_from_slice(&chunk);
                continue;
            }
            decoder.feed(&chunk);
            while let Some(event) = decoder.next_event() {
                if let SseEvent::Message { name: "message", data, .. } = event
                    && let Some(judged) = match_response(data, id, revision)
                {
                    return judged;
                }
            }
        }
        match_response(strip_bom(&body), id, revision)
            .unwrap_or(Err(ReinitializeError::InvalidResponse))
    }
}

/// Returns whether the message responds to this request and starts a session; `None` for other
/// messages.
fn match_response(
    text: &[u8],
    id: u64,
    agreed: Option<Revision>,
) -> Option<Result<(), ReinitializeError>> {
    let all = match envelope::parse(text).ok()? {
        Message::Single(incoming) => vec![incoming],
        Message::Batch(all) => all.into_iter().flatten().collect(),
    };
    all.into_iter().find_map(|incoming| match incoming {
        Incoming::Response { id: response_id, outcome }
            if response_id.as_client_id() == Some(id) =>
        {
            let result = outcome.map_err(ReinitializeError::Rejected);
            Some(result.and_then(|result| check_revision(result, agreed)))
        }
        Incoming::Response { .. } | Incoming::Request { .. } | Incoming::Notification { .. } => {
            None
        }
    })
}

fn check_revision(result: &RawValue, agreed: Option<Revision>) -> Result<(), ReinitializeError> {
    let version = skim::member(result.get(), "protocolVersion");
    let version = version.and_then(|version| serde_json::from_str::<String>(version).ok());
    match (version, agreed) {
        (None, _) => Err(ReinitializeError::InvalidResponse),
        (Some(version), Some(agreed)) if version == agreed.as_str() => Ok(()),
        (Some(_), _) => Err(ReinitializeError::RevisionChanged),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use reqwest::header::HeaderName;

    use super::super::fuzz::{unused_state, unused_target};
    use super::*;

    use crate::session::{HostContext, Session, SessionContext, SessionLimits};

    #[test]
    fn only_a_result_in_the_negotiated_revision_establishes_another_session() {
        let agreed = "2025-11-25".parse().ok();
        let describe = |text: &str| match match_response(text.as_bytes(), 7, agreed) {
            None => "none".to_owned(),
            Some(Ok(())) => "begun".to_owned(),
            Some(Err(error)) => error.into_reason().to_string(),
        };
        let not =
            |detail: &str| format!("connection lost: cannot re-establish the session: {detail}");
        let result = r#"{"jsonrpc":"2.0","id":7,"result":{"protocolVersion":"2025-11-25"}}"#;
        let rejected =
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"call me instead"}}"#;
        for (text, expected) in [
            (result, "begun".to_owned()),
            (&format!("[{result}]"), "begun".to_owned()),
            (&result.replace("2025-11", "2025-06"), not("different protocol revision")),
            (&result.replace("2025-11-25", "3000-01-01"), not("different protocol revision")),
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, not("invalid response")),
            (rejected, not("error -32603")),
            (&result.replace('7', "8"), "none".to_owned()),
            (r#"{"jsonrpc":"2.0","method":"notifications/message"}"#, "none".to_owned()),
            ("", "none".to_owned()),
        ] {
            assert_eq!(describe(text), expected, "{text}");
        }
    }

    /// Returns a session whose messages have at most 200 bytes.
    fn http_session() -> HttpSession {
        let owner = SessionContext { server: "a".into(), host: HostContext::default() };
        let limits = SessionLimits { max_line_bytes: 200, ..SessionLimits::default() };
        let (session, inbound, _outbound) = Session::over_transport(owner, limits);
        session.set_revision(Revision::V2025_11_25);
        HttpSession::new(unused_target(), inbound, unused_state())
    }

    #[tokio::test]
    async fn requests_that_wait_for_a_new_session_end_with_the_attempt_that_fails() {
        let http_session = http_session();
        let expired = HeaderValue::from_static("s1");
        let headers =
            HeaderMap::from_iter([(HeaderName::from_static("mcp-session-id"), expired.clone())]);
        http_session.set_session(InitializeRequest { id: 7, body: Default::default() }, &headers);

        let mut attempt = http_session.reinitialize_lock.lock().await;
        let mut waiting = Box::pin(http_session.reinitialize(&expired));
        assert!((&mut waiting).now_or_never().is_none());
        let reason = UnavailableReason::ConnectionLost("reset".into());
        *attempt = Some(FailedReinitialize { ended: Instant::now(), reason: reason.clone() });
        drop(attempt);
        let reason_of = |result: Result<(), RequestError>| match result {
            Err(RequestError::Unavailable { reason, sent: false }) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(reason_of(waiting.await), reason);
        let own = reason_of(http_session.reinitialize(&expired).await);
        assert!(matches!(own, UnavailableReason::Unreachable { .. }), "a later one asks: {own}");
    }

    #[tokio::test]
    async fn a_response_of_any_number_of_chunks_is_read_up_to_the_limit() {
        let http_session = http_session();
        let read = async |bytes: usize| {
            let result = r#"{"jsonrpc":"2.0","id":7,"result":{"protocolVersion":"2025-11-25"}}"#;
            let body = format!("{}{result}", " ".repeat(bytes - result.len())).into_bytes();
            let chunks: Vec<_> =
                body.chunks(50).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect();
            let body = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
            http_session.read_response(::http::Response::new(body).into(), 7).await
        };
        assert!(read(200).await.is_ok());
        assert!(matches!(read(201).await, Err(ReinitializeError::InvalidResponse)));
    }

    #[test]
    fn the_reason_of_an_unavailable_server_is_that_of_the_session() {
        let reset = UnavailableReason::ConnectionLost("reset".into());
        let sent = RequestError::Unavailable { reason: reset.clone(), sent: true };
        assert_eq!(ReinitializeError::Request(sent).into_reason(), reset);
    }
}

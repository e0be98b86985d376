//! Asks a server whether it knows a session.
//!
//! The error of a tool can look like the refusal of a session: tools have sessions, orders and cards
//! of their own, and each server chooses its status codes and words. A `ping` reaches no tool.

use bytes::Bytes;
use innkeeper_protocol::sse::{SseDecoder, SseEvent};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use tokio::time::timeout;

use super::post::strip_bom;
use super::response_error::read_status_failure;
use super::session::{CONTROL_TIMEOUT, HttpSession};
use super::session_fate::{ExchangeFailure, SessionFate, refused_session};
use crate::session::RequestError;

/// Maximum number of bytes of the response that count.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// Its id is none of a request of the host.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":"session","method":"ping"}"#;

impl HttpSession {
    /// Returns what a `ping` in a session says about the session.
    pub(super) async fn ask_fate(&self, session: &HeaderValue) -> SessionFate {
        match timeout(CONTROL_TIMEOUT, self.ping_in(session)).await {
            Ok(Ok(fate)) => fate,
            Ok(Err(_)) | Err(_) => SessionFate::Uncertain,
        }
    }

    async fn ping_in(&self, session: &HeaderValue) -> Result<SessionFate, RequestError> {
        let ping = self.build_post(Some(session), Bytes::from_static(PING));
        let response = self.send_in_session(ping).await?;
        if !response.status().is_success() {
            let failure = read_status_failure(response).await;
            return Ok(ExchangeFailure::from_status(failure, None).fate);
        }
        Ok(if refuses(response).await { SessionFate::Forgotten } else { SessionFate::Known })
    }
}

/// Returns whether a response with a success status refuses the session.
async fn refuses(mut response: Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_streamed =
        kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with(b"text/event-stream"));
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        // A stream ends with the first message, or says no more about the session.
        if is_streamed || body.len() > MAX_RESPONSE_BYTES {
            break;
        }
    }
    if !is_streamed {
        return refused_session(strip_bom(&body), None).is_some();
    }
    let mut decoder = SseDecoder::new(MAX_RESPONSE_BYTES);
    decoder.feed(&body);
    while let Some(event) = decoder.next_event() {
        if let SseEvent::Message { data, .. } = event
            && !data.trim_ascii().is_empty()
        {
            return refused_session(data, None).is_some();
        }
    }
    false
}

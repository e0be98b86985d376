//! Fuzz target for HTTP responses.
//!
//! For any status, headers and body, the request must end at once, with the same result for any
//! chunk size.
//!
//! The first line of the input contains the status and the chunk size. The following lines are
//! headers. The body follows an empty line.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use innkeeper_config::Environment;
use innkeeper_protocol::{Revision, method};
use reqwest::{Body, Client, Response, Url};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::time::Instant;

use super::post::{PostRequest, handle_response};
use super::session::HttpSession;
use super::session_state::HttpSessionState;
use crate::session::{HostContext, OutgoingRequest, Session, SessionContext, SessionLimits};
use crate::transport::{HttpTarget, RemoteEndpoint, TransportKind, client};

/// The id of the request. Authors of inputs rely on the value.
const REQUEST_ID: u64 = 1;

/// Maximum length of a message in bytes. Small, so that short inputs exceed the limit.
const MAX_LINE_BYTES: usize = 1024;

/// Handles the input as the response to one request.
///
/// # Panics
///
/// Panics if the request does not end, or if the result depends on the chunk size.
pub fn http_response(input: &[u8]) {
    let Some((head, body)) = split_input(input) else { return };
    let Ok(head) = std::str::from_utf8(head) else { return };
    let mut lines = head.lines();
    let first = lines.next().and_then(|line| line.split_once(' '));
    let numbers =
        first.and_then(|(status, chunk)| Some((status.parse().ok()?, chunk.parse::<u8>().ok()?)));
    let Some((status, chunk)) = numbers else { return };
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let whole = runtime.block_on(request_outcome(status, &headers, body, usize::MAX));
    let parts = runtime.block_on(request_outcome(status, &headers, body, usize::from(chunk) + 1));
    assert_eq!(whole, parts);
}

/// Splits the input into head and body.
fn split_input(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = input.windows(2).position(|pair| pair == b"\n\n")?;
    Some((&input[..end], &input[end + 2..]))
}

/// Returns the result of the request; `None` for an invalid HTTP head.
async fn request_outcome(
    status: u16,
    headers: &[(&str, &str)],
    body: &[u8],
    chunk: usize,
) -> Option<String> {
    let chunks: Vec<io::Result<Bytes>> =
        body.chunks(chunk).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
    let body = Body::wrap_stream(futures_util::stream::iter(chunks));
    // A date in `Retry-After` is relative to this one, not to the clock.
    let date = "Thu, 01 Jan 2026 00:00:00 GMT";
    let mut response = http::Response::builder().status(status).header("date", date);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let response = Response::from(response.body(body).ok()?);

    let owner = SessionContext { server: "fuzzed".into(), host: HostContext::default() };
    let limits = SessionLimits { max_line_bytes: MAX_LINE_BYTES, ..SessionLimits::default() };
    let (session, inbound, _orders) = Session::over_transport(owner, limits);
    // In the modern era no stream is resumed, so the test needs no server.
    session.set_revision(Revision::LATEST);
    let params = json!({});
    let deadline = Instant::now() + Duration::from_hours(1);
    let pending_request =
        session.request(OutgoingRequest::new(REQUEST_ID, method::TOOLS_CALL, &params, deadline));
    let mut pending_request = std::pin::pin!(pending_request);
    assert!(pending_request.as_mut().now_or_never().is_none(), "response before the request");

    let http_session = HttpSession::new(unused_target(), inbound, unused_state());
    let body = Bytes::new();
    let request = PostRequest {
        id: REQUEST_ID,
        method: method::TOOLS_CALL.into(),
        name: None,
        param_headers: Vec::new(),
        body,
    };
    if let Err(failure) = handle_response(&http_session, response, &request, None).await {
        http_session.inbound.fail_request(REQUEST_ID, failure.error);
    }
    let ended = pending_request.now_or_never().expect("the request has ended");
    Some(match ended {
        Ok(result) => result.into_inner().get().to_owned(),
        Err(error) => format!("{error:?}"),
    })
}

/// Returns the state of a session before its handshake.
pub(super) fn unused_state() -> Arc<HttpSessionState> {
    Arc::new(HttpSessionState::new(String::new()))
}

/// Returns a target to which the test sends nothing.
pub(super) fn unused_target() -> Arc<HttpTarget> {
    static CLIENT: OnceLock<(Client, Url)> = OnceLock::new();
    let (client, url) = CLIENT.get_or_init(|| {
        let environment = Environment::from_pairs([("PATH", "")]);
        let remote = RemoteEndpoint::new(
            TransportKind::Http,
            "http://127.0.0.1:9/",
            &Default::default(),
            &environment,
        );
        let remote = remote.expect("an address");
        (client::build_client(&remote).expect("a client"), remote.url.clone())
    });
    let client = client.clone();
    let url = url.clone();
    let server = "fuzz".into();
    let headers = Default::default();
    Arc::new(HttpTarget::new(server, client, url, headers))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn an_input_is_split_at_its_first_empty_line() {
        let parts = super::split_input(b"200 7\na: b\n\nbody\n\n");
        assert_eq!(parts, Some((&b"200 7\na: b"[..], &b"body\n\n"[..])));
        assert_eq!(super::split_input(b"200 7\na: b\n"), None);
    }

    /// Fault 7.
    #[tokio::test]
    async fn a_byte_order_mark_before_a_response_is_ignored() {
        let body =
            format!("\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}", super::REQUEST_ID);
        let json = [("content-type", "application/json")];
        let ended = super::request_outcome(200, &json, body.as_bytes(), 7).await;
        assert_eq!(ended.as_deref(), Some("{}"));
    }

    #[test]
    fn every_http_response_of_the_corpus_ends_its_request_the_same_way_whole_and_in_parts() {
        let directory =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/http_response");
        let inputs: Vec<_> = std::fs::read_dir(directory).unwrap().flatten().collect();
        assert!(!inputs.is_empty());
        for input in inputs {
            println!("{}", input.path().display());
            super::http_response(&std::fs::read(input.path()).unwrap());
        }
    }
}

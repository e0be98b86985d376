//! Sends messages as POST requests and reads the responses.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use innkeeper_protocol::{Revision, http, method};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use tokio::time::{sleep, timeout};

use super::events::{ResumeState, read_events};
use super::response_error::read_status_failure;
use super::session::HttpSession;
use super::session_fate::{ExchangeFailure, SessionFate};
use super::session_state::InitializeRequest;
use super::{NegotiatedEra, StreamEnd, send_error};
use crate::error::{ProtocolError, UnavailableReason};
use crate::session::RequestError;
use crate::text::display_safe;

/// Timeout for an outgoing notification or response, including the wait for a permit. No caller
/// waits for it.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of consecutive streams without data before the request fails.
const MAX_EMPTY_STREAMS: u32 = 5;

/// Maximum length of a displayed content type, in characters.
const MAX_SHOWN_CHARS: usize = 80;

/// A JSON-RPC request to send.
pub(super) struct PostRequest {
    pub(super) id: u64,
    pub(super) method: Cow<'static, str>,
    pub(super) name: Option<Box<str>>,
    pub(super) param_headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

/// Sends a request. Guarantees a response or an error for the request.
pub(super) async fn send_request(
    http_session: Arc<HttpSession>,
    request: PostRequest,
) -> Option<u64> {
    let id = request.id;
    tokio::select! {
        result = exchange(&http_session, &request) => {
            if let Err(fault) = result {
                http_session.inbound.fail_request(id, fault);
                if http_session.is_outdated() {
                    let cause = "the server has other sessions or revisions now".into();
                    http_session.inbound.close(UnavailableReason::ConnectionLost(cause));
                }
            }
        }
        () = http_session.inbound.wait_until_unawaited(id) => {}
    }
    Some(id)
}

/// Sends a message without a response.
pub(super) async fn notify(http_session: &HttpSession, method: &str, body: Bytes) -> Option<u64> {
    let notification = async {
        let _turn = http_session.notification_permits.acquire().await;
        let session = http_session.session_id();
        http_session.send(http_session.build_post(session.as_ref(), body)).await
    };
    let sent = timeout(NOTIFY_TIMEOUT, notification).await;
    let status = sent.ok().and_then(Result::ok).map(|response| response.status());
    if status.is_none_or(|status| !status.is_success()) {
        let server = http_session.inbound.server();
        let status = status.map(|status| status.as_u16());
        tracing::debug!(server, method, status, "message not accepted by the server");
    }
    None
}

async fn exchange(http_session: &HttpSession, request: &PostRequest) -> Result<(), RequestError> {
    if request.method != method::INITIALIZE {
        http_session.replace_doubtful_session().await?;
    }
    let mut renewed = false;
    loop {
        let session = http_session.session_id().filter(|_| request.method != method::INITIALIZE);
        let post = http_session.build_post(session.as_ref(), request.body.clone());
        let post = with_modern_headers(http_session, post, request);
        let is_legacy = http_session.era() == NegotiatedEra::Legacy;
        let renewable = session.as_ref().filter(|_| !renewed && is_legacy);
        let response = match renewable {
            Some(_) => http_session.send_in_session(post).await?,
            None => http_session.send(post).await?,
        };
        let response = handle_response(http_session, response, request, session.as_ref());
        let Err(failure) = response.await else {
            return Ok(());
        };
        let Some(expired) = renewable else {
            let is_handshake =
                [method::INITIALIZE, method::SERVER_DISCOVER].contains(&&*request.method);
            if failure.is_outdated && session.is_none() && !is_handshake {
                http_session.mark_outdated();
            }
            return Err(failure.error);
        };
        let fate = match failure.fate {
            SessionFate::Ambiguous => Box::pin(http_session.ask_fate(expired)).await,
            fate => fate,
        };
        match fate {
            SessionFate::Forgotten => {
                renewed = true;
                Box::pin(http_session.reinitialize(expired)).await?;
            }
            SessionFate::Uncertain | SessionFate::Ambiguous => {
                http_session.doubt_session();
                return Err(failure.error);
            }
            SessionFate::Known => return Err(failure.error),
        }
    }
}

/// Reads a response with a success status to a request of this session, or returns the error of another
/// status.
pub(super) async fn handle_response(
    http_session: &HttpSession,
    response: Response,
    request: &PostRequest,
    session: Option<&HeaderValue>,
) -> Result<(), ExchangeFailure> {
    if response.status().is_success() {
        read_response(http_session, response, request, session).await
    } else {
        Err(ExchangeFailure::from_status(read_status_failure(response).await, Some(request.id)))
    }
}

/// Adds the headers of the modern era.
fn with_modern_headers(
    http_session: &HttpSession,
    post: RequestBuilder,
    request: &PostRequest,
) -> RequestBuilder {
    let discover = request.method == method::SERVER_DISCOVER;
    if http_session.era() != NegotiatedEra::Modern && !discover {
        return post;
    }
    let mut post = post.header(http::METHOD, &*request.method);
    if discover && http_session.era() == NegotiatedEra::Unknown {
        post = post.header(http::PROTOCOL_VERSION, Revision::LATEST.as_str());
    }
    if let (Some(name), Some(_)) = (&request.name, http::name_member(&request.method)) {
        post = post.header(http::NAME, &*http::encode_value(name));
    }
    for (name, value) in &request.param_headers {
        post = post.header(name, value);
    }
    post
}

/// Reads the response in its content type.
async fn read_response(
    http_session: &HttpSession,
    response: Response,
    request: &PostRequest,
    session: Option<&HeaderValue>,
) -> Result<(), ExchangeFailure> {
    if request.method == method::INITIALIZE {
        let init_request = InitializeRequest { id: request.id, body: request.body.clone() };
        http_session.set_session(init_request, response.headers());
    }
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = String::from_utf8_lossy(kind).to_ascii_lowercase();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if let Some(coding) = response.headers().get(CONTENT_ENCODING)
        && coding != "identity"
    {
        let coding = String::from_utf8_lossy(coding.as_bytes()).into_owned();
        return Err(content_type_error(&format!("{essence} with encoding {coding}")).into());
    }
    match essence {
        // Some servers name JSON in another way, or not at all.
        "application/json" | "application/json-rpc" | "text/json" | "" => {
            read_json(http_session, response, request.id).await
        }
        "text/event-stream" => read_stream(http_session, response, request, session).await,
        _ if response.content_length() == Some(0) => Err(missing_response().into()),
        _ => Err(content_type_error(essence).into()),
    }
}

fn content_type_error(kind: &str) -> RequestError {
    let kind: String = kind.chars().take(MAX_SHOWN_CHARS).collect();
    RequestError::Protocol(ProtocolError::UnexpectedContentType(display_safe(&kind).into()))
}

pub(super) fn missing_response() -> RequestError {
    RequestError::Protocol(ProtocolError::MissingResponse)
}

/// Reads a JSON response.
async fn read_json(
    http_session: &HttpSession,
    mut response: Response,
    id: u64,
) -> Result<(), ExchangeFailure> {
    let limit = http_session.inbound.max_message_bytes();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| send_error(&error))? {
        if body.len() + chunk.len() > limit {
            return Err(RequestError::Protocol(ProtocolError::TooLarge { limit }).into());
        }
        body.extend_from_slice(&chunk);
    }
    let body = strip_bom(&body);
    http_session.inbound.receive_http_message(body, Some(id)).await;
    match http_session.inbound.is_awaited(id) {
        true => Err(ExchangeFailure::from_other_message(body, id)),
        false => Ok(()),
    }
}

/// Removes the byte order mark.
pub(super) fn strip_bom(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text)
}

/// Reads an SSE response, and the streams that resume it after a disconnect. The ids of its events mean
/// nothing in another session.
async fn read_stream(
    http_session: &HttpSession,
    mut response: Response,
    request: &PostRequest,
    session: Option<&HeaderValue>,
) -> Result<(), ExchangeFailure> {
    let mut resume = ResumeState::default();
    let mut fruitless = 0;
    loop {
        let end = read_events(&http_session.inbound, response, Some(request.id), &mut resume).await;
        let cause = match end {
            StreamEnd::Responded => return Ok(()),
            StreamEnd::SessionRefused(failure) => return Err(*failure),
            StreamEnd::Closed => "the stream ended without the response".into(),
            StreamEnd::Broken(cause) => cause,
        };
        let cause = match &resume.last_words {
            Some(words) => format!("{cause}; the server said: {words}").into(),
            None => cause,
        };
        let connection_lost = RequestError::Unavailable {
            reason: UnavailableReason::ConnectionLost(cause),
            sent: true,
        };
        fruitless = if resume.had_data { 0 } else { fruitless + 1 };
        let legacy = http_session.era() != NegotiatedEra::Modern;
        let Some(last) =
            resume.last_event_id.as_deref().filter(|_| legacy && fruitless < MAX_EMPTY_STREAMS)
        else {
            return Err(connection_lost.into());
        };
        let Ok(last) = HeaderValue::from_str(last) else { return Err(connection_lost.into()) };
        sleep(resume.backoff()).await;
        response = loop {
            let current = http_session.session_id();
            if request.method != method::INITIALIZE && current.as_ref() != session {
                return Err(connection_lost.into());
            }
            let resume_request = http_session
                .build_request(Method::GET, current.as_ref())
                .header(http::LAST_EVENT_ID, last.clone());
            match Box::pin(http_session.send(resume_request)).await {
                Ok(response) if response.status().is_success() => break response,
                Ok(_) => return Err(connection_lost.into()),
                Err(error) => {
                    let RequestError::Unavailable { reason, .. } = error else {
                        return Err(error.into());
                    };
                    fruitless += 1;
                    if fruitless >= MAX_EMPTY_STREAMS
                        || matches!(reason, UnavailableReason::Unauthorized(_))
                    {
                        return Err(RequestError::Unavailable { reason, sent: true }.into());
                    }
                    sleep(resume.backoff()).await;
                }
            }
        };
    }
}

//! The older HTTP transport: an SSE stream and a POST endpoint.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use innkeeper_protocol::method;
use innkeeper_protocol::sse::{SseDecoder, SseEvent};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Response, Url};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::HttpTarget;
use super::http::{cancelled_notification, describe_error, last_words, status_error};
use crate::audit::AuditEvent;
use crate::error::UnavailableReason;
use crate::session::{
    CoopBudget, InboundSink, MessageKind, OutboundCommand, OutboundReceiver, RequestError,
};
use crate::tasks::TaskGroup;

/// Maximum number of concurrent POST requests for messages that are not requests: each needs a
/// connection, and others wait in the queue. `maxConcurrent` limits requests.
const MAX_CONCURRENT_POSTS: usize = 64;

/// Timeout for the POST of a message that is not a request. The POST of a request lasts until no
/// caller waits for the response, which arrives on the stream.
const POST_TIMEOUT: Duration = Duration::from_secs(30);

/// Carries messages until the session closes or the stream ends.
pub(super) async fn run(
    target: Arc<HttpTarget>,
    inbound: InboundSink,
    outbound: OutboundReceiver,
    alive: oneshot::Sender<()>,
) {
    let (endpoint_sender, endpoint) = watch::channel(None);
    let inbound = Arc::new(inbound);
    let reason = {
        let receiving = receive(&target, &inbound, &endpoint_sender);
        let sending = send_messages(&target, &inbound, &outbound, endpoint);
        tokio::select! {
            biased;
            lost = receiving => Some(lost),
            () = sending => None,
        }
    };
    if let Some(reason) = reason {
        inbound.close(reason);
    }
    drop(alive);
}

/// Reads the stream to the end and returns the reason of the end.
async fn receive(
    target: &HttpTarget,
    inbound: &InboundSink,
    endpoint_sender: &watch::Sender<Option<Url>>,
) -> UnavailableReason {
    let events = HeaderValue::from_static("text/event-stream");
    let mut headers = target.headers.clone();
    headers.insert(ACCEPT, events);
    let opened =
        target.send(target.client.get(target.url.configured.clone()).headers(headers)).await;
    let response = match opened {
        Ok(response) => response,
        Err(error) => return unavailable_reason(error),
    };
    if !response.status().is_success() {
        return unavailable_reason(status_error(response).await);
    }
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if !kind.starts_with(b"text/event-stream") {
        return UnavailableReason::ConnectionRejected("no SSE stream at the URL".into());
    }
    match read_events(target, inbound, response, endpoint_sender).await {
        Ok(None) => UnavailableReason::ConnectionLost("the SSE stream ended".into()),
        Ok(Some(words)) => {
            let text = format!("the SSE stream ended; the server said: {words}");
            UnavailableReason::ConnectionLost(text.into())
        }
        Err(reason) => reason,
    }
}

/// Reads the events to the end of the stream. Returns what the server said about the end.
async fn read_events(
    target: &HttpTarget,
    inbound: &InboundSink,
    mut response: Response,
    endpoint_sender: &watch::Sender<Option<Url>>,
) -> Result<Option<Box<str>>, UnavailableReason> {
    let mut words = None;
    let mut decoder = SseDecoder::new(inbound.max_message_bytes());
    let mut budget = CoopBudget::default();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| UnavailableReason::ConnectionLost(describe_error(&error)))?
    {
        decoder.feed(&chunk);
        while let Some(event) = decoder.next_event() {
            match event {
                SseEvent::Message { name: "endpoint", data, .. } => {
                    let endpoint = parse_endpoint(&target.url.configured, data)
                        .inspect_err(|reason| {
                            AuditEvent::AddressRefused { reason }.emit(inbound.server());
                        })
                        .map_err(UnavailableReason::ConnectionRejected)?;
                    endpoint_sender.send_replace(Some(endpoint));
                }
                SseEvent::Message { name: "message", data, .. } => {
                    inbound.receive_message(data).await;
                }
                SseEvent::Message { name: "error", data, .. } => words = last_words(data),
                SseEvent::Message { .. } => {}
                SseEvent::TooLong { head } => inbound.receive_too_long(head).await,
            }
        }
        if decoder.is_discarding() {
            inbound.count_discarded(chunk.len() as u64).await;
        }
        budget.consume(chunk.len()).await;
    }
    Ok(words)
}

/// Parses the POST endpoint. Another origin would receive the headers for this origin.
fn parse_endpoint(base: &Url, data: &[u8]) -> Result<Url, Box<str>> {
    let text = std::str::from_utf8(data).unwrap_or_default().trim();
    let Ok(url) = base.join(text) else { return Err("invalid endpoint URL".into()) };
    if url.origin() == base.origin() {
        Ok(url)
    } else {
        Err("the endpoint has another origin".into())
    }
}

/// Posts every message after the server sent the endpoint. Ends with the session.
async fn send_messages(
    target: &Arc<HttpTarget>,
    inbound: &Arc<InboundSink>,
    outbound: &OutboundReceiver,
    mut endpoint: watch::Receiver<Option<Url>>,
) {
    let url = tokio::select! {
        found = endpoint.wait_for(Option::is_some) => found.ok().and_then(|url| url.clone()),
        () = outbound.closed() => None,
    };
    let Some(url) = url else { return };
    let mut requests = TaskGroup::new();
    let mut notifications = TaskGroup::new();
    loop {
        let command = tokio::select! {
            biased;
            Some(()) = requests.next() => continue,
            Some(()) = notifications.next() => continue,
            order = outbound.next(), if notifications.len() < MAX_CONCURRENT_POSTS => order,
            () = outbound.closed(), if notifications.len() >= MAX_CONCURRENT_POSTS => None,
        };
        let (kind, body) = match command {
            None => return,
            Some(OutboundCommand::Forget { notify_server: false, .. }) => continue,
            Some(OutboundCommand::Forget { id, .. }) => (
                MessageKind::Notification { method: method::CANCELLED.into() },
                cancelled_notification(id),
            ),
            Some(OutboundCommand::Send(message)) => message.into_parts(),
        };
        let first = matches!(&kind, MessageKind::Notification { method } if &**method == method::INITIALIZED);
        let id = if let MessageKind::Request { id, .. } = kind { Some(id) } else { None };
        let target = target.clone();
        let inbound = inbound.clone();
        let url = url.clone();
        let post = async move {
            let posting = post(&target, url, body);
            match id {
                Some(id) => await_post(&inbound, id, posting).await,
                None if matches!(timeout(POST_TIMEOUT, posting).await, Ok(Ok(()))) => {}
                None => {
                    tracing::debug!(
                        server = inbound.server(),
                        "message not accepted by the server"
                    );
                }
            }
        };
        if first {
            // No request may be sent before the server received `initialized`.
            post.await;
        } else {
            let group = if id.is_some() { &mut requests } else { &mut notifications };
            group.spawn(post);
        }
    }
}

/// Fails the request if the POST fails.
async fn await_post(
    inbound: &InboundSink,
    id: u64,
    posting: impl Future<Output = Result<(), RequestError>>,
) {
    tokio::select! {
        taken = posting => {
            if let Err(fault) = taken {
                inbound.fail_request(id, fault);
            }
        }
        () = inbound.wait_until_unawaited(id) => {}
    }
}

async fn post(target: &HttpTarget, url: Url, body: Bytes) -> Result<(), RequestError> {
    let json = HeaderValue::from_static("application/json");
    let headers = target.headers.clone();
    let post = target.client.post(url).headers(headers).header(CONTENT_TYPE, json).body(body);
    let response = target.send(post).await?;
    if response.status().is_success() { Ok(()) } else { Err(status_error(response).await) }
}

/// Converts an error into the reason of a lost connection.
fn unavailable_reason(request_error: RequestError) -> UnavailableReason {
    match request_error {
        RequestError::Unavailable { reason, .. } => reason,
        RequestError::Protocol(protocol_error) => {
            UnavailableReason::ConnectionRejected(protocol_error.to_string().into())
        }
        RequestError::ErrorResponse(error) => {
            UnavailableReason::ConnectionRejected(error.message.into())
        }
        RequestError::TooLarge { .. } => {
            UnavailableReason::ConnectionRejected("the message is too large".into())
        }
        RequestError::Timeout => UnavailableReason::ConnectionLost("no response in time".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::FutureExt;
    use tokio::time::{Instant, sleep};

    use super::*;

    use crate::session::{HostContext, OutgoingRequest, Session, SessionContext, SessionLimits};

    /// Some servers respond to a POST only after the tool ended.
    #[tokio::test(start_paused = true)]
    async fn a_post_that_is_held_lasts_as_long_as_somebody_waits_for_the_answer() {
        let owner = SessionContext { server: "holds".into(), host: HostContext::default() };
        let (session, inbound, _orders) = Session::over_transport(owner, SessionLimits::default());
        let deadline = Instant::now() + Duration::from_hours(1);
        let outgoing = OutgoingRequest::new(1, method::TOOLS_CALL, &(), deadline);
        let mut pending_request = Box::pin(session.request(outgoing));
        assert!(pending_request.as_mut().now_or_never().is_none());
        let long = POST_TIMEOUT * 10;
        await_post(&inbound, 1, sleep(long).map(Ok)).await;
        assert!(
            pending_request.as_mut().now_or_never().is_none(),
            "the post is taken, the answer to come"
        );
        drop(pending_request);
        let dropped_at = Instant::now();
        await_post(&inbound, 1, pending()).await;
        assert!(dropped_at.elapsed() <= POST_TIMEOUT, "nobody waits any more");
    }
}

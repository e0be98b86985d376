//! The Streamable HTTP transport: a POST per message, responses as JSON or SSE.

mod events;
#[cfg(any(test, fuzzing))]
pub(in crate::transport) mod fuzz;
mod listen;
mod post;
mod reinitialize;
mod response_error;
mod session;
mod session_check;
mod session_fate;
mod session_state;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use innkeeper_protocol::{envelope, method};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::HttpTarget;
use crate::session::{InboundSink, MessageKind, OutboundCommand, OutboundReceiver};
use crate::tasks::TaskGroup;
use events::StreamEnd;
use session::{HttpSession, NegotiatedEra};

pub(super) use events::last_words;
pub(super) use response_error::{describe_error, send_error, status_error};
pub(crate) use session_state::HttpSessionState;

/// Maximum number of pending outgoing notifications and responses. No caller waits for them, so
/// further ones to a server that accepts none are dropped. `maxConcurrent` limits requests.
const MAX_PENDING_NOTIFICATIONS: usize = 1024;

/// Time that the first requests wait for the server to open the SSE stream for its own messages.
const STREAM_OPEN_TIMEOUT: Duration = Duration::from_millis(500);

/// Carries messages until the session closes, then ends the session on the server.
pub(super) async fn run(
    target: Arc<HttpTarget>,
    inbound: InboundSink,
    outbound: OutboundReceiver,
    state: Arc<HttpSessionState>,
    alive: oneshot::Sender<()>,
) {
    let http_session = Arc::new(HttpSession::new(target, inbound, state));
    let mut posts = TaskGroup::new();
    let mut requests: HashMap<u64, AbortHandle> = HashMap::new();
    let mut is_open = true;
    if http_session.state.continued().is_some() {
        is_open = open_stream(&http_session, &mut posts, &outbound).await;
    }
    while is_open {
        let command = tokio::select! {
            biased;
            Some(done) = posts.next() => {
                if let Some(id) = done {
                    requests.remove(&id);
                }
                continue;
            }
            order = outbound.next() => order,
        };
        let has_capacity = posts.len().saturating_sub(requests.len()) < MAX_PENDING_NOTIFICATIONS;
        match command {
            None => break,
            Some(OutboundCommand::Forget { id, notify_server }) => {
                if let Some(post) = requests.remove(&id) {
                    post.abort();
                }
                // In the modern era the end of the response stream cancels the request.
                if notify_server && has_capacity && http_session.era() == NegotiatedEra::Legacy {
                    let body = cancelled_notification(id);
                    let http_session = http_session.clone();
                    let method = method::CANCELLED;
                    posts.spawn(async move { post::notify(&http_session, method, body).await });
                }
            }
            Some(OutboundCommand::Send(message)) => {
                let (kind, body) = message.into_parts();
                match kind {
                    MessageKind::Request { id, method, name, header_params } => {
                        let request = post::PostRequest {
                            id,
                            method,
                            name,
                            param_headers: header_params,
                            body,
                        };
                        // In a box: a task moves its future several times.
                        let sending = Box::pin(post::send_request(http_session.clone(), request));
                        requests.insert(id, posts.spawn(sending));
                    }
                    MessageKind::Notification { method } if &*method == method::INITIALIZED => {
                        // No request may be sent before the server received `initialized`.
                        tokio::select! {
                            _ = post::notify(&http_session, &method, body) => {}
                            () = outbound.closed() => break,
                        }
                        is_open = open_stream(&http_session, &mut posts, &outbound).await;
                    }
                    MessageKind::Notification { .. } | MessageKind::Response if !has_capacity => {
                        let server = http_session.inbound.server();
                        tracing::debug!(
                            server,
                            "outgoing message dropped: too many pending messages"
                        );
                    }
                    MessageKind::Notification { method } => {
                        let http_session = http_session.clone();
                        posts
                            .spawn(async move { post::notify(&http_session, &method, body).await });
                    }
                    MessageKind::Response => {
                        let http_session = http_session.clone();
                        posts.spawn(async move { post::notify(&http_session, "", body).await });
                    }
                }
            }
        }
    }
    drop(posts);
    http_session.end_session().await;
    drop(alive);
}

/// Opens the stream for messages of the server: some servers lose messages that they send before it is
/// open. Returns whether the session is still open.
async fn open_stream(
    http_session: &Arc<HttpSession>,
    posts: &mut TaskGroup<Option<u64>>,
    outbound: &OutboundReceiver,
) -> bool {
    let (opened, open) = oneshot::channel();
    posts.spawn(listen::listen(http_session.clone(), opened));
    tokio::select! {
        _ = timeout(STREAM_OPEN_TIMEOUT, open) => true,
        () = outbound.closed() => false,
    }
}

/// Returns the body of the `notifications/cancelled` notification.
pub(super) fn cancelled_notification(id: u64) -> Bytes {
    let mut body = Vec::new();
    let params = serde_json::json!({ "requestId": id });
    // Serialization of strings and numbers cannot fail.
    let _ = envelope::write_notification(&mut body, method::CANCELLED, Some(&params));
    body.truncate(body.trim_ascii_end().len());
    body.into()
}

#[cfg(test)]
mod tests;

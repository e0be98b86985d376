//! The change subscription of the modern era (`subscriptions/listen`).

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::ServerCapabilities;
use innkeeper_protocol::{Era, method};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::list_ttls;
use super::meta::Meta;
use super::subscriptions::Subscriptions;
use crate::backoff::ReopenBackoff;
use crate::connection::Connection;
use crate::deadline::MAX_REQUEST_TIMEOUT;
use crate::error::ProtocolError;
use crate::session::{OutgoingRequest, RequestError, RequestResult};
use crate::tasks::BackgroundTasks;

/// Time to wait for the acknowledgement of the subscription before the lists are fetched anyway.
const STARTUP_ACK_TIMEOUT: Duration = Duration::from_millis(500);

/// Time to wait for an acknowledgement before the subscription counts as active without one.
const ACK_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Serialize)]
struct ListenParams<'a> {
    notifications: SubscriptionFilter,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubscriptionFilter {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
}

impl SubscriptionFilter {
    fn new(capabilities: &ServerCapabilities, subscriptions: &Subscriptions) -> Option<Self> {
        let resources = capabilities.resources.unwrap_or_default();
        let filter = Self {
            tools_list_changed: capabilities.tools.is_some_and(|list| list.list_changed),
            prompts_list_changed: capabilities.prompts.is_some_and(|list| list.list_changed),
            resources_list_changed: resources.list_changed,
            resource_subscriptions: subscriptions.all(),
        };
        let lists = filter.tools_list_changed
            || filter.prompts_list_changed
            || filter.resources_list_changed;
        (lists || !filter.resource_subscriptions.is_empty()).then_some(filter)
    }
}

/// Subscribes to changes of a server of the modern era until its session closes. Returns when the
/// server acknowledges or rejects the subscription, so that the lists fetched afterwards include
/// all earlier changes. Waits at most [`STARTUP_ACK_TIMEOUT`]; if the acknowledgement arrives
/// later, all lists count as changed.
pub(crate) async fn start(
    connection: &Arc<Connection>,
    capabilities: &ServerCapabilities,
    tasks: &BackgroundTasks,
) {
    if connection.negotiated.revision.era() == Era::Legacy {
        return;
    }
    let (first, first_ack) = oneshot::channel();
    let connection = connection.clone();
    let capabilities = capabilities.clone();
    tasks.spawn(async move {
        tokio::select! {
            biased;
            _ = connection.session.closed() => {}
            () = async {
                tokio::join!(
                    listen(&connection, &capabilities, first),
                    list_ttls::refresh_expired(&connection),
                );
            } => {}
        }
    });
    let _ = timeout(STARTUP_ACK_TIMEOUT, first_ack).await;
}

/// Keeps the request open; returns if the server does not support notifications. Signals `first` at
/// the first acknowledgement, and drops it if the server does not support notifications.
async fn listen(
    connection: &Connection,
    capabilities: &ServerCapabilities,
    first: oneshot::Sender<()>,
) {
    let server = &*connection.server;
    let wishes = &connection.freshness.subscriptions;
    let mut backoff = ReopenBackoff::default();
    let mut first = Some(first);
    loop {
        let Some(filter) = SubscriptionFilter::new(capabilities, wishes) else {
            let _ = first.take();
            wishes.changed().await;
            continue;
        };
        let opened = Instant::now();
        let session = &connection.session;
        let result = tokio::select! {
            biased;
            answer = request(connection, filter, &mut first) => answer,
            // Dropping the request cancels it at the server; the next request has the current
            // subscriptions.
            () = wishes.changed() => continue,
        };
        let end_reason = match result {
            // Both responses are regular: the server supports no notifications, or sends no more
            // for now.
            Err(RequestError::ErrorResponse(error)) => {
                let code = error.code;
                tracing::info!(server, code, "change notifications not supported");
                true
            }
            // An error or a timeout of a gateway says nothing about the server.
            Err(RequestError::Protocol(ProtocolError::HttpStatus {
                status: 408 | 500.., ..
            })) => false,
            Err(RequestError::Protocol(_) | RequestError::TooLarge { .. }) => true,
            Ok(_) => false,
            Err(RequestError::Unavailable { reason, .. }) => {
                tracing::debug!(
                    server,
                    reason = reason.to_string(),
                    "change subscription interrupted"
                );
                false
            }
            Err(RequestError::Timeout) => continue,
        };
        if end_reason {
            // Changes during the interruption were not reported.
            if first.take().is_none() {
                session.assume_changed();
            }
            return;
        }
        backoff.record_attempt(opened.elapsed());
        sleep(backoff.delay() / 2).await;
    }
}

/// Sends the request and waits for its end. After the acknowledgement, lists fetched earlier count
/// as changed.
async fn request(
    connection: &Connection,
    filter: SubscriptionFilter,
    first: &mut Option<oneshot::Sender<()>>,
) -> RequestResult {
    let session = &connection.session;
    let params =
        ListenParams { notifications: filter, meta: connection.negotiated.client_meta.meta(None) };
    let id = session.next_id();
    let now = Instant::now();
    let outgoing =
        OutgoingRequest::new(id, method::SUBSCRIPTIONS_LISTEN, &params, now + MAX_REQUEST_TIMEOUT);
    let request = session.request(OutgoingRequest { background: true, ..outgoing });
    let acknowledgement = async {
        let acknowledged = session.acknowledged(id);
        tokio::pin!(acknowledged);
        let in_time = timeout(ACK_TIMEOUT, &mut acknowledged).await.is_ok();
        let waits = first.take().is_some_and(|first| in_time && first.send(()).is_ok());
        if !waits {
            session.assume_changed();
        }
        if !in_time {
            acknowledged.await;
            session.assume_changed();
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        answer = request => answer,
        never = acknowledgement => never,
    }
}

#[cfg(test)]
mod tests;

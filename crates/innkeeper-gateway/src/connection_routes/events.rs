//! The event stream with the notifications for a connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::stream;
use http::{Response, StatusCode};
use innkeeper_protocol::sse;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::ServiceClient;
use crate::connections::store::{EventCursor, Lookup, NextEvents, OpenedEvents};
use crate::connections::{
    ConnectionError, ConnectionService, ConnectionState, ErrorCode, connection_id,
};
use crate::metrics::OpenCount;
use crate::principal::Principal;
use crate::sink::MessageSink;
use crate::state::GatewayState;
use crate::subscribers::{ListFilter, Subscriber, Subscription};
use crate::transport::http::{KEEP_ALIVE, event_response, keep_alive};

/// Maximum number of changes of lists that wait; further ones repeat what these say.
const MAX_QUEUED_CHANGES: usize = 16;

/// The state of an event stream.
struct EventBody {
    service: ConnectionService,
    gateway: Arc<GatewayState>,
    cursor: EventCursor,
    user: Principal,
    changes: ListChanges,
    /// When the stream renews the expiry of its connection, and shows with a comment that it is open.
    next_renewal: Instant,
    stage: StreamStage,
    _open: OpenCount,
}

/// How far an event stream has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamStage {
    /// Before the first event.
    New,
    Connected,
    /// After the last event.
    Ended,
}

struct ListChanges {
    queue: mpsc::Receiver<Bytes>,
    _subscription: Subscription,
}

impl ServiceClient {
    /// Opens the event stream of a connection, or resumes it after `Last-Event-ID`.
    pub(super) async fn events(&self) -> Result<Response<Body>, ConnectionError> {
        let id = connection_id(&self.headers)?;
        let connection = self.service.active_connection(id, &self.principal).await?;
        let changes = self.subscribe(&connection).await?;
        // A client that has received no event can send an empty id.
        let last = self.headers.get("last-event-id").filter(|value| !value.is_empty());
        let after = last.map(|value| value.to_str().ok().and_then(|text| text.parse().ok()));
        let opened = match after {
            Some(None) => OpenedEvents::Lost,
            Some(after @ Some(_)) => self.service.store().open_events(id, after).await?,
            None => self.service.store().open_events(id, None).await?,
        };
        let cursor = match opened {
            OpenedEvents::Opened(cursor) => cursor,
            OpenedEvents::Lost => {
                let mut response = events_lost().into_response();
                *response.status_mut() = StatusCode::GONE;
                return Ok(response);
            }
            OpenedEvents::NotActive => return Err(ConnectionError::expired()),
        };
        let gateway = self.transport.gateway.clone();
        let _open = gateway.traffic.metrics.open_stream();
        let service = self.service.clone();
        let body = EventBody {
            next_renewal: Instant::now() + renewal_interval(&service),
            service,
            gateway,
            cursor,
            user: self.principal.clone(),
            changes,
            stage: StreamStage::New,
            _open,
        };
        let events = stream::unfold(body, |mut body| async move {
            let bytes = body.next().await?;
            Some((Ok::<_, Infallible>(bytes), body))
        });
        Ok(event_response(Body::from_stream(events)))
    }

    /// Receives the changes of the lists that a connection can use.
    async fn subscribe(
        &self,
        connection: &ConnectionState,
    ) -> Result<ListChanges, ConnectionError> {
        let gateway = &self.transport.gateway;
        let view = gateway.servers.view(&self.principal, None, self.endpoint);
        let view =
            view.map_err(|error| ConnectionError::new(ErrorCode::InternalError, error.message))?;
        let is_enabled = |feature| self.service.is_feature_enabled(feature, connection);
        let lists = ListFilter {
            tools: is_enabled("tools"),
            prompts: is_enabled("prompts"),
            resources: is_enabled("resources"),
        };
        let (sender, queue) = mpsc::channel(MAX_QUEUED_CHANGES);
        let subscriber =
            Subscriber::new(self.endpoint, view, MessageSink::Queue(sender), lists, None);
        let _subscription = gateway.methods.subscriptions.add(subscriber);
        Ok(ListChanges { queue, _subscription })
    }
}

impl EventBody {
    /// Returns the next events or a comment; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        match self.stage {
            StreamStage::Ended => return None,
            StreamStage::New => {
                self.stage = StreamStage::Connected;
                let data = json!({
                    "connection_id": self.cursor.id.to_string(),
                    "message": "connected; notifications follow",
                });
                return Some(write(None, "connected", data.to_string().as_bytes()));
            }
            StreamStage::Connected => {}
        }
        // Also while events come faster than the stream sends them.
        if self.next_renewal <= Instant::now() {
            return self.renew().await;
        }
        let gateway = self.gateway.clone();
        let next_renewal = self.next_renewal;
        let next = async {
            loop {
                tokio::select! {
                    biased;
                    next = self.service.store().next_events(&mut self.cursor) => return Some(next),
                    Some(change) = self.changes.queue.recv() => {
                        // Through the store, so that the change has a position like all events.
                        let message = change.slice(..change.trim_ascii_end().len());
                        if let Err(error) =
                            self.service.store().publish(self.cursor.id, message).await
                        {
                            return Some(Err(error));
                        }
                    }
                    () = gateway.drained() => return None,
                }
            }
        };
        match timeout_at(next_renewal, next).await {
            Err(_) => self.renew().await,
            Ok(None) => None,
            Ok(Some(Ok(NextEvents::Events(events)))) => {
                let mut bytes = Vec::new();
                for event in events {
                    let id = event.position.to_string();
                    bytes.extend_from_slice(&write(Some(&id), "notification", &event.message));
                }
                Some(bytes.into())
            }
            Ok(Some(Ok(NextEvents::Ended))) => None,
            Ok(Some(Ok(NextEvents::Lost))) => Some(self.end_with(&events_lost())),
            Ok(Some(Err(error))) => Some(self.end_with(&error.into())),
        }
    }

    /// Renews the expiry of the connection: an open stream is a use.
    async fn renew(&mut self) -> Option<Bytes> {
        self.next_renewal = Instant::now() + renewal_interval(&self.service);
        match self.service.store().touch(self.cursor.id, Some(self.user.id())).await {
            Ok(Lookup::Found(_)) => Some(keep_alive()),
            Ok(Lookup::Expired | Lookup::Unknown) => None,
            Err(error) => Some(self.end_with(&error.into())),
        }
    }

    /// Returns the last event: why the stream ends.
    fn end_with(&mut self, error: &ConnectionError) -> Bytes {
        self.stage = StreamStage::Ended;
        write(None, "error", json!(error).to_string().as_bytes())
    }
}

/// Returns the time between two renewals: shorter than the expiry.
fn renewal_interval(service: &ConnectionService) -> Duration {
    KEEP_ALIVE.min(service.options().expiry / 3)
}

fn events_lost() -> ConnectionError {
    let message = "the events after `Last-Event-ID` are not stored any more; open the stream \
                   without the header";
    ConnectionError::new(ErrorCode::TransportError, message)
}

fn write(id: Option<&str>, name: &str, data: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(data.len() + 64);
    let data = sse::OutgoingData::Json(data);
    let event = sse::OutgoingEvent { id, name: Some(name), data, ..sse::OutgoingEvent::default() };
    // The ids consist of digits and the names are constants, so both are valid.
    sse::write_event(&mut bytes, &event).unwrap_or_default();
    bytes.into()
}

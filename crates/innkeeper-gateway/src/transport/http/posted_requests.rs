//! The requests of one POST of a session.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use innkeeper_protocol::{RequestId, method};
use serde_json::value::RawValue;

use super::{add_to_batch, incoming};
use crate::client::{RequestGuard, RequestRejection};
use crate::error::RpcError;
use crate::rate_limits::RateExceeded;
use crate::response_memory::{BatchRoom, MAX_CONCURRENT_OF_BATCH, ResponseRoom};
use crate::sink::MessageSink;
use crate::state::GatewayState;
use crate::transport::incoming::JsonRpcRequest;

pub(super) struct Request {
    pub(super) id: RequestId,
    method: String,
    params: Option<Box<RawValue>>,
    /// Whether the request is above the rate of its client.
    counted: Result<(), RateExceeded>,
}

impl Request {
    pub(super) fn new(id: RequestId, method: &str, params: Option<&RawValue>) -> Self {
        let params = params.map(ToOwned::to_owned);
        Self { id, method: method.to_owned(), params, counted: Ok(()) }
    }

    pub(super) fn counted(self, counted: Result<(), RateExceeded>) -> Self {
        Self { counted, ..self }
    }

    fn error_line(&self, error: &RpcError) -> Bytes {
        incoming::error_line(Some(&self.id), error)
    }

    async fn respond(
        &self,
        gateway: &Arc<GatewayState>,
        connected: &incoming::Connected,
        sink: &MessageSink,
        started: Result<RequestGuard, RequestRejection>,
    ) -> Option<Bytes> {
        let Self { id, method, params, .. } = self;
        let request = JsonRpcRequest { id, method, params: params.as_deref() };
        incoming::respond_started(gateway, connected, started, sink, request).await
    }

    /// Responds as one of a batch. `started` is `None` for a request above the rate.
    async fn respond_in_batch(
        &self,
        gateway: &Arc<GatewayState>,
        connected: &incoming::Connected,
        sink: &MessageSink,
        started: Option<Result<RequestGuard, RequestRejection>>,
        room: &BatchRoom,
    ) -> Option<Bytes> {
        if let Err(exceeded) = self.counted {
            return Some(self.error_line(&RpcError::from_rate(exceeded)));
        }
        if let Err(full) = room.check() {
            return Some(self.error_line(&full.into()));
        }
        let line = self.respond(gateway, connected, sink, started?).await?;
        match room.add(line.len()) {
            Ok(()) => Some(line),
            Err(full) => Some(self.error_line(&full.into())),
        }
    }
}

pub(super) enum Requests {
    Single(Request),
    Batch {
        requests: Vec<Request>,
        /// The start of the message with the responses: the errors of messages that are no requests.
        errors: Vec<u8>,
    },
}

impl Requests {
    pub(super) fn all(&self) -> &[Request] {
        match self {
            Self::Single(request) => std::slice::from_ref(request),
            Self::Batch { requests, .. } => requests,
        }
    }

    /// Returns whether a request changes what the next replica needs of the session.
    pub(super) fn changes_session(&self) -> bool {
        self.all().iter().any(|request| {
            [method::LOGGING_SET_LEVEL, method::RESOURCES_SUBSCRIBE, method::RESOURCES_UNSUBSCRIBE]
                .contains(&&*request.method)
        })
    }

    /// Handles the requests, those of a batch at most [`MAX_CONCURRENT_OF_BATCH`] at the same time.
    /// Returns the message with the responses; `None` if the client cancelled all requests.
    pub(super) async fn respond(
        &self,
        gateway: &Arc<GatewayState>,
        connected: &incoming::Connected,
        sink: &MessageSink,
        room: ResponseRoom,
    ) -> Option<Bytes> {
        match self {
            Self::Single(request) => {
                let started = connected.client.start_request(&request.id);
                let line = request.respond(gateway, connected, sink, started).await?;
                Some(room.hold(line, |error| request.error_line(error)))
            }
            Self::Batch { requests, errors } => {
                let room = BatchRoom::new(room);
                // The client can cancel a request that waits.
                let started: Vec<_> = requests
                    .iter()
                    .map(|request| {
                        let is_permitted = request.counted.is_ok();
                        is_permitted.then(|| connected.client.start_request(&request.id))
                    })
                    .collect();
                let mut waiting = requests.iter().zip(started);
                let mut running = FuturesOrdered::new();
                let mut message = errors.clone();
                loop {
                    let free = MAX_CONCURRENT_OF_BATCH - running.len();
                    for (request, started) in waiting.by_ref().take(free) {
                        running.push_back(
                            request.respond_in_batch(gateway, connected, sink, started, &room),
                        );
                    }
                    match running.next().await {
                        None => break,
                        Some(None) => {}
                        Some(Some(line)) => add_to_batch(&mut message, &line),
                    }
                }
                drop(running);
                if message.is_empty() {
                    return None;
                }
                message.extend_from_slice(b"]\n");
                Some(room.hold(message))
            }
        }
    }
}

//! The requests of a server to the client of a call that can wait.

use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_host::{Callback, CallbackError, CallbackFuture, CallbackResult, ServerRequest};
use innkeeper_protocol::envelope::code;
use tokio::sync::{mpsc, oneshot};

use crate::client::ClientIdentity;
use crate::error::RpcError;
use crate::sink::MessageSink;

/// A request of a server that waits for the client.
pub(crate) struct OpenInput {
    pub(super) request: ServerRequest,
    pub(super) answer: oneshot::Sender<CallbackResult>,
}

/// The capabilities that a server needed in a call, and that the client does not declare.
#[derive(Clone, Debug, Default)]
pub(crate) struct MissingCapabilities(Arc<Mutex<Vec<&'static str>>>);

impl MissingCapabilities {
    fn list(&self) -> MutexGuard<'_, Vec<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, capability: &'static str) {
        let mut list = self.list();
        if !list.contains(&capability) {
            list.push(capability);
        }
    }

    /// Returns the error of a call that failed without the capabilities, or `None` if the server
    /// needed none.
    pub(crate) fn error(&self) -> Option<RpcError> {
        let list = self.list();
        (!list.is_empty()).then(|| RpcError::missing_capabilities(&list))
    }
}

/// The callback of a call that can be parked.
#[derive(Debug)]
pub(crate) struct ParkingCallback {
    pub(super) queue: mpsc::Sender<OpenInput>,
    pub(super) client: ClientIdentity,
    pub(super) missing: MissingCapabilities,
}

impl Callback for ParkingCallback {
    fn respond(&self, request: ServerRequest) -> CallbackFuture {
        if let Some(capability) = self.client.missing_capability(&request.method) {
            self.missing.add(capability);
            let refusal = format!("the client does not declare `{capability}`");
            return Box::pin(ready(Err(CallbackError::new(code::METHOD_NOT_FOUND, refusal))));
        }
        let queue = self.queue.clone();
        Box::pin(async move {
            let ended = || CallbackError::new(code::INTERNAL_ERROR, "the client has gone");
            let (answer, response) = oneshot::channel();
            queue.send(OpenInput { request, answer }).await.map_err(|_| ended())?;
            response.await.unwrap_or_else(|_| Err(ended()))
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RequestStream {
    pub(crate) sink: MessageSink,
    /// The token of the client, as JSON text. A request without a token wants no progress.
    pub(crate) progress_token: Option<String>,
}

impl RequestStream {
    pub(super) const NONE: Self = Self { sink: MessageSink::None, progress_token: None };
}

/// The stream of the client's current request, for the notifications of a call over several
/// requests.
#[derive(Clone, Debug)]
pub(crate) struct CurrentStream(Arc<Mutex<RequestStream>>);

impl CurrentStream {
    pub(crate) fn new(stream: RequestStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    pub(crate) fn get(&self) -> RequestStream {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, stream: RequestStream) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stream;
    }
}

//! Passes requests of servers to one client.

use std::sync::Arc;

use innkeeper_host::{Callback, CallbackFuture, ServerRequest};

use super::Client;
use crate::sink::MessageSink;
use crate::task_ids::TaskIdPair;

/// The callback of a call: the client of the call answers, on the stream of the call.
#[derive(Debug)]
pub(crate) struct ClientCallback {
    pub(crate) client: Arc<Client>,
    pub(crate) sink: MessageSink,
    /// The task whose result the client waits for.
    pub(crate) task: Option<TaskIdPair>,
}

impl Callback for ClientCallback {
    fn respond(&self, request: ServerRequest) -> CallbackFuture {
        let client = self.client.clone();
        let sink = self.sink.clone();
        let task = self.task.clone();
        Box::pin(async move {
            let ServerRequest { method, params, .. } = &request;
            client.ask(&sink, method, params.as_deref(), task.as_ref()).await
        })
    }
}

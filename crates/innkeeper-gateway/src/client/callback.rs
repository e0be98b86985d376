//! Passes requests of servers to one client.

use std::sync::Arc;

use innkeeper_host::{Callback, CallbackFuture, ServerRequest};

use super::Client;
use crate::sink::MessageSink;

/// The callback of a call: the client of the call answers, on the stream of the call.
#[derive(Debug)]
pub(crate) struct ClientCallback {
    pub(crate) client: Arc<Client>,
    pub(crate) sink: MessageSink,
}

impl Callback for ClientCallback {
    fn respond(&self, request: ServerRequest) -> CallbackFuture {
        let (client, sink) = (self.client.clone(), self.sink.clone());
        Box::pin(async move { client.ask(&sink, &request.method, request.params.as_deref()).await })
    }
}

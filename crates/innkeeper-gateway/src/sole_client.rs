//! The client of a gateway that has only one.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_host::{CallbackError, CallbackResult, ServerRequest};
use innkeeper_protocol::envelope::code;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::client::Client;
use crate::task_ids::TaskIdPair;

/// Time for the client to connect and to complete its handshake before a request of a server fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The one client, once it has connected. Clones share the client.
#[derive(Clone, Debug)]
pub(crate) struct SoleClient(Arc<watch::Sender<Connection>>);

#[derive(Debug)]
enum Connection {
    Expected,
    Connected(Arc<Client>),
    Ended,
}

impl Default for SoleClient {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Connection::Expected)))
    }
}

impl SoleClient {
    pub(crate) fn connect(&self, client: Arc<Client>) {
        self.0.send_replace(Connection::Connected(client));
    }

    /// Removes the client; further requests fail.
    pub(crate) fn end(&self) {
        self.0.send_replace(Connection::Ended);
    }

    /// Passes a request to the client; a request about a task has the ids of the task.
    pub(crate) async fn respond(
        &self,
        request: ServerRequest,
        task: Option<TaskIdPair>,
    ) -> CallbackResult {
        let mut state = self.0.subscribe();
        let ready = async {
            let connected = state.wait_for(|state| !matches!(state, Connection::Expected)).await;
            let client = match &*connected.ok()? {
                Connection::Connected(client) => client.clone(),
                Connection::Expected | Connection::Ended => return None,
            };
            let mut state = self.0.subscribe();
            tokio::select! {
                biased;
                _ = client.settings.initialized.wait() => Some(client),
                _ = state.wait_for(|state| matches!(state, Connection::Ended)) => None,
            }
        };
        let Ok(Some(client)) = timeout(CONNECT_TIMEOUT, ready).await else {
            return Err(CallbackError::new(code::INTERNAL_ERROR, "no client is connected"));
        };
        client.respond_outside_call(request, task).await
    }

    /// Returns the error for a request that may belong to the call of any client.
    pub(crate) fn not_attributed(request: &ServerRequest) -> CallbackError {
        tracing::info!(
            server = &*request.server,
            method = &*request.method,
            "request of a server rejected: it belongs to no call of a client"
        );
        CallbackError::new(code::METHOD_NOT_FOUND, "the request belongs to no call of a client")
    }
}

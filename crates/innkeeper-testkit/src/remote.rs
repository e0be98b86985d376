//! Fixture servers behind network transports, in the runtime of the test.

mod body;
mod body_writer;
mod bridge;
mod builder;
mod events;
mod fault;
mod gzip;
mod headers;
mod listener;
mod modern;
mod request_log;
mod routes;
mod server;
mod sse;
mod streamable;
pub(crate) mod tasks;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Fixture;
use builder::RemoteTransport;
use server::ServerState;

pub use builder::{AnnouncedEndpoint, RemoteServerBuilder};
pub use fault::Fault;
pub use request_log::RecordedRequest;

/// A running remote server: a listener with one fixture server per session.
///
/// The server listens on a free port of 127.0.0.1 or on a unix socket. A drop closes the listener
/// and every connection, and kills the process group of every fixture server.
#[derive(Debug)]
pub struct RemoteServer {
    server: Arc<ServerState>,
}

impl RemoteServer {
    /// Returns a builder for this fixture server; the default transport is Streamable HTTP.
    #[must_use]
    pub fn for_fixture(fixture: Fixture) -> RemoteServerBuilder {
        RemoteServerBuilder::new(Some(fixture), RemoteTransport::Streamable)
    }

    /// Returns a builder for a server that only records requests and responds with 200 and an empty
    /// object.
    #[must_use]
    pub fn request_recorder() -> RemoteServerBuilder {
        RemoteServerBuilder::new(None, RemoteTransport::RequestRecorder)
    }

    /// Returns the URL for a configuration file.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the scheme, address and port; for a unix socket, its path.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.server.origin()
    }

    /// Returns the server's entry in a configuration file, including the added keys and headers.
    #[must_use]
    pub fn config_entry(&self) -> Value {
        let plan = self.server.config();
        let type_name = plan.entry.type_name.as_deref().unwrap_or(plan.transport.type_name());
        let mut entry = json!({"type": type_name, "url": self.url()});
        for (name, value) in &plan.entry.headers {
            entry["headers"][name] = json!(value);
        }
        for (key, value) in plan.fixture.iter().flat_map(Fixture::config_keys) {
            entry[key] = value.clone();
        }
        entry
    }

    /// Returns every HTTP request in order, including the one that opens a WebSocket.
    ///
    /// At most the last 4096.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.server.log().all()
    }

    /// Returns every fault that affected a request or a WebSocket message, in order.
    #[must_use]
    pub fn applied_faults(&self) -> Vec<String> {
        self.server.applied_faults()
    }

    /// Waits until the requests meet a condition.
    ///
    /// # Panics
    ///
    /// If the requests do not meet the condition within the limit; the message lists all requests.
    pub async fn wait_for(
        &self,
        limit: Duration,
        condition: impl Fn(&[RecordedRequest]) -> bool,
    ) -> Vec<RecordedRequest> {
        match tokio::time::timeout(limit, self.server.log().wait_for(condition)).await {
            Ok(requests) => requests,
            Err(_) => {
                panic!("condition not met within {limit:?}; requests: {:#?}", self.requests())
            }
        }
    }

    /// Returns the process ids of the running fixture servers.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.server.bridges().iter().filter_map(|bridge| bridge.pid()).collect()
    }

    /// Resets every open connection; new connections are served.
    pub fn reset_connections(&self) {
        self.server.reset_connections();
    }

    /// Stops the server as a drop does, and waits for the end of every task and process.
    pub async fn stop(self) {
        self.server.stop();
        self.server.join().await;
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        self.server.stop();
    }
}

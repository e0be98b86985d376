//! Fixture servers reached over a network, living in the runtime of the test that asks them.

mod body;
mod bridge;
mod events;
mod fault;
mod gzip;
mod headers;
mod listen;
mod modern;
mod pen;
mod plan;
mod routes;
mod seen;
mod serve;
mod sse;
mod streamable;
pub(crate) mod tasks;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Fixture;
use plan::Wire;
use serve::Served;

pub use fault::Fault;
pub use plan::{Endpoint, Plan};
pub use seen::Seen;

/// A running remote server: a listener before fixture servers, one of them for each conversation.
///
/// On 127.0.0.1 and a port of the system's choice, or on a unix socket. Dropping it closes the
/// listener and every connection, and kills the process group of every fixture server.
#[derive(Debug)]
pub struct Remote {
    served: Arc<Served>,
}

impl Remote {
    /// How this fixture server is to be reached; Streamable HTTP unless said otherwise.
    #[must_use]
    pub fn of(fixture: Fixture) -> Plan {
        Plan::new(Some(fixture), Wire::Streamable)
    }

    /// A server that answers 200 with an empty object to everything and only remembers.
    #[must_use]
    pub fn recorder() -> Plan {
        Plan::new(None, Wire::Recorder)
    }

    /// Where it is reached, as a configuration file says it.
    #[must_use]
    pub fn url(&self) -> String {
        self.served.url()
    }

    /// The scheme, address and port before any path; of a unix socket, its path.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.served.origin()
    }

    /// The server's entry of a configuration file, the keys and headers it was given included.
    #[must_use]
    pub fn entry(&self) -> Value {
        let plan = self.served.plan();
        let type_name = plan.type_name.as_deref().unwrap_or(plan.wire.type_name());
        let mut entry = json!({"type": type_name, "url": self.url()});
        for (name, value) in &plan.headers {
            entry["headers"][name] = json!(value);
        }
        for (key, value) in plan.fixture.iter().flat_map(Fixture::keys) {
            entry[key] = value.clone();
        }
        entry
    }

    /// Every HTTP request so far, the one that opens a WebSocket included, in the order they came.
    ///
    /// The last 4096 are kept.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.served.log().all()
    }

    /// Waits until the requests are as wanted.
    ///
    /// # Panics
    ///
    /// When they are not within the limit; the message has every request.
    pub async fn until(&self, limit: Duration, wanted: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        match tokio::time::timeout(limit, self.served.log().until(wanted)).await {
            Ok(seen) => seen,
            Err(_) => panic!("not within {limit:?}; the requests are {:#?}", self.requests()),
        }
    }

    /// The process ids of the fixture servers that run now.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.served.bridges().iter().filter_map(|bridge| bridge.pid()).collect()
    }

    /// Breaks every connection off as it is, without a word; those to come are served.
    pub fn break_connections(&self) {
        self.served.break_connections();
    }

    /// Ends as a drop does, and waits until every task has ended and every process was reaped.
    pub async fn stop(self) {
        self.served.stop();
        self.served.ended().await;
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.served.stop();
    }
}

//! Asks a server whether it still responds.

use std::time::Duration;

use innkeeper_protocol::{Era, method};
use serde::Serialize;

use crate::connection::Connection;
use crate::connection::meta::Meta;
use crate::error::CallError;

/// Maximum time for the response: far more than a server needs that has only slow calls.
const MAX_PING_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Serialize)]
struct PingParams<'a> {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

/// Returns whether the server responds within its timeout for calls, with a result or an error. A
/// server of the modern era, which has no `ping`, gets `server/discover`.
///
/// A response to any other request since the last timeout counts, too: a server that works on one
/// request at a time responds to earlier requests first.
pub(crate) async fn responds(connection: &Connection, call_timeout: Duration) -> bool {
    tokio::select! {
        biased;
        () = connection.session.responded() => true,
        responded = responds_to_ping(connection, call_timeout) => responded,
    }
}

async fn responds_to_ping(connection: &Connection, call_timeout: Duration) -> bool {
    let method = match connection.negotiated.revision.era() {
        Era::Legacy => method::PING,
        Era::Modern => method::SERVER_DISCOVER,
    };
    let timeout = call_timeout.min(MAX_PING_TIMEOUT);
    let params = PingParams { meta: connection.negotiated.client_meta.meta(None) };
    match connection.request_internal(method, &params, timeout).await {
        Ok(_) | Err(CallError::Server { .. }) => true,
        Err(
            CallError::Routing(_)
            | CallError::Validation { .. }
            | CallError::Protocol { .. }
            | CallError::Timeout { .. }
            | CallError::Unavailable { .. }
            | CallError::Withheld { .. },
        ) => false,
    }
}

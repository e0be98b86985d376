//! The handshake: negotiates the protocol era and revision with a server.
//!
//! A modern server may reject `initialize` permanently after it received `server/discover`, and a
//! legacy server may never respond to `server/discover`. After a timeout, the host therefore sends
//! both requests, and the first usable response decides. The host does not kill a slow server.

mod negotiation;
mod revisions;

use std::sync::Arc;

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::view::{InitializeResult, ServerCapabilities};
use innkeeper_protocol::{Revision, method};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::connection::call_error;
use crate::error::CallError;
use crate::session::{OutgoingRequest, RequestError, Session};
use negotiation::Negotiation;

/// The client information that the host sends to servers.
#[derive(Clone, Debug)]
pub(crate) struct ClientInfo {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Default for ClientInfo {
    fn default() -> Self {
        Self { name: "innkeeper".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// The request that starts the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeProbe {
    /// `server/discover`, as the specification recommends.
    Discover,
    /// `initialize`, for a server whose process exited after `server/discover`.
    Initialize,
    /// `initialize`, for a server that ignored `server/discover` at another start. After a rejection,
    /// or without a response in time, `server/discover` follows.
    InitializeFirst,
    /// Only `initialize`, for a transport that exists only in the legacy era.
    InitializeOnly,
}

/// The client side of a handshake: its identity and its capabilities.
#[derive(Debug)]
pub(crate) struct HandshakeClient<'a> {
    pub(crate) server: &'a Arc<str>,
    pub(crate) info: &'a ClientInfo,
    pub(crate) capabilities: Box<RawValue>,
}

#[derive(Debug)]
pub(crate) struct HandshakeResult {
    pub(crate) revision: Revision,
    pub(crate) meta: Option<Box<RawValue>>,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) server_info: Option<Box<RawValue>>,
    pub(crate) instructions: Option<String>,
    /// Whether the server answered `initialize`, and not `server/discover` before it.
    pub(crate) ignored_discover: bool,
    /// The result of `initialize`.
    pub(crate) initialize_result: Option<Box<RawValue>>,
}

/// Verifies that the server still knows a session that another host started, in place of a handshake.
/// If the server forgot the session, the transport starts another one.
pub(crate) async fn continue_session(
    session: &Session,
    server: &Arc<str>,
    initialized: &InitializeResult,
    revision: Revision,
    deadline: Instant,
) -> Result<HandshakeResult, CallError> {
    let started = Instant::now();
    let params = json!({});
    let outgoing = OutgoingRequest::new(session.next_id(), method::PING, &params, deadline);
    let response = session.request(outgoing).await;
    let outcome = response.as_ref().map_or_else(|error| error.kind().as_str(), |_| "ok");
    tracing::info!(server = &**server, method = method::PING, outcome, "session continued");
    match response {
        Ok(_) => {}
        // The server knows the session and has no `ping`.
        Err(RequestError::ErrorResponse(error)) if error.code == code::METHOD_NOT_FOUND => {}
        Err(error) => {
            let timeout = deadline.saturating_duration_since(started);
            return Err(call_error(server, error, method::PING, timeout));
        }
    }
    Ok(HandshakeResult {
        revision,
        meta: None,
        capabilities: initialized.capabilities.clone(),
        server_info: initialized.server_info_raw.clone(),
        instructions: initialized.instructions.clone(),
        ignored_discover: false,
        initialize_result: None,
    })
}

/// Agrees with the server on an era and a revision before the deadline.
pub(crate) async fn perform_handshake(
    session: &Session,
    client: HandshakeClient<'_>,
    opening: HandshakeProbe,
    deadline: Instant,
) -> Result<HandshakeResult, CallError> {
    let started = Instant::now();
    let server = client.server;
    let negotiation = Negotiation::new(session, client, deadline);
    negotiation.run(opening).await.map_err(|(error, method)| {
        call_error(server, error, method, deadline.saturating_duration_since(started))
    })
}

#[cfg(test)]
mod tests;

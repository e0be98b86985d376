//! Sessions at remote servers that another host can continue.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use innkeeper_protocol::view::InitializeResult;
use innkeeper_protocol::{Era, Revision};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A session at a server with Streamable HTTP of the legacy era, as another host needs it to continue
/// the session: [`HostBuilder::continue_remote_session`](crate::HostBuilder::continue_remote_session).
///
/// Whoever has the serialized value can use the session. `Debug` prints neither the id nor what the
/// server returned.
#[derive(Clone, Serialize, Deserialize)]
pub struct RemoteSession {
    /// The id that the server issued (`Mcp-Session-Id`).
    pub(crate) session_id: String,
    /// The digest of the address and the configured headers: no other server gets the id.
    pub(crate) endpoint: String,
    /// The id of the `initialize` request.
    pub(crate) initialize_id: u64,
    /// The message with the `initialize` request, for a new session after the server forgot this one.
    pub(crate) initialize_request: String,
    /// The result of `initialize`.
    pub(crate) initialize_result: Box<RawValue>,
}

impl RemoteSession {
    /// Returns whether both are the same session at the same server.
    pub fn is_same(&self, other: &Self) -> bool {
        self.session_id == other.session_id && self.endpoint == other.endpoint
    }

    /// Returns the result of `initialize` with its revision; `None` if the host does not know the
    /// revision.
    pub(crate) fn negotiated(&self) -> Option<(InitializeResult, Revision)> {
        let result = InitializeResult::from_raw(&self.initialize_result).ok()?;
        let revision = result.protocol_version.parse::<Revision>().ok()?;
        (revision.era() == Era::Legacy).then_some((result, revision))
    }
}

impl fmt::Debug for RemoteSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSession").finish_non_exhaustive()
    }
}

/// What another host needs to continue with the servers of a host.
#[derive(Clone, Debug, Default)]
pub struct RemoteSessions {
    /// The sessions by the name of the server. A server without sessions has no entry: another host
    /// connects to the server without a loss.
    pub sessions: IndexMap<String, RemoteSession>,
    /// The servers whose state ends with their connection to this host: processes, servers in the process of
    /// the application, HTTP+SSE and WebSocket.
    pub bound: Vec<Arc<str>>,
}

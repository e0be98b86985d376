//! The sessions with remote servers, for another host.

use std::sync::Arc;

use super::Host;
use crate::remote_session::{RemoteSession, RemoteSessions};
use crate::transport::HttpSessionState;

impl Host {
    /// Returns the sessions with remote servers that another host can continue
    /// ([`HostBuilder::continue_remote_session`](crate::HostBuilder::continue_remote_session)), with the
    /// servers that bind their state to this host. Needs no traffic.
    ///
    /// Sessions change at each start of a server, and after [`HostEvent::Reinitialized`].
    ///
    /// [`HostEvent::Reinitialized`]: crate::HostEvent::Reinitialized
    pub fn remote_sessions(&self) -> RemoteSessions {
        self.collect_remote_sessions(HttpSessionState::session)
    }

    /// Does the same as [`Self::remote_sessions`], and leaves these sessions to another host: this host does
    /// not end them at their servers (`DELETE`) when it stops. Shut the host down afterwards.
    pub fn hand_over_remote_sessions(&self) -> RemoteSessions {
        self.collect_remote_sessions(HttpSessionState::hand_over)
    }

    fn collect_remote_sessions(
        &self,
        take: impl Fn(&HttpSessionState) -> Option<RemoteSession>,
    ) -> RemoteSessions {
        let mut all = RemoteSessions::default();
        for server in self.0.registry.servers() {
            let status = server.status();
            let Some(handle) = &status.handle else { continue };
            match &handle.http_session {
                Some(state) => {
                    all.sessions.extend(take(state).map(|one| (server.name.to_string(), one)));
                }
                None => all.bound.push(Arc::clone(&server.name)),
            }
        }
        all
    }
}

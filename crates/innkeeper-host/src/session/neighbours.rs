//! Detects whether callers wait for the other servers of a host: a flood of one server then may not
//! take the CPU time.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::SessionState;

/// Time without a request after which another server counts as idle. The time covers the pause
/// between two calls that an application makes one after the other.
const QUIET_TIME: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Default)]
pub(crate) struct SessionDirectory(Arc<Mutex<Vec<Weak<SessionState>>>>);

/// The requests to all other servers at one time.
#[derive(Clone, Copy, Debug)]
struct OtherRequests {
    /// Whether a caller waits for a response.
    are_open: bool,
    /// Grows with each request.
    sent: u64,
}

impl SessionDirectory {
    /// Adds a session, and forgets those that no longer exist.
    pub(super) fn add(&self, session: &Arc<SessionState>) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
    }

    fn requests_to_others(&self, server: &str) -> OtherRequests {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = sessions.iter().filter_map(Weak::upgrade);
        let others = others.filter(|session| &*session.server != server);
        others.fold(OtherRequests { are_open: false, sent: 0 }, |sum, session| OtherRequests {
            are_open: sum.are_open || session.pending.has_calls(),
            sent: sum.sent.wrapping_add(session.pending.sent()),
        })
    }
}

/// The view of one server on the others.
#[derive(Debug)]
pub(super) struct Neighbours {
    directory: SessionDirectory,
    /// The number of requests at the last question, and the end of the quiet time after them.
    last: Mutex<Option<(u64, Instant)>>,
}

impl Neighbours {
    pub(super) fn new(directory: SessionDirectory) -> Self {
        Self { directory, last: Mutex::default() }
    }

    /// Returns whether no other server has an open call, or had a request in the last
    /// [`QUIET_TIME`]. The first question finds all servers idle that have no open call.
    pub(super) fn are_idle(&self, server: &str) -> bool {
        let requests = self.directory.requests_to_others(server);
        let now = Instant::now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let busy_until = match *last {
            Some((sent, busy_until)) if sent == requests.sent && !requests.are_open => busy_until,
            None if !requests.are_open => now,
            Some(_) | None => now + QUIET_TIME,
        };
        *last = Some((requests.sent, busy_until));
        now >= busy_until
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_protocol::method;
    use innkeeper_testkit::InMemoryServer;
    use serde_json::json;
    use tokio::time::advance;

    use super::*;

    use crate::session::{HostContext, OutgoingRequest, Session, SessionContext, SessionLimits};

    fn open_session(server: &str, sessions: &SessionDirectory) -> (InMemoryServer, Session) {
        let (peer, reader, writer) = InMemoryServer::new();
        let host = HostContext { sessions: sessions.clone(), ..HostContext::default() };
        let owner = SessionContext { server: server.into(), host };
        (peer, Session::open(owner, reader, writer, SessionLimits::default()))
    }

    #[tokio::test(start_paused = true)]
    async fn other_servers_are_idle_without_an_open_call_and_a_while_after_the_last_request() {
        let sessions = SessionDirectory::default();
        let (_peer, own) = open_session("own", &sessions);
        let (_other_peer, other) = open_session("other", &sessions);
        let neighbours = Neighbours::new(sessions.clone());
        assert!(neighbours.are_idle("own"));
        own.next_id();
        assert!(neighbours.are_idle("own"), "the request is the server's own");

        other.next_id();
        assert!(!neighbours.are_idle("own"));
        advance(QUIET_TIME - Duration::from_millis(1)).await;
        assert!(!neighbours.are_idle("own"));
        advance(Duration::from_millis(1)).await;
        assert!(neighbours.are_idle("own"));

        let (nothing, deadline) = (json!({}), Instant::now() + Duration::from_hours(1));
        let outgoing =
            OutgoingRequest::new(other.next_id(), method::TOOLS_CALL, &nothing, deadline);
        let call = other.request(outgoing);
        let mut call = Box::pin(call);
        assert!(futures_util::poll!(call.as_mut()).is_pending());
        assert!(!neighbours.are_idle("own"));
        advance(QUIET_TIME * 2).await;
        assert!(!neighbours.are_idle("own"), "the call is open");
        assert!(!Neighbours::new(sessions).are_idle("own"), "the call is open");
        drop(call);
        assert!(!neighbours.are_idle("own"));
        advance(QUIET_TIME).await;
        assert!(neighbours.are_idle("own"));
    }
}

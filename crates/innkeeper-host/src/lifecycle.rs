//! The states of a server and their transitions, as a pure function.

use serde::Serialize;

/// The lifecycle state of a server (FR6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// The host launches the server, performs the handshake or fetches the lists.
    Starting,
    /// The server accepts calls.
    Ready,
    /// The server crashed, never became ready or did not respond in time; calls fail at once.
    Unavailable,
    /// The host stopped the server.
    Shutdown,
}

impl ServerState {
    /// Returns the name used in JSON, logs and Python.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Unavailable => "unavailable",
            Self::Shutdown => "shutdown",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LifecycleEvent {
    /// The handshake and the lists are complete.
    Initialized,
    /// The server became unusable: crash, lost connection or failed start.
    Failed,
    /// The host stopped the server.
    Stopped,
    /// The host restarts the server.
    Restarted,
    /// A server that had stopped responding responded again.
    Responded,
}

/// Returns the state after an event; `None` if the state stays the same, so each change is reported
/// once.
pub(crate) fn next_state(state: ServerState, event: LifecycleEvent) -> Option<ServerState> {
    match (state, event) {
        (ServerState::Starting, LifecycleEvent::Initialized) => Some(ServerState::Ready),
        (ServerState::Starting | ServerState::Ready, LifecycleEvent::Failed) => {
            Some(ServerState::Unavailable)
        }
        (
            ServerState::Starting | ServerState::Ready | ServerState::Unavailable,
            LifecycleEvent::Stopped,
        ) => Some(ServerState::Shutdown),
        (ServerState::Unavailable | ServerState::Shutdown, LifecycleEvent::Restarted) => {
            Some(ServerState::Starting)
        }
        (ServerState::Unavailable, LifecycleEvent::Responded) => Some(ServerState::Ready),
        (ServerState::Ready | ServerState::Unavailable, LifecycleEvent::Initialized)
        | (ServerState::Starting | ServerState::Ready, LifecycleEvent::Responded)
        | (ServerState::Unavailable, LifecycleEvent::Failed)
        // A running server is stopped before a restart.
        | (ServerState::Starting | ServerState::Ready, LifecycleEvent::Restarted)
        | (ServerState::Shutdown, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: TR5.3
    #[test]
    fn every_state_handles_every_event_as_the_table_says() {
        use LifecycleEvent as H;
        use ServerState as S;
        let table = [
            (S::Starting, [Some(S::Ready), Some(S::Unavailable), Some(S::Shutdown), None, None]),
            (S::Ready, [None, Some(S::Unavailable), Some(S::Shutdown), None, None]),
            (S::Unavailable, [None, None, Some(S::Shutdown), Some(S::Starting), Some(S::Ready)]),
            (S::Shutdown, [None, None, None, Some(S::Starting), None]),
        ];
        for (state, expected) in table {
            for (happening, after) in
                [H::Initialized, H::Failed, H::Stopped, H::Restarted, H::Responded]
                    .into_iter()
                    .zip(expected)
            {
                assert_eq!(next_state(state, happening), after, "{state:?} {happening:?}");
            }
        }
        assert_eq!(serde_json::to_value(S::Ready).unwrap(), "ready");
        assert_eq!(S::Unavailable.as_str(), "unavailable");
    }
}

//! The states of a server and how it moves between them: a pure function, no clock and no I/O.

use serde::Serialize;

/// Where a server is in its life (FR6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// It is being launched, or its handshake or lists are under way.
    Starting,
    /// It takes calls.
    Ready,
    /// It crashed, never became ready, or did not answer in time; calls to it fail at once.
    Unavailable,
    /// The host stopped it.
    Shutdown,
}

impl ServerState {
    /// The word used in JSON, logs and Python.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Unavailable => "unavailable",
            Self::Shutdown => "shutdown",
        }
    }
}

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// Handshake and lists are done.
    Initialized,
    /// It cannot be used any more: crash, broken connection, failed start.
    Lost,
    /// The host stopped it.
    Stopped,
    /// The host starts it again.
    Restarted,
}

/// The state after `happening`; `None` where nothing changes, so that each change is told once.
pub(crate) fn next(state: ServerState, happening: Happening) -> Option<ServerState> {
    match (state, happening) {
        (ServerState::Starting, Happening::Initialized) => Some(ServerState::Ready),
        (ServerState::Starting | ServerState::Ready, Happening::Lost) => {
            Some(ServerState::Unavailable)
        }
        (
            ServerState::Starting | ServerState::Ready | ServerState::Unavailable,
            Happening::Stopped,
        ) => Some(ServerState::Shutdown),
        (ServerState::Unavailable | ServerState::Shutdown, Happening::Restarted) => {
            Some(ServerState::Starting)
        }
        (ServerState::Ready | ServerState::Unavailable, Happening::Initialized)
        | (ServerState::Unavailable, Happening::Lost)
        // What runs is stopped before it is started again.
        | (ServerState::Starting | ServerState::Ready, Happening::Restarted)
        | (ServerState::Shutdown, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: TR5.3
    #[test]
    fn every_state_answers_every_happening_as_the_table_says() {
        use Happening as H;
        use ServerState as S;
        let table = [
            (S::Starting, [Some(S::Ready), Some(S::Unavailable), Some(S::Shutdown), None]),
            (S::Ready, [None, Some(S::Unavailable), Some(S::Shutdown), None]),
            (S::Unavailable, [None, None, Some(S::Shutdown), Some(S::Starting)]),
            (S::Shutdown, [None, None, None, Some(S::Starting)]),
        ];
        for (state, expected) in table {
            for (happening, after) in
                [H::Initialized, H::Lost, H::Stopped, H::Restarted].into_iter().zip(expected)
            {
                assert_eq!(next(state, happening), after, "{state:?} {happening:?}");
            }
        }
        assert_eq!(serde_json::to_value(S::Ready).unwrap(), "ready");
        assert_eq!(S::Unavailable.as_str(), "unavailable");
    }
}

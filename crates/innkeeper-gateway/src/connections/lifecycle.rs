//! The states of a connection and the moves between them, as a pure function.

use std::fmt;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionLifecycleState {
    /// Before `initialize`. No stored connection has this state.
    Uninitialized,
    /// After `initialize`.
    Initializing,
    /// After `initialized`: the connection serves requests.
    Active,
    /// After `shutdown`.
    Terminating,
    /// After `exit`.
    Terminated,
}

/// A message that moves a connection to another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifecycleMessage {
    /// The client declares its version and its capabilities.
    Initialize,
    /// The client accepts the capabilities of the server.
    Initialized,
    /// The client sends no more requests.
    Shutdown,
    /// The client ends the connection.
    Exit,
}

/// A message that the state of a connection does not permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{message}` is not permitted in the state `{state}`")]
pub struct InvalidTransition {
    /// The state of the connection.
    pub state: ConnectionLifecycleState,
    /// The message.
    pub message: LifecycleMessage,
}

impl ConnectionLifecycleState {
    /// All states, in the order of a lifecycle.
    pub const ALL: [Self; 5] = [
        Self::Uninitialized,
        Self::Initializing,
        Self::Active,
        Self::Terminating,
        Self::Terminated,
    ];

    /// Returns the state after a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the state does not permit the message.
    pub fn after(self, message: LifecycleMessage) -> Result<Self, InvalidTransition> {
        match (self, message) {
            (Self::Uninitialized, LifecycleMessage::Initialize) => Ok(Self::Initializing),
            (Self::Initializing, LifecycleMessage::Initialized) => Ok(Self::Active),
            (Self::Initializing | Self::Active, LifecycleMessage::Shutdown) => {
                Ok(Self::Terminating)
            }
            (Self::Terminating, LifecycleMessage::Exit) => Ok(Self::Terminated),
            (state, message) => Err(InvalidTransition { state, message }),
        }
    }

    /// Returns the name of the state in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Uninitialized => "uninitialized",
            Self::Initializing => "initializing",
            Self::Active => "active",
            Self::Terminating => "terminating",
            Self::Terminated => "terminated",
        }
    }
}

impl LifecycleMessage {
    /// All messages, in the order of a lifecycle.
    pub const ALL: [Self; 4] = [Self::Initialize, Self::Initialized, Self::Shutdown, Self::Exit];

    /// Returns the name of the message: the method, and the last part of its path.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Initialized => "initialized",
            Self::Shutdown => "shutdown",
            Self::Exit => "exit",
        }
    }
}

impl fmt::Display for ConnectionLifecycleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for LifecycleMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: B8
    #[test]
    fn each_state_permits_exactly_the_specified_messages() {
        use ConnectionLifecycleState::{Active, Initializing, Terminated, Terminating};
        let permitted = [
            ("uninitialized", [Some(Initializing), None, None, None]),
            ("initializing", [None, Some(Active), Some(Terminating), None]),
            ("active", [None, None, Some(Terminating), None]),
            ("terminating", [None, None, None, Some(Terminated)]),
            ("terminated", [None, None, None, None]),
        ];
        for (state, (name, row)) in ConnectionLifecycleState::ALL.into_iter().zip(permitted) {
            assert_eq!(state.as_str(), name);
            for (message, expected) in LifecycleMessage::ALL.into_iter().zip(row) {
                let after = state.after(message);
                assert_eq!(after, expected.ok_or(InvalidTransition { state, message }));
            }
        }
    }

    #[test]
    fn a_rejected_message_is_named_with_the_state() {
        let error = ConnectionLifecycleState::Active.after(LifecycleMessage::Exit).unwrap_err();
        assert_eq!(error.to_string(), "`exit` is not permitted in the state `active`");
    }

    /// Proves: B50
    #[test]
    fn the_page_has_the_table_of_moves() {
        let page = include_str!("../../../../docs/connections.md");
        for state in ConnectionLifecycleState::ALL {
            let start = format!("| `{state}`");
            let row = page.lines().find(|line| line.starts_with(&start)).unwrap();
            let cells: Vec<&str> = row.split('|').skip(2).map(str::trim).take(4).collect();
            let expected = LifecycleMessage::ALL.map(|message| match state.after(message) {
                Ok(after) => format!("`{after}`"),
                Err(_) => "–".to_owned(),
            });
            assert_eq!(cells, expected, "{row}");
        }
    }
}

//! What the service knows of a connection.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::features::ClientCapabilities;
use super::lifecycle::ConnectionLifecycleState;

/// The id of a connection: a random UUID of version 4. Who has the id of a connection can use the
/// connection, with the credential of its user where the gateway needs one.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct ConnectionId(Uuid);

/// The text is not the id of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection id is not a UUID")]
pub struct InvalidConnectionId;

impl ConnectionId {
    /// Creates an id that nobody can guess.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl FromStr for ConnectionId {
    type Err = InvalidConnectionId;

    fn from_str(text: &str) -> Result<Self, InvalidConnectionId> {
        // The library also parses texts with braces and without hyphens.
        let hyphenated = text.len() == uuid::fmt::Hyphenated::LENGTH;
        let id = Uuid::try_parse(text).ok().filter(|_| hyphenated);
        id.map(Self).ok_or(InvalidConnectionId)
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ConnectionId {
    /// Shows the start of the id: logs must not contain ids that can be used.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionId({:08x}-…)", self.0.as_fields().0)
    }
}

/// The program of a client.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ClientInfo {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
    /// Other members, which the service keeps as they are.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub additional_info: Map<String, Value>,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ConnectionState {
    /// The id.
    pub id: ConnectionId,
    /// The program of the client.
    pub client_info: ClientInfo,
    /// What the client declared in `initialize`.
    pub client_capabilities: ClientCapabilities,
    /// The state.
    pub state: ConnectionLifecycleState,
    /// The user that opened the connection: the principal that the authentication verified.
    pub user_id: Option<String>,
    /// Data of the application.
    #[serde(default)]
    pub session_data: Map<String, Value>,
    /// The time of `initialize`.
    pub created_at: DateTime<Utc>,
    /// The time of the last use.
    pub last_activity: DateTime<Utc>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_is_a_hyphenated_uuid_and_its_debug_form_cannot_be_used() {
        let id = ConnectionId::random();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(ConnectionId::random(), id);
        let text = id.to_string();
        for other in ["", "x", &text.replace('-', ""), &format!("{{{text}}}"), &format!("{text} ")]
        {
            assert_eq!(other.parse::<ConnectionId>(), Err(InvalidConnectionId), "{other}");
        }
        assert_eq!(format!("{id:?}"), format!("ConnectionId({}-…)", &text[..8]));
    }

    /// Proves: B-b5
    #[test]
    fn a_connection_survives_its_json_form() {
        let value = json!({
            "id": "0b5a43e3-6a6c-4d8a-9f2c-0d8f2a6f3d10",
            "client_info": { "name": "test-client", "version": "1.0" },
            "client_capabilities": { "jobs": true },
            "state": "active",
            "user_id": "ann",
            "session_data": { "page": 3 },
            "created_at": "2026-11-26T03:00:00Z",
            "last_activity": "2026-11-26T03:00:01.500Z",
        });
        let connection: ConnectionState = serde_json::from_value(value).unwrap();
        assert_eq!(connection.user_id.as_deref(), Some("ann"));
        assert_eq!(connection.session_data["page"], 3);
        let stored = serde_json::to_string(&connection).unwrap();
        assert_eq!(serde_json::from_str::<ConnectionState>(&stored).unwrap(), connection);
    }
}

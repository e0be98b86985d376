//! A connection as the fields of a hash in Redis.

use bytes::Bytes;
use chrono::DateTime;

use super::keys::DATA_PREFIX;
use crate::connections::lifecycle::ConnectionLifecycleState;
use crate::connections::state::{ConnectionId, ConnectionState};
use crate::store_error::StoreError;

/// Returns the JSON of what does not change: the data of the application has fields of its own.
pub(super) fn document(connection: &ConnectionState) -> Result<String, StoreError> {
    let document = ConnectionState { session_data: serde_json::Map::new(), ..connection.clone() };
    serde_json::to_string(&document).map_err(|error| StoreError { reason: error.to_string() })
}

/// Returns the text of a user in Redis, which differs from that of no user.
pub(super) fn user_text(user: Option<&str>) -> String {
    user.map_or_else(String::new, |user| format!("user:{user}"))
}

/// Parses the fields of a connection: names and values by turns.
pub(super) fn parse(id: ConnectionId, fields: &[Bytes]) -> Result<ConnectionState, StoreError> {
    let names = fields.iter().step_by(2);
    let values = fields.iter().skip(1).step_by(2);
    let fields = || names.clone().zip(values.clone());
    let value =
        |name: &str| fields().find(|(other, _)| *other == name.as_bytes()).map(|(_, value)| value);

    let json = value("connection").ok_or_else(|| invalid(id, "connection"))?;
    let mut connection: ConnectionState =
        serde_json::from_slice(json).map_err(|_| invalid(id, "connection"))?;
    if connection.id != id {
        return Err(invalid(id, "connection"));
    }
    connection.state = parse_state(id, value("state"))?;
    if let Some(time) = value("last_activity") {
        let time = text(time).and_then(|time| time.parse().ok());
        let time = time.and_then(DateTime::from_timestamp_millis);
        connection.last_activity = time.ok_or_else(|| invalid(id, "last_activity"))?;
    }
    for (name, value) in fields() {
        let Some(key) = name.strip_prefix(DATA_PREFIX.as_bytes()) else { continue };
        let key = std::str::from_utf8(key).map_err(|_| invalid(id, DATA_PREFIX))?;
        let value = serde_json::from_slice(value).map_err(|_| invalid(id, DATA_PREFIX))?;
        connection.session_data.insert(key.to_owned(), value);
    }
    Ok(connection)
}

/// Parses the name of a state.
pub(super) fn parse_state(
    id: ConnectionId,
    name: Option<&Bytes>,
) -> Result<ConnectionLifecycleState, StoreError> {
    let mut states = ConnectionLifecycleState::ALL.into_iter();
    let state = name.and_then(|name| states.find(|state| state.as_str().as_bytes() == name));
    state.ok_or_else(|| invalid(id, "state"))
}

fn text(bytes: &Bytes) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn invalid(id: ConnectionId, field: &str) -> StoreError {
    StoreError { reason: format!("the field `{field}` of {id:?} in Redis is not valid") }
}

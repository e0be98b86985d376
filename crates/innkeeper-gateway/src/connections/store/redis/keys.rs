//! The names of keys and fields in Redis.

use crate::connections::state::ConnectionId;

/// The channel with the ids of connections that a reader must look at.
pub(super) const NOTICE_CHANNEL: &str = "mcp:connections:changed";

/// The prefix of fields with the data of the application.
pub(super) const DATA_PREFIX: &str = "data:";

/// Returns the keys of all scripts: the connection, its events, the mark that the id is known, the set
/// of all connections and the set of the active connections.
pub(super) fn script_keys(id: ConnectionId) -> [String; 5] {
    [
        format!("mcp:connection:{id}"),
        format!("mcp:connection:{id}:events"),
        format!("mcp:connection:{id}:known"),
        "mcp:connections:all".to_owned(),
        "mcp:connections:active".to_owned(),
    ]
}

pub(super) fn user_set(user: &str) -> String {
    format!("mcp:connections:user:{user}")
}

/// Returns the field of a member of the data of the application.
pub(super) fn data_field(key: &str) -> String {
    format!("{DATA_PREFIX}{key}")
}

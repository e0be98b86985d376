//! The minimum level of the log messages that servers send.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_protocol::{Era, method};
use serde::Serialize;
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::connection::Connection;
use crate::error::CallError;
use crate::session::DetachedRequest;

/// Timeout of a request that sets the level after a start; nothing waits for the response.
const SET_LEVEL_TIMEOUT: Duration = Duration::from_secs(30);

/// The severity of a log message: a syslog level, from the lowest to the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// General information.
    Info,
    /// Normal but significant events.
    Notice,
    /// Warnings.
    Warning,
    /// Errors.
    Error,
    /// Critical conditions, for example the failure of a component.
    Critical,
    /// Conditions that require an action at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    /// All levels, from the lowest to the highest severity.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the name of the level in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Returns the level with this name in the protocol.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

#[derive(Debug, Default)]
struct LevelTable {
    all: Option<LogLevel>,
    by_server: HashMap<Arc<str>, LogLevel>,
}

/// The levels that the application set, for each start of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogLevels(Arc<Mutex<LevelTable>>);

impl LogLevels {
    fn table(&self) -> MutexGuard<'_, LevelTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the level of all servers.
    pub(crate) fn set_all(&self, level: LogLevel) {
        *self.table() = LevelTable { all: Some(level), by_server: HashMap::new() };
    }

    /// Sets the level of one server, which must exist, so that the table is bounded.
    pub(crate) fn set(&self, server: &Arc<str>, level: LogLevel) {
        self.table().by_server.insert(server.clone(), level);
    }

    pub(crate) fn get(&self, server: &str) -> Option<LogLevel> {
        let table = self.table();
        table.by_server.get(server).copied().or(table.all)
    }
}

/// Returns whether the host can set the level of the server's log messages.
pub(crate) fn can_set(connection: &Connection) -> bool {
    connection.negotiated.revision.era() == Era::Modern || connection.negotiated.declares_logging
}

/// Sets the level without waiting for a response: in the modern era for the next requests, in the
/// legacy era with a request, if the server declares `logging`.
pub(crate) fn set_detached(connection: &Connection, level: Option<LogLevel>) {
    let Some(level) = level else { return };
    connection.negotiated.client_meta.set_log_level(level);
    if connection.negotiated.revision.era() == Era::Legacy && connection.negotiated.declares_logging
    {
        connection.session.send_detached(DetachedRequest {
            method: method::LOGGING_SET_LEVEL,
            name: method::LOGGING_SET_LEVEL.to_owned(),
            // Serialization of an object with strings cannot fail.
            params: to_raw_value(&json!({ "level": level })).unwrap_or_default(),
            limit: SET_LEVEL_TIMEOUT,
        });
    }
}

/// Sets the level that the application set during the start, after the start has published the
/// connection. From then on the application sets the level over the connection.
pub(crate) fn update_detached(connection: &Connection, level: Option<LogLevel>) {
    if level != connection.negotiated.client_meta.log_level() {
        set_detached(connection, level);
    }
}

/// Sets the level again after the session was re-established without its state.
pub(super) fn renew(connection: &Connection) {
    set_detached(connection, connection.negotiated.client_meta.log_level());
}

/// Sets the level like [`set_detached`], and waits for the response of a server of the legacy era.
pub(crate) async fn set(
    connection: &Connection,
    level: LogLevel,
    timeout: Duration,
) -> Result<(), CallError> {
    connection.negotiated.client_meta.set_log_level(level);
    if connection.negotiated.revision.era() == Era::Legacy && connection.negotiated.declares_logging
    {
        let params = json!({ "level": level });
        connection.request_internal(method::LOGGING_SET_LEVEL, &params, timeout).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

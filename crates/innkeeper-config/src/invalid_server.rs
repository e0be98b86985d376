//! A server whose entry has errors.

use serde::Serialize;

use crate::diagnostic::{ConfigError, Diagnostic, Position};

/// A server that [`Config::load_partial`](crate::Config::load_partial) set aside because its entry
/// has errors.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InvalidServer {
    /// Key of the entry as written in the file, such as `mcpServers.fs`.
    pub key: String,
    /// Position of the entry.
    pub position: Position,
    /// Transport of the server, if known.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub transport: Option<&'static str>,
    /// Whether the application needs the server. Default: true.
    pub required: bool,
    /// Problems of the entry, sorted by position; at least one is an error.
    pub problems: Vec<Diagnostic>,
}

impl InvalidServer {
    /// Returns the errors on one line, without hints.
    pub fn reason(&self) -> String {
        let errors = self.problems.iter().filter(|problem| problem.is_error());
        errors.map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    /// Returns the problems as the error of a configuration.
    pub fn to_error(&self) -> ConfigError {
        ConfigError(self.problems.clone())
    }
}

//! Settings of the console.

use serde::Serialize;

/// The console for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleConfig {
    /// Whether the gateway has the console. Default: true.
    pub enabled: bool,
    /// Ids of the principals that may use the console. Default: none.
    pub operators: Vec<String>,
}

impl Default for ConsoleConfig {
    fn default() -> Self {
        Self { enabled: true, operators: Vec::new() }
    }
}

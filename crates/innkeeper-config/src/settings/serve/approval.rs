//! Settings of calls and forms that wait for the answer of an operator.

use std::time::Duration;

use serde::Serialize;

use crate::settings::seconds;

/// Calls and forms that wait for the answer of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalConfig {
    /// Tools whose calls wait for an approval, by any of their names, with patterns.
    /// Default: none.
    pub tools: Vec<String>,
    /// Time for an answer. Default: 1 hour.
    #[serde(rename = "expirySeconds", with = "seconds")]
    pub expiry: Duration,
    /// Whether operators answer forms of servers. Default: false.
    pub elicitations: bool,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self { tools: Vec::new(), expiry: Duration::from_hours(1), elicitations: false }
    }
}

impl ApprovalConfig {
    /// Returns whether anything can wait for an operator.
    pub fn is_configured(&self) -> bool {
        !self.tools.is_empty() || self.elicitations
    }
}

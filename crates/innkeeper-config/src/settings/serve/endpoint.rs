//! Settings of a named endpoint.

use std::time::Duration;

use serde::Serialize;

use super::NameStyle;
use crate::settings::filter::ToolFilter;
use crate::settings::seconds;

/// A selection of servers and tools on a path of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointConfig {
    /// Offered servers; `None` for all servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Offered tools, by any of their names.
    pub tools: ToolFilter,
    /// Names of tools and prompts. Default: as in [`super::ServeConfig::names`].
    pub names: NameStyle,
    /// Whether the endpoint offers a search in place of the tools. Default: false.
    pub search: bool,
    /// Tools that the endpoint offers beside the search, by name or pattern. Default: none.
    pub pinned: Vec<String>,
    /// Storage of large results; `None` sends results as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub large_results: Option<LargeResults>,
}

/// Storage of large results as resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LargeResults {
    /// Size in bytes above which a result is stored. Default: 256 KiB.
    pub bytes: u64,
    /// Time until a stored result is deleted. Default: 10 minutes.
    #[serde(with = "seconds")]
    pub ttl: Duration,
}

impl Default for LargeResults {
    fn default() -> Self {
        Self { bytes: 256 << 10, ttl: Duration::from_mins(10) }
    }
}

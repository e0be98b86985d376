//! The arguments of the two tools of a search.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Number of results of a search without a limit.
pub const DEFAULT_SEARCH_LIMIT: u32 = 10;

/// Maximum number of results of a search.
pub const MAX_SEARCH_LIMIT: u32 = 50;

/// Maximum number of tools of one description: a definition may take thousands of tokens.
pub const MAX_DESCRIBED_TOOLS: usize = 10;

/// The arguments of a search.
#[derive(Debug, Deserialize)]
pub(super) struct SearchArguments {
    pub(super) query: String,
    limit: Option<f64>,
}

impl SearchArguments {
    pub(super) fn parse(arguments: &RawValue) -> serde_json::Result<Self> {
        serde_json::from_str(arguments.get())
    }

    /// Returns the number of results, from 1 to [`MAX_SEARCH_LIMIT`].
    pub(super) fn limit(&self) -> usize {
        let limit = self.limit.unwrap_or(DEFAULT_SEARCH_LIMIT.into());
        limit.clamp(1.0, MAX_SEARCH_LIMIT.into()) as usize
    }
}

/// The arguments of a description.
#[derive(Debug, Deserialize)]
pub(super) struct DescribeArguments {
    names: Vec<String>,
}

impl DescribeArguments {
    pub(super) fn parse(arguments: &RawValue) -> serde_json::Result<Self> {
        serde_json::from_str(arguments.get())
    }

    /// Returns the first [`MAX_DESCRIBED_TOOLS`] names, without repetitions.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in &self.names {
            if names.len() < MAX_DESCRIBED_TOOLS && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }
}

//! Offers a model a search for tools in place of all tools.
//!
//! The model gets the tools `search_tools` and `describe_tools`. A search returns names with short
//! descriptions. A description returns definitions, and offers the described tools from the next
//! request on. A call of a tool therefore passes the same checks as without the search.

mod results;
mod search;
mod searchable_tools;

use serde::{Deserialize, Serialize};

pub use innkeeper_toolcall::search_tools::{
    DEFAULT_SEARCH_LIMIT, MAX_DESCRIBED_TOOLS, MAX_SEARCH_LIMIT,
};
pub use searchable_tools::SearchableTools;

/// Minimum number of tools for a search: a search takes two more requests, and the definitions of
/// its own tools take as many tokens as a few other definitions.
pub const MIN_SEARCHED_TOOLS: usize = 20;

/// The default share of the context window that the definitions of all tools may take.
pub const DEFAULT_LISTING_SHARE: f64 = 0.1;

/// When an agent offers a search for tools, and which tools it offers beside the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSearchSettings {
    /// The share of the context window that the definitions of all tools may take, from 0 to 1. If
    /// they take more, and if there are at least [`MIN_SEARCHED_TOOLS`], the model gets the search.
    /// The model also gets it if there are more tools than the provider takes. With 0, the model gets
    /// the search in any case; with `None`, it gets as many tools as the provider takes, without a
    /// search. Default: [`DEFAULT_LISTING_SHARE`].
    pub max_listing_share: Option<f64>,
    /// The public names of tools that the model always gets. A name without a tool has no effect.
    /// Default: none.
    pub pinned_tools: Vec<String>,
}

impl ToolSearchSettings {
    /// Returns the settings that offer all tools without a search.
    pub fn disabled() -> Self {
        Self { max_listing_share: None, ..Self::default() }
    }
}

impl Default for ToolSearchSettings {
    fn default() -> Self {
        Self { max_listing_share: Some(DEFAULT_LISTING_SHARE), pinned_tools: Vec::new() }
    }
}

#[cfg(test)]
mod tests;

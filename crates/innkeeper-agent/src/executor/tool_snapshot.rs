//! The tools that a runner lists, with the tools that the blocklist leaves.

use std::sync::Arc;

use innkeeper_toolcall::{ToolValidator, Tools};

use crate::safety::ToolBlocklist;
use crate::tools::{AvailableTool, ToolAnnotations};

/// A list of tools. The schemas are compiled once per list.
#[derive(Debug, Default)]
pub(crate) struct ToolSnapshot {
    listed: Vec<AvailableTool>,
    /// The tools that the model gets.
    pub(crate) available: Arc<Tools>,
    /// All tools. Calls of blocked tools are recognized and refused, not mistaken for text.
    pub(crate) known: Arc<Tools>,
    /// The validator of the available tools.
    pub(crate) tool_validator: Arc<ToolValidator>,
}

impl ToolSnapshot {
    pub(super) fn new(listed: Vec<AvailableTool>, blocklist: &ToolBlocklist) -> Self {
        let known: Tools = listed.iter().map(|listed| listed.tool.clone()).collect();
        let available: Tools =
            known.iter().filter(|tool| !blocklist.is_blocked(&tool.name)).cloned().collect();
        let tool_validator = Arc::new(ToolValidator::new(available.clone()));
        let known = Arc::new(known);
        let available =
            if available.len() == known.len() { known.clone() } else { Arc::new(available) };
        Self { listed, available, known, tool_validator }
    }

    pub(super) fn is_of(&self, listed: &[AvailableTool]) -> bool {
        self.listed == listed
    }

    pub(super) fn annotations(&self, tool: &str) -> ToolAnnotations {
        let listed = self.listed.iter().find(|listed| listed.tool.name == tool);
        listed.map(|listed| listed.annotations).unwrap_or_default()
    }
}

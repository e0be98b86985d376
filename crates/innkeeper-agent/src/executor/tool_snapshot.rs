//! The tools that a runner lists, with the tools that the blocklist leaves.

use std::collections::HashSet;

use crate::safety::ToolBlocklist;
use crate::tools::{AvailableTool, OfferedTools, ToolAnnotations, UnavailableTool};

/// A list of tools. The schemas are compiled once per list.
#[derive(Debug, Default)]
pub(crate) struct ToolSnapshot {
    listed: Vec<AvailableTool>,
    pub(crate) tools: OfferedTools,
}

impl ToolSnapshot {
    pub(super) fn new(
        listed: Vec<AvailableTool>,
        unavailable: Vec<UnavailableTool>,
        blocklist: &ToolBlocklist,
    ) -> Self {
        let known = listed.iter().map(|listed| listed.tool.clone()).collect();
        let refused: HashSet<&str> = listed
            .iter()
            .filter(|listed| listed.refusal.is_some())
            .map(|listed| &*listed.tool.name)
            .collect();
        let tools =
            OfferedTools::new(known, |name| refused.contains(name) || blocklist.is_blocked(name))
                .with_unavailable(unavailable);
        Self { listed, tools }
    }

    pub(super) fn is_of(&self, listed: &[AvailableTool]) -> bool {
        self.listed == listed
    }

    pub(super) fn annotations(&self, tool: &str) -> ToolAnnotations {
        self.find(tool).map(|listed| listed.annotations).unwrap_or_default()
    }

    /// Returns the tool with this public name.
    pub(crate) fn find(&self, tool: &str) -> Option<&AvailableTool> {
        self.listed.iter().find(|listed| listed.tool.name == tool)
    }
}

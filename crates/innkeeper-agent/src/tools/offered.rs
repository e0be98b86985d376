//! The tools of one iteration of a run.

use std::sync::Arc;

use innkeeper_toolcall::{ToolValidator, Tools};

/// The tools of one iteration of a run, with their compiled schemas. Clones share the tools.
#[derive(Clone, Debug, Default)]
pub struct OfferedTools {
    /// The tools that the model gets.
    pub available: Arc<Tools>,
    /// All tools: those that the model may call, and the blocked tools, whose calls are recognized
    /// and passed to the executor, which refuses them.
    pub known: Arc<Tools>,
    /// The validator of the available tools.
    pub validator: Arc<ToolValidator>,
}

impl OfferedTools {
    /// Compiles the schemas of the tools that are not blocked.
    pub fn new(known: Tools, is_blocked: impl Fn(&str) -> bool) -> Self {
        let available: Tools =
            known.iter().filter(|tool| !is_blocked(&tool.name)).cloned().collect();
        let validator = Arc::new(ToolValidator::new(available.clone()));
        let known = Arc::new(known);
        let available =
            if available.len() == known.len() { known.clone() } else { Arc::new(available) };
        Self { available, known, validator }
    }

    /// Returns the tools without those that `is_omitted` names: a call of such a tool is the call of
    /// an unknown tool.
    pub(crate) fn without(self, is_omitted: impl Fn(&str) -> bool) -> Self {
        if !self.known.iter().any(|tool| is_omitted(&tool.name)) {
            return self;
        }
        let known = self.known.iter().filter(|tool| !is_omitted(&tool.name)).cloned().collect();
        let available = self.available;
        Self::new(known, |name| available.get(name).is_none())
    }
}

//! The tools of one iteration of a run.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, ToolValidator, Tools};
use serde_json::json;

use super::{UnavailableTool, describe_losses};

/// The tools of one iteration of a run, with their compiled schemas. Clones share the tools.
#[derive(Clone, Debug, Default)]
pub struct OfferedTools {
    /// The tools that the model gets.
    pub available: Arc<Tools>,
    /// All tools: those that the model may call, the blocked tools, whose calls are recognized and
    /// passed to the executor, which refuses them, and the tools of unavailable servers: without
    /// them, a name that two servers share would mean the tool of the other server.
    pub known: Arc<Tools>,
    /// The validator of the available tools.
    pub validator: Arc<ToolValidator>,
    /// The tools that cannot be called now, because their server is unavailable.
    pub unavailable: Arc<[UnavailableTool]>,
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
        Self { available, known, validator, unavailable: Arc::default() }
    }

    /// Sets the tools that cannot be called now, because their server is unavailable.
    #[must_use]
    pub fn with_unavailable(self, unavailable: impl Into<Arc<[UnavailableTool]>>) -> Self {
        let unavailable = unavailable.into();
        let lost = unavailable.iter().filter(|tool| self.known.get(&tool.name).is_none());
        let lost: Vec<Tool> = lost.map(|tool| Tool::new(&*tool.name, "", json!({}))).collect();
        let known = match lost.is_empty() {
            true => self.known,
            false => Arc::new(self.known.iter().cloned().chain(lost).collect()),
        };
        Self { known, unavailable, ..self }
    }

    /// Returns the tools that were available and are not in `newer`, because their server became
    /// unavailable.
    pub(crate) fn losses<'n>(&self, newer: &'n Self) -> Vec<&'n UnavailableTool> {
        let unavailable = newer.unavailable.iter();
        unavailable.filter(|tool| self.available.get(&tool.name).is_some()).collect()
    }

    /// Returns why a tool cannot be called; `None` if no unavailable server had the tool.
    pub(crate) fn unavailable_message(&self, name: &str) -> Option<String> {
        let tool = self.unavailable.iter().find(|tool| tool.name == name)?;
        describe_losses(self.unavailable.iter().filter(|other| other.server == tool.server)).pop()
    }

    /// Returns the tools without those that `is_omitted` names: a call of such a tool is the call of
    /// an unknown tool.
    pub(crate) fn without(self, is_omitted: impl Fn(&str) -> bool) -> Self {
        if !self.known.iter().any(|tool| is_omitted(&tool.name)) {
            return self;
        }
        let known = self.known.iter().filter(|tool| !is_omitted(&tool.name)).cloned().collect();
        let available = self.available;
        Self::new(known, |name| available.get(name).is_none()).with_unavailable(self.unavailable)
    }
}

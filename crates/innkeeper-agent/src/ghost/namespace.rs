//! The prefix of the names that the model sees, removed again by a table.

use std::collections::HashMap;
use std::sync::Arc;

use innkeeper_host::Host;
use serde_json::value::RawValue;

use super::DEFAULT_NAMESPACE;
use crate::agent::RunResult;
use crate::tools::{AvailableTool, ToolCallFuture, ToolCallOptions, ToolRunner};

/// The public name of a tool by the name that the model sees.
pub(super) type PublicNames = HashMap<String, String>;

/// The tools of a host under the names of a namespace.
#[derive(Clone, Debug)]
pub(super) struct Namespace {
    host: Host,
    /// `None` for the default namespace.
    prefix: Option<String>,
}

impl Namespace {
    pub(super) fn new(name: &str, host: Host) -> Self {
        let is_default = name.is_empty() || name == DEFAULT_NAMESPACE;
        Self { host, prefix: (!is_default).then(|| format!("{name}_")) }
    }

    /// Returns the public names of the current tools.
    pub(super) fn public_names(&self) -> PublicNames {
        let tools = self.host.list_tools().into_iter().map(|available| available.tool.name);
        tools.map(|name| (self.shown_name(&name), name)).collect()
    }

    fn shown_name(&self, public_name: &str) -> String {
        format!("{}{public_name}", self.prefix.as_deref().unwrap_or_default())
    }
}

impl ToolRunner for Namespace {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let mut tools = self.host.list_tools();
        for available in &mut tools {
            available.tool.name = self.shown_name(&available.tool.name);
        }
        tools
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        options: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        let public_name = name.strip_prefix(prefix).unwrap_or(name);
        ToolRunner::call_tool(&self.host, public_name, arguments, options)
    }
}

/// Replaces the names that the model saw by the public names, except in texts.
pub(super) fn restore_names(result: &mut RunResult, names: &PublicNames) {
    for record in &mut result.tool_calls {
        if let Some(public_name) = names.get(&record.tool) {
            Arc::make_mut(record).tool.clone_from(public_name);
        }
    }
    for error in &mut result.errors {
        if let Some(public_name) = error.tool.as_ref().and_then(|tool| names.get(tool)) {
            error.tool = Some(public_name.clone());
        }
    }
}

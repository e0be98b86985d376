//! The prefix of the names that the model sees, removed again by a table.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_host::Host;
use serde_json::value::RawValue;

use super::DEFAULT_NAMESPACE;
use crate::agent::RunResult;
use crate::tools::{AvailableTool, RefreshFuture, ToolCallFuture, ToolCallOptions, ToolRunner};

/// The public name of a tool by the name that the model sees.
pub(super) type PublicNames = HashMap<String, String>;

/// The tools of a host under the names of a namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    host: Host,
    /// `None` for the default namespace.
    prefix: Option<String>,
    /// All tools that were listed.
    names: Mutex<PublicNames>,
}

impl Namespace {
    pub(super) fn new(name: &str, host: Host) -> Self {
        let is_default = name.is_empty() || name == DEFAULT_NAMESPACE;
        let prefix = (!is_default).then(|| format!("{name}_"));
        Self { host, prefix, names: Mutex::default() }
    }

    /// Returns the public names of all tools that were listed.
    pub(super) fn public_names(&self) -> PublicNames {
        self.lock().clone()
    }

    /// Returns the name that the model sees.
    pub(super) fn display_name(&self, public_name: &str) -> String {
        format!("{}{public_name}", self.prefix.as_deref().unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, PublicNames> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolRunner for Namespace {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let mut tools = self.host.list_tools();
        if self.prefix.is_none() {
            return tools;
        }
        let mut names = self.lock();
        for available in &mut tools {
            let name = self.display_name(&available.tool.name);
            let public_name = std::mem::replace(&mut available.tool.name, name.clone());
            names.insert(name, public_name);
        }
        tools
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        options: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let public_name = self.lock().get(name).cloned().unwrap_or_else(|| name.to_owned());
        Box::pin(async move {
            ToolRunner::call_tool(&self.host, &public_name, arguments, options).await
        })
    }

    fn finish_refresh(&self) -> RefreshFuture<'_> {
        ToolRunner::finish_refresh(&self.host)
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

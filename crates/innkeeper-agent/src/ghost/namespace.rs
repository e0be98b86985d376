//! The prefix of the names that the model sees, removed again by a table.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::value::RawValue;

use super::DEFAULT_NAMESPACE;
use crate::agent::RunResult;
use crate::safety::{ApprovalDecision, ApprovalRequest, Approver, ToolBlocklist};
use crate::tools::{
    AvailableTool, RefreshFuture, ToolCallFuture, ToolCallOptions, ToolRunner, UnavailableTool,
};

/// The tools of a runner under the names of a namespace. The default namespace
/// ([`DEFAULT_NAMESPACE`]) changes no name; another one becomes the prefix of the names that the
/// model sees.
pub struct Namespace {
    runner: Arc<dyn ToolRunner>,
    /// `None` for the default namespace.
    prefix: Option<String>,
    /// The blocked tools, by public names. A blocked tool has no name in a namespace with a prefix.
    blocklist: ToolBlocklist,
    /// The public names of all tools that were listed, by the names that the model sees.
    names: Mutex<HashMap<String, String>>,
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespace").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Namespace {
    /// Creates a namespace over the tools of a runner. The blocklist has public names.
    pub fn new(name: &str, runner: Arc<dyn ToolRunner>, blocklist: ToolBlocklist) -> Self {
        let prefix = prefix_of(name);
        Self { runner, prefix, blocklist, names: Mutex::default() }
    }

    /// Returns the name that the model sees.
    pub fn display_name(&self, public_name: &str) -> String {
        format!("{}{public_name}", self.prefix.as_deref().unwrap_or_default())
    }

    /// Returns an approver that passes the requests on with the public names of the tools.
    pub fn approver(self: &Arc<Self>, approver: Arc<dyn Approver>) -> Arc<dyn Approver> {
        Arc::new(PublicNameApprover { approver, namespace: self.clone() })
    }

    /// Replaces the names that the model saw by the public names, except in texts.
    pub fn restore_names(&self, result: &mut RunResult) {
        let names = self.lock();
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

    /// Returns the public name of a tool by the name that the model sees.
    fn public_name(&self, name: &str) -> String {
        self.lock().get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the prefix of a namespace; `None` for the default one.
fn prefix_of(namespace: &str) -> Option<String> {
    let is_default = namespace.is_empty() || namespace == DEFAULT_NAMESPACE;
    (!is_default).then(|| format!("{namespace}_"))
}

/// Returns the name that the model sees of a tool in a namespace.
pub(super) fn display_name(namespace: &str, public_name: &str) -> String {
    format!("{}{public_name}", prefix_of(namespace).unwrap_or_default())
}

impl ToolRunner for Namespace {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let mut tools = self.runner.list_tools();
        if self.prefix.is_none() {
            return tools;
        }
        tools.retain(|available| !self.blocklist.is_blocked(&available.tool.name));
        let mut names = self.lock();
        for available in &mut tools {
            let name = self.display_name(&available.tool.name);
            let public_name = std::mem::replace(&mut available.tool.name, name.clone());
            names.insert(name, public_name);
        }
        tools
    }

    fn unavailable_tools(&self) -> Vec<UnavailableTool> {
        let mut tools = self.runner.unavailable_tools();
        if self.prefix.is_some() {
            tools.retain(|tool| !self.blocklist.is_blocked(&tool.name));
            tools.iter_mut().for_each(|tool| tool.name = self.display_name(&tool.name));
        }
        tools
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        options: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let public_name = self.public_name(name);
        Box::pin(async move { self.runner.call_tool(&public_name, arguments, options).await })
    }

    fn finish_refresh(&self) -> RefreshFuture<'_> {
        self.runner.finish_refresh()
    }
}

/// Passes the requests to an approver with the public names of the tools.
struct PublicNameApprover {
    approver: Arc<dyn Approver>,
    namespace: Arc<Namespace>,
}

#[async_trait]
impl Approver for PublicNameApprover {
    async fn decide(&self, request: ApprovalRequest<'_>) -> ApprovalDecision {
        let tool = self.namespace.public_name(request.tool);
        self.approver.decide(ApprovalRequest { tool: &tool, ..request }).await
    }
}

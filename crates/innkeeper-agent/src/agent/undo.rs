//! Undoes the calls of a run with the tools that the application or the servers name for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_toolcall::{Json, ResolvedCall};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Agent, RunResult, ToolCallRecord};
use crate::executor::{
    CallQueue, Executor, QueueEvent, QueuedCall, StartRule, ToolExecution, ToolSnapshot,
};
use crate::tools::{AvailableTool, ToolOutput};

/// The member of a tool definition's `_meta` that names the tool of the same server that undoes a
/// call.
pub const UNDO_META_KEY: &str = "innkeeper/undoTool";

/// The attempt to undo one call.
#[derive(Clone, Debug)]
pub struct UndoRecord {
    /// The id of the undone call in the conversation.
    pub call_id: String,
    /// The undone call's tool.
    pub tool: String,
    /// The call that undoes it.
    pub execution: ToolExecution,
}

impl UndoRecord {
    /// Whether the call was undone: the tool returned a result without an error.
    pub fn is_undone(&self) -> bool {
        self.execution.outcome.as_ref().is_ok_and(|output| !output.is_error())
    }
}

impl Agent {
    /// Undoes the successful calls of a run, last call first, each with the tool that
    /// [`ToolUseSettings::undo_tools`](super::ToolUseSettings::undo_tools) or the definition of its tool
    /// names ([`UNDO_META_KEY`]). Calls without such a tool and cached results stay as they are. An
    /// attempt that fails does not stop the others; the conversation does not change.
    ///
    /// Each argument of the undoing call is the member of that name in the structured content of the
    /// result, else in the arguments of the undone call. The calls obey the safety rules, approvals
    /// included. Dropping the future cancels the running call.
    pub async fn undo(&self, result: &RunResult) -> Vec<UndoRecord> {
        // The model may have searched its tools, so that the undoing tools are not offered.
        let executor = self.executor.with_runner(self.runner.clone());
        let snapshot = executor.tool_snapshot();
        let mut undone = Vec::new();
        for record in
            result.tool_calls.iter().rev().filter(|it| it.outcome.success && !it.outcome.cached)
        {
            let Some(call) = undo_call(&self.settings.tool_use.undo_tools, &snapshot, record)
            else {
                continue;
            };
            if let Some(execution) = run_call(executor.clone(), &snapshot, call).await {
                let call_id = record.id.clone();
                let tool = record.tool.clone();
                undone.push(UndoRecord { call_id, tool, execution });
            }
        }
        undone
    }
}

/// Runs one call under the safety rules.
async fn run_call(
    executor: Executor,
    snapshot: &Arc<ToolSnapshot>,
    call: ResolvedCall,
) -> Option<ToolExecution> {
    let rule = StartRule::AfterItsDecision;
    let mut queue = CallQueue::new(executor, snapshot.clone(), rule);
    queue.push(QueuedCall::new(0, call));
    loop {
        match queue.next().await? {
            QueueEvent::Approved => {
                if let Some(queued) = queue.take_ready() {
                    queue.start(queued);
                }
            }
            QueueEvent::Progress { .. } => {}
            QueueEvent::Refused { execution, .. } | QueueEvent::Finished(execution) => {
                return Some(execution);
            }
        }
    }
}

/// Returns the call that undoes a call; `None` without an available tool for it.
fn undo_call(
    configured: &BTreeMap<String, String>,
    snapshot: &ToolSnapshot,
    record: &ToolCallRecord,
) -> Option<ResolvedCall> {
    let name = match configured.get(&record.tool) {
        Some(name) => name.clone(),
        None => declared_undo_tool(snapshot, &record.tool)?,
    };
    let undo_tool = snapshot.find(&name)?;
    let structured = record.output.as_ref().and_then(structured_content);
    let properties = undo_tool.tool.input_schema.get("properties").and_then(Value::as_object);
    let arguments = properties.into_iter().flat_map(|properties| properties.keys());
    let arguments = arguments.filter_map(|key| {
        let value = structured.as_ref().and_then(|structured| structured.get(key));
        let value = value.or_else(|| record.arguments.get(key))?;
        Some((key.clone(), value.clone()))
    });
    let arguments = Json::Object(arguments.collect());
    Some(ResolvedCall { name: undo_tool.tool.name.clone(), arguments, repairs: Vec::new() })
}

/// The members of a definition that name the undoing tool.
#[derive(Deserialize)]
struct DefinitionView {
    name: String,
    #[serde(default, rename = "_meta")]
    meta: BTreeMap<String, Value>,
}

/// Returns the public name of the tool that a definition names: the tool of the same server.
fn declared_undo_tool(snapshot: &ToolSnapshot, tool: &str) -> Option<String> {
    let view = definition_view(snapshot.find(tool)?)?;
    let undo_tool = view.meta.get(UNDO_META_KEY)?.as_str()?;
    let name = format!("{}{undo_tool}", tool.strip_suffix(&view.name)?);
    // A name with a dot may be the public name of another server's tool.
    let is_same_server = definition_view(snapshot.find(&name)?)?.name == undo_tool;
    is_same_server.then_some(name)
}

fn definition_view(available: &AvailableTool) -> Option<DefinitionView> {
    let definition: &RawValue = available.definition.as_deref()?;
    serde_json::from_str(definition.get()).ok()
}

fn structured_content(output: &ToolOutput) -> Option<Json> {
    #[derive(Deserialize)]
    struct ResultView {
        #[serde(rename = "structuredContent")]
        structured: Json,
    }
    let view: ResultView = serde_json::from_str(output.raw().get()).ok()?;
    Some(view.structured)
}

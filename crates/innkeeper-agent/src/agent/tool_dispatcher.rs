//! Approves and runs the tool calls of one response.

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use super::{AgentEventRef, EventSink, ToolCallRecord};
use crate::run::{Effect, PendingCall, Run};
use crate::safety::{
    ApprovalDecision, ApprovalPolicy, ApprovalRequest, Approver, emit_tool_executed,
};
use crate::tool_output;
use crate::tools::{
    AvailableTool, ToolAnnotations, ToolError, ToolOutput, ToolRunner, execute_call,
};

/// Maximum number of concurrent calls per response: a server has other clients.
const MAX_PARALLEL_CALLS: usize = 8;

/// Runs calls, after approval where required.
pub(super) struct ToolDispatcher<'a> {
    pub(super) runner: &'a dyn ToolRunner,
    pub(super) approver: Option<&'a dyn Approver>,
    pub(super) approval_policy: ApprovalPolicy,
    pub(super) available_tools: &'a [AvailableTool],
}

enum ToolCallOutcome {
    Completed(ToolOutput),
    Failed(ToolError),
    Denied(String),
}

impl ToolDispatcher<'_> {
    /// Runs all calls and returns the run's next effect.
    pub(super) async fn dispatch(
        &self,
        planned: Vec<PendingCall>,
        run: &mut Run<'_>,
        records: &mut Vec<ToolCallRecord>,
        sink: &mut EventSink<'_>,
    ) -> Effect {
        let mut approved = Vec::new();
        let mut effect = Effect::AwaitTools;
        for call in planned {
            match self.decide(&call).await {
                ApprovalDecision::Approve => approved.push(call),
                ApprovalDecision::Deny(reason) => {
                    let ended = (call, ToolCallOutcome::Denied(reason), std::time::Duration::ZERO);
                    effect = finish_call(ended, run, records, sink);
                }
            }
        }
        let mut waiting = approved.into_iter();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < MAX_PARALLEL_CALLS
                && let Some(call) = waiting.next()
            {
                let arguments = call.call.arguments.to_string();
                sink(AgentEventRef::ToolCallStarted {
                    tool: &call.call.name,
                    arguments: &arguments,
                });
                running.push(self.execute(call));
            }
            let Some(ended) = running.next().await else { return effect };
            effect = finish_call(ended, run, records, sink);
        }
    }

    async fn execute(
        &self,
        planned: PendingCall,
    ) -> (PendingCall, ToolCallOutcome, std::time::Duration) {
        let start = Instant::now();
        let call_outcome = match execute_call(self.runner, &planned.call).await {
            Ok(output) => ToolCallOutcome::Completed(output),
            Err(error) => ToolCallOutcome::Failed(error),
        };
        (planned, call_outcome, start.elapsed())
    }

    async fn decide(&self, planned: &PendingCall) -> ApprovalDecision {
        let tool = &planned.call.name;
        let available_tool =
            self.available_tools.iter().find(|available| available.tool.name == *tool);
        let annotations: ToolAnnotations =
            available_tool.map(|available| available.annotations).unwrap_or_default();
        match (self.approval_policy.requires_approval(annotations), self.approver) {
            (Some(false), _) => ApprovalDecision::Approve,
            (Some(true), Some(approver)) => {
                let arguments = planned.call.arguments.to_string();
                approver.decide(ApprovalRequest { tool, arguments: &arguments, annotations }).await
            }
            (Some(true), None) => ApprovalDecision::Deny("no approver is configured".to_owned()),
            (None, _) => ApprovalDecision::Deny("the approval policy denies all tools".to_owned()),
        }
    }
}

/// Records the end of a call, and reports it to the run and the sink.
fn finish_call(
    (planned, call_outcome, elapsed): (PendingCall, ToolCallOutcome, std::time::Duration),
    run: &mut Run<'_>,
    records: &mut Vec<ToolCallRecord>,
    sink: &mut EventSink<'_>,
) -> Effect {
    let PendingCall { id, call, origin, retries, reasoning } = planned;
    let (outcome, success, content, output) = match call_outcome {
        ToolCallOutcome::Completed(output) => {
            let success = !output.is_error();
            let outcome = if success { "done" } else { "tool_error" };
            (outcome, success, tool_output::to_content(&output), Some(output))
        }
        ToolCallOutcome::Failed(error) => ("failed", false, error.to_string().into(), None),
        ToolCallOutcome::Denied(reason) => {
            ("refused", false, format!("not run: {reason}").into(), None)
        }
    };
    let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    emit_tool_executed(&call.name, &call.arguments.to_string(), outcome, milliseconds);
    let record = ToolCallRecord {
        iteration: run.stats().iterations,
        id,
        tool: call.name,
        arguments: call.arguments,
        output,
        success,
        result_text: content.to_text().into_owned(),
        elapsed,
        origin,
        retries,
        reasoning,
    };
    sink(AgentEventRef::ToolCallFinished(&record));
    let effect = run.on_tool_result(&record.id, content, !success);
    records.push(record);
    effect
}

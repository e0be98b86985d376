//! Passes the calls of one response to the executor, and their ends to the run.

use std::sync::Arc;

use super::{AgentEvent, EventSink, ToolCallRecord};
use crate::content::Content;
use crate::executor::{CallQueue, Executor, QueueEvent, QueuedCall, StartRule};
use crate::executor::{ToolExecution, ToolSnapshot};
use crate::run::{Effect, PendingCall, Run};
use crate::tool_output;

/// Runs all calls of a response and returns the run's next effect.
pub(super) async fn dispatch(
    executor: &Executor,
    snapshot: &Arc<ToolSnapshot>,
    mut pending: Vec<PendingCall>,
    run: &mut Run,
    records: &mut Vec<Arc<ToolCallRecord>>,
    sink: &mut EventSink<'_>,
) -> Effect {
    let mut calls =
        CallQueue::new(executor.clone(), snapshot.clone(), StartRule::AfterAllDecisions);
    for (index, pending) in pending.iter().enumerate() {
        calls.push(QueuedCall::new(index, pending.call.clone()));
    }
    let mut effect = Effect::AwaitTools;
    loop {
        while let Some(queued) = calls.take_ready() {
            let (tool, arguments) = (queued.call.name.clone(), queued.arguments_text.clone());
            sink(AgentEvent::ToolCallStarted { tool, arguments });
            calls.start(queued);
        }
        let execution = match calls.next().await {
            None => return effect,
            Some(QueueEvent::Approved) => continue,
            Some(QueueEvent::Refused { execution, .. } | QueueEvent::Finished(execution)) => {
                execution
            }
        };
        let Some(ended) = pending.get_mut(execution.index) else { continue };
        let (record, content) = record(execution, ended, run.stats().iterations);
        let record = Arc::new(record);
        sink(AgentEvent::ToolCallFinished(record.clone()));
        effect = run.on_tool_result(&record.id, content, !record.success);
        records.push(record);
    }
}

/// Returns the record of a call that has ended, and the content for the model.
fn record(
    execution: ToolExecution,
    pending: &mut PendingCall,
    iteration: u32,
) -> (ToolCallRecord, Content) {
    let ToolExecution { tool, arguments, outcome, elapsed, cached, .. } = execution;
    let (success, content, output) = match outcome {
        Ok(output) => {
            let content = tool_output::to_content(&output);
            (!output.is_error(), content, Some(Arc::unwrap_or_clone(output)))
        }
        Err(error) => (false, Content::from(error.to_string()), None),
    };
    let record = ToolCallRecord {
        iteration,
        id: std::mem::take(&mut pending.id),
        tool,
        arguments,
        output,
        success,
        result_text: content.to_text().into_owned(),
        elapsed,
        cached,
        origin: pending.origin,
        retries: pending.retries,
        reasoning: std::mem::take(&mut pending.reasoning),
    };
    (record, content)
}

//! Passes the calls of one response to the executor, and their ends to the run.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_host::CallError;

use super::{AgentEvent, EventSink, ToolCallRecord};
use crate::content::Content;
use crate::executor::{CallQueue, Executor, QueueEvent, QueuedCall, StartRule};
use crate::executor::{ToolExecution, ToolSnapshot};
use crate::run::{CallStatus, Effect, PendingCall, RejectedToolCall, Run, StartDecision};
use crate::tool_output;
use crate::tools::ToolError;

/// Runs the calls of responses.
pub(super) struct ToolDispatcher<'a> {
    pub(super) executor: &'a Executor,
    /// The tools of the current iteration.
    pub(super) snapshot: Arc<ToolSnapshot>,
    /// Whether the sink shows progress.
    pub(super) shows_progress: bool,
    /// The calls of earlier responses, in the order in which the model made them.
    pub(super) records: Vec<Arc<ToolCallRecord>>,
}

impl ToolDispatcher<'_> {
    /// Runs all calls of a response and returns the run's next effect.
    pub(super) async fn dispatch(
        &mut self,
        mut pending: Vec<PendingCall>,
        run: &mut Run,
        sink: &mut EventSink<'_>,
    ) -> Effect {
        let rejected = report_rejected_calls(run, sink);
        if pending.is_empty() {
            self.add_records(Vec::new(), rejected);
            self.refresh_tools(run);
            return run.on_calls_rejected();
        }
        let rule = StartRule::AfterAllDecisions;
        let mut calls = CallQueue::new(self.executor.clone(), self.snapshot.clone(), rule)
            .with_progress(self.shows_progress);
        for (index, pending) in pending.iter().enumerate() {
            let refusal = pending.refusal.clone();
            calls.push(QueuedCall { refusal, ..QueuedCall::new(index, pending.call.clone()) });
        }
        let mut unfinished = pending.len();
        // The calls that wait for another call of the response.
        let mut waiting: Vec<QueuedCall> = Vec::new();
        let mut ended: Vec<Option<Arc<ToolCallRecord>>> = vec![None; pending.len()];
        let mut effect = Effect::AwaitTools;
        loop {
            let mut refused = None;
            let id_of = |queued: &QueuedCall| pending.get(queued.index).map(|call| &*call.id);
            while let Some(queued) = calls.take_ready() {
                let id = id_of(&queued).unwrap_or_default().to_owned();
                match run.start_decision(&id) {
                    StartDecision::Start => {}
                    StartDecision::Defer => {
                        waiting.push(queued);
                        continue;
                    }
                    StartDecision::Refuse(reason) => {
                        let tool = queued.call.name.clone();
                        let error = ToolError::Refused { tool, reason };
                        refused = Some(CallQueue::refuse(queued, error));
                        break;
                    }
                }
                let (tool, arguments) = (queued.call.name.clone(), queued.arguments_text.clone());
                sink(AgentEvent::ToolCallStarted { id, tool, arguments });
                calls.start(queued);
            }
            let event = match refused {
                Some(execution) => Some(QueueEvent::Finished(execution)),
                None => calls.next().await,
            };
            let execution = match event {
                None => break,
                Some(QueueEvent::Approved) => continue,
                Some(QueueEvent::Progress { index, progress }) => {
                    if let Some(PendingCall { id, call, .. }) = pending.get(index) {
                        let (id, tool) = (id.clone(), call.name.clone());
                        sink(AgentEvent::ToolCallProgress { id, tool, progress });
                    }
                    continue;
                }
                Some(QueueEvent::Refused { execution, .. } | QueueEvent::Finished(execution)) => {
                    execution
                }
            };
            let index = execution.index;
            let (Some(call), Some(end)) = (pending.get_mut(index), ended.get_mut(index)) else {
                continue;
            };
            if unfinished == 1 {
                // The next request contains the tools that the calls changed. A run that is dropped
                // during the wait has no result of this call.
                self.executor.finish_refresh().await;
            }
            let (record, content, status) = record(execution, call, run.stats().iterations);
            let record = Arc::new(record);
            sink(AgentEvent::ToolCallFinished(record.clone()));
            *end = Some(record.clone());
            unfinished -= 1;
            if unfinished == 0 {
                // The last result leads to the next request.
                self.refresh_tools(run);
            }
            effect = run.on_tool_result(&record.id, content, status);
            run.take_warnings().into_iter().for_each(|warning| sink(AgentEvent::Warned(warning)));
            calls.requeue(waiting.drain(..));
        }
        self.add_records(ended.into_iter().flatten().collect(), rejected);
        effect
    }

    /// Adds the calls of a response without calls that run: all were rejected.
    pub(super) fn add_rejected_calls(&mut self, run: &mut Run, sink: &mut EventSink<'_>) {
        let rejected = report_rejected_calls(run, sink);
        self.add_records(Vec::new(), rejected);
    }

    /// Adds the calls of one response in the order in which the model made them.
    fn add_records(
        &mut self,
        mut records: Vec<Arc<ToolCallRecord>>,
        rejected: Vec<RejectedRecord>,
    ) {
        for RejectedRecord { position, record } in rejected {
            records.insert(position.min(records.len()), record);
        }
        self.records.extend(records);
    }

    /// Passes the current tools to the run if the runner lists others than before: a call may have
    /// changed them, and the next request must contain the current tools.
    fn refresh_tools(&mut self, run: &mut Run) {
        let snapshot = self.executor.tool_snapshot();
        if !Arc::ptr_eq(&self.snapshot, &snapshot) {
            run.on_tools_changed(snapshot.tools.clone());
            self.snapshot = snapshot;
        }
    }
}

/// Returns the record of a call that has ended, and the content for the model.
fn record(
    execution: ToolExecution,
    pending: &mut PendingCall,
    iteration: u32,
) -> (ToolCallRecord, Content, CallStatus) {
    let ToolExecution { tool, arguments, has_changed_arguments, outcome, elapsed, cached, .. } =
        execution;
    let outcome_unknown = outcome.as_ref().err().is_some_and(|error| is_outcome_unknown(error));
    let (status, content, output) = match outcome {
        Ok(output) => {
            let content = tool_output::to_content(&output);
            let status = match output.is_error() {
                true => CallStatus::Failed,
                false => CallStatus::Succeeded,
            };
            (status, content, Some(Arc::unwrap_or_clone(output)))
        }
        Err(error) => (error_status(&error), Content::from(error.to_string()), None),
    };
    let result_text = content.to_text().into_owned();
    let content = match has_changed_arguments {
        true => content.with_text(&format!("The user changed the arguments to {arguments}.")),
        false => content,
    };
    let record = ToolCallRecord {
        iteration,
        id: pending.id.clone(),
        tool,
        arguments,
        output,
        success: status == CallStatus::Succeeded,
        result_text,
        elapsed,
        was_run: matches!(status, CallStatus::Succeeded | CallStatus::Failed),
        rejected: status == CallStatus::Rejected,
        outcome_unknown,
        cached,
        origin: pending.origin,
        failed_attempts: pending.failed_attempts,
        retry_attempt: pending.retry_attempt,
        reasoning: std::mem::take(&mut pending.reasoning),
        visible_results: pending.visible_results.clone(),
    };
    (record, content, status)
}

/// The record of a rejected call, with its index among the calls of its response.
struct RejectedRecord {
    position: usize,
    record: Arc<ToolCallRecord>,
}

/// Passes the calls to the sink that the run rejected, and returns their records.
fn report_rejected_calls(run: &mut Run, sink: &mut EventSink<'_>) -> Vec<RejectedRecord> {
    let mut records = Vec::new();
    for call in run.take_rejected_calls() {
        let position = call.position;
        let record = Arc::new(rejected_record(call));
        sink(AgentEvent::ToolCallFinished(record.clone()));
        records.push(RejectedRecord { position, record });
    }
    records
}

/// Returns the record of a call that the run rejected.
fn rejected_record(call: RejectedToolCall) -> ToolCallRecord {
    ToolCallRecord {
        iteration: call.iteration,
        id: call.id,
        tool: call.tool,
        arguments: call.arguments,
        output: None,
        success: false,
        result_text: call.error,
        elapsed: Duration::ZERO,
        was_run: false,
        rejected: true,
        outcome_unknown: false,
        cached: false,
        origin: call.origin,
        failed_attempts: call.failed_attempts,
        retry_attempt: call.retry_attempt,
        reasoning: call.reasoning,
        visible_results: call.visible_results,
    }
}

/// Returns whether nothing shows if the tool ran.
fn is_outcome_unknown(error: &ToolError) -> bool {
    match error {
        ToolError::Host(CallError::Unavailable { may_have_run, .. }) => *may_have_run,
        ToolError::Host(CallError::Timeout { .. }) => true,
        ToolError::Host(_)
        | ToolError::Runner { .. }
        | ToolError::InvalidArguments { .. }
        | ToolError::BufferFull { .. }
        | ToolError::Refused { .. }
        | ToolError::Panicked { .. } => false,
    }
}

/// Returns whether a call without output was run.
fn error_status(error: &ToolError) -> CallStatus {
    match error {
        ToolError::InvalidArguments { .. } => CallStatus::Rejected,
        ToolError::Refused { .. } | ToolError::BufferFull { .. } => CallStatus::Refused,
        ToolError::Host(_) | ToolError::Runner { .. } | ToolError::Panicked { .. } => {
            CallStatus::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_host::error::UnavailableReason;

    use super::*;

    #[test]
    fn only_a_call_that_was_sent_and_got_no_response_has_an_unknown_outcome() {
        let lost = |may_have_run| CallError::Unavailable {
            server: "a".into(),
            reason: UnavailableReason::ClosedOutput,
            may_have_run,
            attempts: 1,
        };
        let timeout = CallError::Timeout {
            server: "a".into(),
            item: "t".into(),
            timeout: Duration::from_secs(1),
        };
        let errors = [lost(true), lost(false), timeout];
        let unknown = errors.map(|error| is_outcome_unknown(&ToolError::Host(error)));
        assert_eq!(unknown, [true, false, true]);
        let refused = ToolError::Refused { tool: "t".to_owned(), reason: String::new() };
        assert!(!is_outcome_unknown(&refused));
    }
}

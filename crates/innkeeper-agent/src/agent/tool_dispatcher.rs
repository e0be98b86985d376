//! Passes the calls of one response to the executor, and their ends to the run.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{AgentEvent, EventSink, ToolCallAttempts, ToolCallOutcome, ToolCallRecord};
use crate::content::Content;
use crate::executor::{CallQueue, Executor, QueueEvent, QueuedCall, StartRule};
use crate::executor::{ToolExecution, ToolSnapshot};
use crate::run::{
    CallStatus, Effect, INTERRUPTED_MESSAGE, PendingCall, RejectedToolCall, Run, StartDecision,
};
use crate::timing::Timing;
use crate::tool_output;
use crate::tools::ToolError;

/// Runs the calls of responses.
pub(super) struct ToolDispatcher<'a> {
    pub(super) executor: &'a Executor,
    pub(super) timing: &'a Timing,
    /// The tools of the current iteration.
    pub(super) snapshot: Arc<ToolSnapshot>,
    pub(super) shows_progress: bool,
    /// The calls of earlier responses, in the order in which the model made them.
    pub(super) records: Vec<Arc<ToolCallRecord>>,
    pub(super) current: ResponseCalls,
}

#[derive(Default)]
pub(super) struct ResponseCalls {
    calls: Vec<DispatchedCall>,
    rejected: Vec<RejectedRecord>,
}

/// A call that the executor has.
struct DispatchedCall {
    pending: PendingCall,
    started_at: Option<Instant>,
    /// The record of a call that has ended.
    record: Option<Arc<ToolCallRecord>>,
}

/// The record of a rejected call, with its index among the calls of its response.
struct RejectedRecord {
    position: usize,
    record: Arc<ToolCallRecord>,
}

impl ResponseCalls {
    fn id(&self, index: usize) -> String {
        self.calls.get(index).map(|call| call.pending.id.clone()).unwrap_or_default()
    }

    fn is_finished(&self) -> bool {
        self.calls.iter().all(|call| call.record.is_some())
    }

    /// Returns the records of all calls that have one, in the order in which the model made them.
    fn into_records(self) -> Vec<Arc<ToolCallRecord>> {
        let mut records: Vec<_> = self.calls.into_iter().filter_map(|call| call.record).collect();
        for RejectedRecord { position, record } in self.rejected {
            records.insert(position.min(records.len()), record);
        }
        records
    }
}

impl ToolDispatcher<'_> {
    /// Runs all calls of a response and returns the run's next effect.
    pub(super) async fn dispatch(
        &mut self,
        pending: Vec<PendingCall>,
        run: &mut Run,
        sink: &mut EventSink<'_>,
    ) -> Effect {
        self.report_rejected_calls(run, sink);
        if pending.is_empty() {
            self.end_response();
            self.refresh_tools(run);
            return run.on_calls_rejected();
        }
        let rule = StartRule::AfterAllDecisions;
        let mut queue = CallQueue::new(self.executor.clone(), self.snapshot.clone(), rule)
            .with_progress(self.shows_progress);
        for (index, pending) in pending.iter().enumerate() {
            let refusal = pending.refusal.clone();
            queue.push(QueuedCall { refusal, ..QueuedCall::new(index, pending.call.clone()) });
        }
        self.current.calls = pending
            .into_iter()
            .map(|pending| DispatchedCall { pending, started_at: None, record: None })
            .collect();
        // The calls that wait for another call of the response.
        let mut waiting: Vec<QueuedCall> = Vec::new();
        let mut effect = Effect::AwaitTools;
        loop {
            let event = match self.start_ready_calls(&mut queue, &mut waiting, run, sink) {
                Some(refused) => Some(QueueEvent::Finished(refused)),
                None => queue.next().await,
            };
            let execution = match event {
                None => break,
                Some(QueueEvent::Approved) => continue,
                Some(QueueEvent::Progress { index, progress }) => {
                    if let Some(DispatchedCall { pending, .. }) = self.current.calls.get(index) {
                        let id = pending.id.clone();
                        let tool = pending.call.name.clone();
                        sink(AgentEvent::ToolCallProgress { id, tool, progress });
                    }
                    continue;
                }
                Some(QueueEvent::Refused { execution, .. } | QueueEvent::Finished(execution)) => {
                    execution
                }
            };
            if self.current.calls.iter().filter(|call| call.record.is_none()).count() == 1 {
                // The next request contains the tools that the calls changed. A run that is dropped
                // during the wait has no result of this call.
                self.executor.finish_refresh().await;
            }
            let Some(call) = self.current.calls.get_mut(execution.index) else { continue };
            let (record, content, status) =
                record(execution, &mut call.pending, run.stats().iterations);
            let record = Arc::new(record);
            call.record = Some(record.clone());
            sink(AgentEvent::ToolCallFinished(record.clone()));
            if self.current.is_finished() {
                // The last result leads to the next request.
                self.refresh_tools(run);
            }
            effect = run.on_tool_result(&record.id, content, status);
            run.take_warnings().into_iter().for_each(|warning| sink(AgentEvent::Warned(warning)));
            queue.requeue(waiting.drain(..));
        }
        self.end_response();
        effect
    }

    /// Starts the calls that may start. Returns the first one that the run refuses.
    fn start_ready_calls(
        &mut self,
        queue: &mut CallQueue,
        waiting: &mut Vec<QueuedCall>,
        run: &Run,
        sink: &mut EventSink<'_>,
    ) -> Option<ToolExecution> {
        while let Some(queued) = queue.take_ready() {
            let id = self.current.id(queued.index);
            match run.start_decision(&id) {
                StartDecision::Start => {}
                StartDecision::Defer => {
                    waiting.push(queued);
                    continue;
                }
                StartDecision::Refuse(reason) => {
                    let tool = queued.call.name.clone();
                    let error = ToolError::Refused { tool, reason };
                    return Some(CallQueue::refuse(queued, error));
                }
            }
            if let Some(call) = self.current.calls.get_mut(queued.index) {
                call.started_at = Some(self.timing.now());
            }
            let tool = queued.call.name.clone();
            let arguments = queued.arguments_text.clone();
            sink(AgentEvent::ToolCallStarted { id, tool, arguments });
            queue.start(queued);
        }
        None
    }

    /// Adds the rejected calls of a response without calls that run.
    pub(super) fn add_rejected_calls(&mut self, run: &mut Run, sink: &mut EventSink<'_>) {
        self.report_rejected_calls(run, sink);
        self.end_response();
    }

    /// Passes the calls to the sink that the run rejected.
    fn report_rejected_calls(&mut self, run: &mut Run, sink: &mut EventSink<'_>) {
        for call in run.take_rejected_calls() {
            let position = call.position;
            let record = Arc::new(rejected_record(call));
            sink(AgentEvent::ToolCallFinished(record.clone()));
            self.current.rejected.push(RejectedRecord { position, record });
        }
    }

    fn end_response(&mut self) {
        self.records.extend(std::mem::take(&mut self.current).into_records());
    }

    /// Ends the calls of a run that is interrupted. A call that was running may have had an effect.
    pub(super) fn interrupt(&mut self, run: &mut Run) {
        let iteration = run.stats().iterations;
        for call in self.current.calls.iter_mut().filter(|call| call.record.is_none()) {
            let elapsed = call.started_at.map(|start| self.timing.elapsed(start));
            let record = interrupted_record(&call.pending, iteration, elapsed);
            run.record_interrupted_call(&record.tool, &record.id, &record.result_text);
            call.record = Some(Arc::new(record));
        }
        self.end_response();
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
    let outcome_unknown = outcome.as_ref().err().is_some_and(|error| error.may_have_run());
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
        outcome: ToolCallOutcome {
            success: status == CallStatus::Succeeded,
            was_run: matches!(status, CallStatus::Succeeded | CallStatus::Failed),
            rejected: status == CallStatus::Rejected,
            outcome_unknown,
            cached,
        },
        result_text,
        elapsed,
        origin: pending.context.origin,
        attempts: attempts(pending),
        reasoning: std::mem::take(&mut pending.context.reasoning),
        visible_results: pending.context.visible_results.clone(),
    };
    (record, content, status)
}

/// Returns the record of a call that the run rejected.
fn rejected_record(call: RejectedToolCall) -> ToolCallRecord {
    ToolCallRecord {
        iteration: call.iteration,
        id: call.id,
        tool: call.tool,
        arguments: call.arguments,
        output: None,
        outcome: ToolCallOutcome { rejected: true, ..ToolCallOutcome::default() },
        result_text: call.error,
        elapsed: Duration::ZERO,
        origin: call.context.origin,
        attempts: ToolCallAttempts {
            failed_attempts: call.context.failed_attempts,
            retry_attempt: call.retry_attempt,
        },
        reasoning: call.context.reasoning,
        visible_results: call.context.visible_results,
    }
}

/// Returns the record of a call that had not ended when its run was interrupted, after this time if
/// it had started.
fn interrupted_record(
    pending: &PendingCall,
    iteration: u32,
    elapsed: Option<Duration>,
) -> ToolCallRecord {
    let was_run = elapsed.is_some();
    let text = if was_run { INTERRUPTED_MESSAGE } else { "not run: the run was interrupted" };
    ToolCallRecord {
        iteration,
        id: pending.id.clone(),
        tool: pending.call.name.clone(),
        arguments: pending.call.arguments.clone(),
        output: None,
        outcome: ToolCallOutcome {
            was_run,
            outcome_unknown: was_run,
            ..ToolCallOutcome::default()
        },
        result_text: text.to_owned(),
        elapsed: elapsed.unwrap_or_default(),
        origin: pending.context.origin,
        attempts: attempts(pending),
        reasoning: pending.context.reasoning.clone(),
        visible_results: pending.context.visible_results.clone(),
    }
}

fn attempts(pending: &PendingCall) -> ToolCallAttempts {
    ToolCallAttempts {
        failed_attempts: pending.context.failed_attempts,
        retry_attempt: pending.retry_attempt,
    }
}

/// Returns whether a call without output was run.
fn error_status(error: &ToolError) -> CallStatus {
    match error {
        ToolError::InvalidArguments { .. } => CallStatus::Rejected,
        ToolError::Refused { .. } | ToolError::BufferFull { .. } => CallStatus::Refused,
        ToolError::Host(_)
        | ToolError::Runner { .. }
        | ToolError::Recorded { .. }
        | ToolError::Panicked { .. } => CallStatus::Failed,
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_host::CallError;
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
            is_total: false,
        };
        let errors = [lost(true), lost(false), timeout];
        let unknown = errors.map(|error| ToolError::Host(error).may_have_run());
        assert_eq!(unknown, [true, false, true]);
        let refused = ToolError::Refused { tool: "t".to_owned(), reason: String::new() };
        assert!(!refused.may_have_run());
    }
}

//! The calls of one iteration: attempt numbers, refusals, results, and the errors of the run.

use innkeeper_toolcall::ResolvedCall;

use super::circuit_breaker::CircuitBreaker;
use super::effect::{CallContext, CallStatus, CallWarning, PendingCall};
use super::loop_detection::{CallResult, LoopAction, LoopDetector};
use super::recovery::{self, CallKey, ErrorRecord, Recovery};
use super::rejected_call::{RejectedTextCall, RejectedToolCall, readable_arguments};
use super::response_parser::ParsedCall;
use crate::content::Content;
use crate::conversation::{AssistantMessage, PartContent, ToolCall, ToolResult};

/// A call of the last response, which gets one result.
#[derive(Debug)]
struct IterationCall {
    id: String,
    /// The public name of the tool, or the model's spelling of an unknown tool.
    tool: String,
    /// The name in the conversation, as the model wrote it.
    written_name: String,
    /// The arguments as JSON text with sorted members.
    arguments: String,
    retry_attempt: u32,
    /// Whether the loop detection refused the call, which has then counted it.
    is_refused_loop: bool,
    result: Option<ToolResult>,
}

impl IterationCall {
    fn key(&self) -> CallKey<'_> {
        CallKey { id: &self.id, tool: &self.tool, arguments: &self.arguments }
    }
}

/// Returns the text of a failed call's result.
fn error_text(content: &Content) -> String {
    let text = content.to_text();
    let is_blank = text.trim().is_empty();
    if is_blank { "the tool failed without a message".to_owned() } else { text.into_owned() }
}

/// The calls of the last response, and what earlier calls of the run mean for them.
#[derive(Debug, Default)]
pub(super) struct IterationCalls {
    /// The iteration, counted from 1.
    iteration: u32,
    calls: Vec<IterationCall>,
    recovery: Recovery,
    circuit_breaker: CircuitBreaker,
    loop_detector: LoopDetector,
    /// Whether a call of the response was run and failed.
    has_failed: bool,
    /// The warnings that the caller has not taken.
    warnings: Vec<CallWarning>,
    /// The rejected calls that the caller has not taken.
    rejections: Vec<RejectedToolCall>,
}

impl IterationCalls {
    /// Starts an iteration with the calls of a response, in their order. A response without calls
    /// may answer failures with its text.
    pub(super) fn start<'c>(
        &mut self,
        iteration: u32,
        pending: impl Iterator<Item = &'c ToolCall>,
        parsed: &[ParsedCall],
        text: &str,
    ) {
        let calls = pending.zip(parsed).map(|(pending, parsed)| IterationCall {
            id: pending.id.clone(),
            tool: match &parsed.call {
                Ok(call) => call.name.clone(),
                Err(rejected) => rejected.name.clone(),
            },
            written_name: pending.name.clone(),
            arguments: match &parsed.call {
                Ok(call) => call.arguments.to_canonical_string(),
                Err(_) => pending.arguments.clone(),
            },
            retry_attempt: 0,
            is_refused_loop: false,
            result: None,
        });
        self.calls = calls.collect();
        self.iteration = iteration;
        self.has_failed = false;
        let keys: Vec<_> = self.calls.iter().map(IterationCall::key).collect();
        let attempts = self.recovery.on_response(&keys, text);
        for (call, attempt) in self.calls.iter_mut().zip(attempts) {
            call.retry_attempt = attempt;
        }
    }

    /// Returns the call with this index as the caller runs it, or refuses it for a failing tool or a
    /// loop.
    pub(super) fn plan(
        &mut self,
        index: usize,
        call: ResolvedCall,
        context: CallContext,
    ) -> PendingCall {
        let open = &mut self.calls[index];
        let repeated = self.loop_detector.refusal(open.key());
        open.is_refused_loop = repeated.is_some();
        let refusal = repeated.or_else(|| self.circuit_breaker.refusal(&open.tool));
        PendingCall {
            id: open.id.clone(),
            call,
            context,
            retry_attempt: open.retry_attempt,
            refusal,
        }
    }

    /// Returns the index of the call with this id, if the call has no result.
    pub(super) fn open_index(&self, id: &str) -> Option<usize> {
        self.calls.iter().position(|call| call.id == id && call.result.is_none())
    }

    /// Returns the reason if a call is not to be started after other calls of the response failed.
    pub(super) fn start_refusal(&self, id: &str, backtracking: bool) -> Option<String> {
        if !backtracking && self.has_failed {
            return Some("another call of this response failed".to_owned());
        }
        let call = self.calls.iter().find(|call| call.id == id)?;
        self.circuit_breaker.refusal(&call.tool)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.calls.iter().all(|call| call.result.is_some())
    }

    /// Whether a call of the response was run and failed.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether the model repeated a refused call.
    pub(super) fn ends_run(&self) -> bool {
        self.loop_detector.ends_run()
    }

    pub(super) fn add_warning(&mut self, warning: CallWarning) {
        self.warnings.push(warning);
    }

    pub(super) fn take_warnings(&mut self) -> Vec<CallWarning> {
        std::mem::take(&mut self.warnings)
    }

    pub(super) fn take_rejections(&mut self) -> Vec<RejectedToolCall> {
        std::mem::take(&mut self.rejections)
    }

    pub(super) fn record_run_error(&mut self, error: ErrorRecord) {
        self.recovery.record_error(error);
    }

    pub(super) fn errors(&self) -> &[ErrorRecord] {
        self.recovery.errors()
    }

    /// Returns whether a call that had an attempt number turned out to be no attempt.
    pub(super) fn looked_around(&self, call_id: &str) -> bool {
        self.recovery.looked_around(call_id)
    }

    /// Records the result of a call, and adds a warning about a loop and, with `backtracking`, the
    /// advice after a failure.
    pub(super) fn finish(
        &mut self,
        index: usize,
        mut content: Content,
        status: CallStatus,
        backtracking: bool,
    ) {
        let is_error = status != CallStatus::Succeeded;
        let mut problem = is_error.then(|| error_text(&content));
        let action = self.detect_loop(index, &content, status);
        let Self { calls, recovery, circuit_breaker, iteration, warnings, .. } = self;
        let call = &mut calls[index];
        match status {
            CallStatus::Succeeded | CallStatus::Failed => {
                circuit_breaker.record(&call.tool, !is_error);
            }
            CallStatus::Refused | CallStatus::Rejected => {
                circuit_breaker.record_rejection(&call.tool);
            }
        }
        if let Some(LoopAction::Warn(text) | LoopAction::Refuse(text)) = &action {
            content = content.with_text(text);
            let call_id = call.id.clone();
            let tool = call.tool.clone();
            let text = text.clone();
            warnings.push(CallWarning { call_id, tool, text });
        }
        if let Some(LoopAction::Refuse(text)) = action {
            problem = Some(problem.map_or(text.clone(), |it| format!("{it}\n{text}")));
        }
        if !is_error {
            recovery.record_success(&call.tool);
        }
        if let Some(problem) = problem {
            let error = ErrorRecord {
                iteration: *iteration,
                tool: Some(call.tool.clone()),
                call_id: Some(call.id.clone()),
                error: problem,
                recovery_action: None,
            };
            match status {
                // The loop is an error, the call is not.
                CallStatus::Succeeded => recovery.record_error(error),
                CallStatus::Failed | CallStatus::Refused | CallStatus::Rejected => {
                    recovery.record_failure(error, call.key(), call.retry_attempt);
                }
            }
        }
        if status == CallStatus::Failed {
            self.has_failed = true;
            if backtracking {
                content = content.with_text(&recovery::advice(&call.tool));
            }
        }
        let id = call.id.clone();
        let name = call.written_name.clone();
        call.result = Some(ToolResult { id, name, content, is_error });
    }

    fn detect_loop(
        &mut self,
        index: usize,
        content: &Content,
        status: CallStatus,
    ) -> Option<LoopAction> {
        let call = &self.calls[index];
        let was_run = matches!(status, CallStatus::Succeeded | CallStatus::Failed);
        let is_repeated =
            status == CallStatus::Rejected && self.loop_detector.refusal(call.key()).is_some();
        if call.is_refused_loop || is_repeated {
            return None;
        }
        let content = serde_json::to_vec(content).unwrap_or_default();
        self.loop_detector.record(call.key(), CallResult { content: &content, was_run })
    }

    /// Ends a call that the run rejects with this error.
    pub(super) fn reject(
        &mut self,
        index: usize,
        error: String,
        context: CallContext,
        backtracking: bool,
    ) {
        self.finish(index, error.as_str().into(), CallStatus::Rejected, backtracking);
        let call = &self.calls[index];
        self.rejections.push(RejectedToolCall {
            position: index,
            iteration: self.iteration,
            id: call.id.clone(),
            tool: call.tool.clone(),
            arguments: readable_arguments(&call.arguments),
            error,
            retry_attempt: call.retry_attempt,
            context,
        });
    }

    /// Records the calls in a text that is sent back for a correction.
    pub(super) fn reject_text_calls(
        &mut self,
        iteration: u32,
        rejected: Vec<RejectedTextCall>,
        context: &CallContext,
    ) {
        if rejected.is_empty() {
            return;
        }
        let arguments: Vec<String> =
            rejected.iter().map(|call| call.arguments.to_canonical_string()).collect();
        let keys = rejected.iter().zip(&arguments);
        let keys: Vec<_> =
            keys.map(|(call, arguments)| CallKey { id: "", tool: &call.tool, arguments }).collect();
        let attempts = self.recovery.on_response(&keys, "");
        for ((call, key), attempt) in rejected.iter().zip(&keys).zip(&attempts) {
            self.circuit_breaker.record_rejection(&call.tool);
            if self.loop_detector.refusal(*key).is_none() {
                let content = call.problem.as_bytes();
                // The correction request has the problem, so no result needs a warning.
                self.loop_detector.record(*key, CallResult { content, was_run: false });
            }
            let error = ErrorRecord {
                iteration,
                tool: Some(call.tool.clone()).filter(|tool| !tool.is_empty()),
                call_id: None,
                error: call.problem.clone(),
                recovery_action: None,
            };
            self.recovery.record_failure(error, *key, *attempt);
        }
        let calls = rejected.into_iter().zip(attempts).enumerate();
        self.rejections.extend(calls.map(|(position, (call, retry_attempt))| RejectedToolCall {
            position,
            iteration,
            id: String::new(),
            tool: call.tool,
            arguments: call.arguments,
            error: call.problem,
            retry_attempt,
            context: context.clone(),
        }));
    }

    /// Ends the iteration and returns the results; a missing result becomes an error with the text
    /// `reason`.
    pub(super) fn take_results(&mut self, reason: &str) -> Vec<ToolResult> {
        self.circuit_breaker.end_response();
        self.loop_detector.end_response();
        let results = std::mem::take(&mut self.calls).into_iter().map(|call| {
            let IterationCall { id, written_name: name, result, .. } = call;
            result.unwrap_or_else(|| ToolResult {
                id,
                name,
                content: reason.into(),
                is_error: true,
            })
        });
        results.collect()
    }
}

/// Returns, for each call of a message, what the model wrote before the call in the same message:
/// its reasoning, or its text if there is no reasoning before the call (C52).
pub(super) fn reasoning_before_calls(message: &AssistantMessage) -> Vec<String> {
    let mut thought = String::new();
    let mut text = String::new();
    let mut before = Vec::new();
    for part in &message.parts {
        match &part.content {
            PartContent::Reasoning(part) => thought.push_str(part),
            PartContent::Text(part) => text.push_str(part),
            PartContent::ToolCall(_) => {
                before.push(if thought.is_empty() { text.clone() } else { thought.clone() });
            }
            PartContent::Other => {}
        }
    }
    before
}

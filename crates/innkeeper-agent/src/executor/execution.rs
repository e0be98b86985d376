//! A tool call that has ended, and its audit event.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_toolcall::Json;

use tokio::time::Instant;

use super::QueuedCall;
use crate::safety::emit_tool_executed;
use crate::timing::Timing;
use crate::tools::{ToolError, ToolOutput};

/// A tool call that has ended.
#[derive(Clone, Debug)]
pub struct ToolExecution {
    /// The number of the call in the response, counted from 0 by the start of each call. Invalid
    /// calls have numbers too.
    pub index: usize,
    /// The public name of the tool.
    pub tool: String,
    /// The arguments of the call.
    pub arguments: Json,
    /// Whether the approver replaced the arguments of the model.
    pub has_changed_arguments: bool,
    /// The output of the tool, or the reason why there is none. A failure that the tool itself
    /// reports is an output.
    pub outcome: Result<Arc<ToolOutput>, Arc<ToolError>>,
    /// The duration of the execution, without the time in the queue.
    pub elapsed: Duration,
    /// Whether the result comes from the cache.
    pub cached: bool,
}

impl ToolExecution {
    /// Records the end of a call, with its audit event.
    pub(super) fn record(
        queued: QueuedCall,
        outcome: Result<Arc<ToolOutput>, ToolError>,
        elapsed: Duration,
        cached: bool,
    ) -> Self {
        let QueuedCall { index, call, arguments_text, has_changed_arguments, .. } = queued;
        if let Some(audited) = audit_outcome(&outcome) {
            emit_tool_executed(&call.name, &arguments_text, audited, elapsed);
        }
        let outcome = outcome.map_err(Arc::new);
        let tool = call.name;
        let arguments = call.arguments;
        Self { index, tool, arguments, has_changed_arguments, outcome, elapsed, cached }
    }

    /// Returns the approximate memory size in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let outcome = self.outcome.as_ref().map_or(0, |output| output.raw().get().len());
        size_of::<Self>() + self.tool.len() + json_memory_bytes(&self.arguments) + outcome
    }
}

/// A running call. A drop before [`Self::finish`] emits the audit event with the outcome
/// `cancelled`, because the tool may have run.
pub(super) struct RunningCall {
    tool: String,
    arguments_text: Arc<str>,
    timing: Timing,
    start: Instant,
    is_finished: bool,
}

impl RunningCall {
    pub(super) fn new(queued: &QueuedCall, timing: Timing) -> Self {
        let tool = queued.call.name.clone();
        let arguments_text = queued.arguments_text.clone();
        let start = timing.now();
        Self { tool, arguments_text, timing, start, is_finished: false }
    }

    /// Returns the duration of the call, which has ended.
    pub(super) fn finish(mut self) -> Duration {
        self.is_finished = true;
        self.timing.elapsed(self.start)
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if !self.is_finished {
            let elapsed = self.timing.elapsed(self.start);
            emit_tool_executed(&self.tool, &self.arguments_text, "cancelled", elapsed);
        }
    }
}

/// Returns the outcome in the audit event; `None` for a call with invalid arguments, which is
/// neither run nor refused: the model writes the call again.
fn audit_outcome(outcome: &Result<Arc<ToolOutput>, ToolError>) -> Option<&'static str> {
    match outcome {
        Ok(output) if output.is_error() => Some("tool_error"),
        Ok(_) => Some("done"),
        Err(ToolError::Refused { .. } | ToolError::BufferFull { .. }) => Some("refused"),
        Err(ToolError::InvalidArguments { .. }) => None,
        Err(
            ToolError::Host(_)
            | ToolError::Runner { .. }
            | ToolError::Recorded { .. }
            | ToolError::Panicked { .. },
        ) => Some("failed"),
    }
}

/// Returns the approximate memory size in bytes.
pub(super) fn json_memory_bytes(json: &Json) -> usize {
    let inside = match json {
        Json::Null | Json::Bool(_) => 0,
        Json::Number(text) | Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(json_memory_bytes).sum(),
        Json::Object(members) => {
            members.iter().map(|(key, value)| key.len() + json_memory_bytes(value)).sum::<usize>()
        }
    };
    size_of::<Json>() + inside
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn output(json: &serde_json::Value, is_error: bool) -> Result<Arc<ToolOutput>, ToolError> {
        let raw = serde_json::value::to_raw_value(json).unwrap();
        Ok(Arc::new(ToolOutput::new(raw, is_error)))
    }

    #[test]
    fn the_audit_event_tells_a_failure_of_the_tool_from_a_result_and_a_refusal() {
        let (tool, reason) = ("read".to_owned(), "no".to_owned());
        let runner = ToolError::Runner { tool: tool.clone(), source: "gone".into() };
        let invalid = ToolError::InvalidArguments { tool: tool.clone(), violations: Vec::new() };
        for (outcome, expected) in [
            (output(&json!({"content": []}), false), Some("done")),
            (output(&json!({"content": []}), true), Some("tool_error")),
            (Err(ToolError::Refused { tool: tool.clone(), reason }), Some("refused")),
            (Err(ToolError::BufferFull { tool: tool.clone(), limit: 1 }), Some("refused")),
            (Err(invalid), None),
            (Err(runner), Some("failed")),
            (Err(ToolError::Panicked { tool }), Some("failed")),
        ] {
            assert_eq!(audit_outcome(&outcome), expected, "{outcome:?}");
        }
    }

    #[test]
    fn the_memory_size_of_a_call_counts_its_arguments_as_value_and_as_text() {
        let arguments = Json::from(&json!({"at": "a".repeat(1000), "list": [1, null, 23]}));
        let text = arguments.to_string().len();
        // The object, its two values and three items; the keys, the string and the numbers.
        let value = 6 * size_of::<Json>() + "atlist".len() + 1000 + "123".len();
        assert_eq!(json_memory_bytes(&arguments), value);
        let call = innkeeper_toolcall::ResolvedCall {
            name: "read".to_owned(),
            arguments,
            repairs: Vec::new(),
        };
        let queued = QueuedCall::new(0, call);
        assert_eq!(queued.memory_bytes(), value + text);

        let outcome = output(&json!("a".repeat(2000)), false);
        let execution = ToolExecution::record(queued, outcome, Duration::ZERO, false);
        let record = size_of::<ToolExecution>() + "read".len();
        assert_eq!(execution.memory_bytes(), record + value + 2002);
    }
}

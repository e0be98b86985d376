//! The result of a run.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_toolcall::Json;

use crate::conversation::Message;
use crate::run::{
    CallOrigin, CorrectionExample, ErrorRecord, Run, RunOutcome, RunStats, ToolCallMode,
};
use crate::tools::ToolOutput;

/// The result of one run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The outcome of the run.
    pub outcome: RunOutcome,
    /// The model's last text; empty if the model gave none.
    pub text: String,
    /// The tool calls, in the order in which the model made them. Rejected calls are among them.
    pub tool_calls: Vec<Arc<ToolCallRecord>>,
    /// The errors of the run, in their order.
    #[serde(default)]
    pub errors: Vec<ErrorRecord>,
    /// The counts of the run.
    pub stats: RunStats,
    /// The tool call mode at the end of the run; `None` if nothing was sent.
    pub tool_call_mode: Option<ToolCallMode>,
    /// Calls that the model got wrong first and right later.
    pub correction_examples: Vec<CorrectionExample>,
    /// The duration of the run.
    pub elapsed: Duration,
}

/// The record of one tool call that was run or refused. As JSON, its members and those of `outcome` and
/// `attempts` are one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallRecord {
    /// The iteration of the run, counted from 1.
    pub iteration: u32,
    /// The id of the call in the conversation.
    pub id: String,
    /// The public name of the tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Json,
    /// The output of the tool; `None` if the tool returned nothing.
    pub output: Option<ToolOutput>,
    /// Whether the call was run, and how it ended.
    #[serde(flatten)]
    pub outcome: ToolCallOutcome,
    /// The text of the result, without the advice and the warnings that the model gets with it.
    pub result_text: String,
    /// The duration of the call.
    pub elapsed: Duration,
    /// The origin of the call.
    pub origin: CallOrigin,
    /// The attempts before the call.
    #[serde(flatten)]
    pub attempts: ToolCallAttempts,
    /// What the model wrote before the call in the same response: its reasoning, or its text if
    /// there is no reasoning before the call. Empty if the model wrote nothing before the call.
    pub reasoning: String,
    /// The ids of the earlier calls of the run whose results the model saw when it made the call, in
    /// their order.
    #[serde(default)]
    pub visible_results: Arc<[String]>,
}

/// Whether a call was run, and how it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallOutcome {
    /// Whether the tool returned a result without an error.
    pub success: bool,
    /// Whether the call was passed to the tool, or answered from the cache; `false` for a refused
    /// call.
    #[serde(default = "was_run_by_default")]
    pub was_run: bool,
    /// Whether the run rejected the call, because it was malformed or did not fit its tool. A call
    /// in a text that was corrected has no `id`.
    #[serde(default)]
    pub rejected: bool,
    /// Whether nothing shows if the tool ran: the server was lost, or did not respond in time, after
    /// the call was sent.
    #[serde(default)]
    pub outcome_unknown: bool,
    /// Whether the output comes from the cache.
    pub cached: bool,
}

/// The attempts before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallAttempts {
    /// The number of malformed or rejected attempts at the call, which were not run.
    #[serde(alias = "retries")]
    pub failed_attempts: u32,
    /// 0 for a call that works on no failed goal, otherwise one more than the attempt before: the
    /// next call of a tool that failed, or a call of another tool right after the failure.
    #[serde(default)]
    pub retry_attempt: u32,
}

/// Results that were stored without the field count each call as run.
fn was_run_by_default() -> bool {
    true
}

impl RunResult {
    pub(super) fn new(
        outcome: RunOutcome,
        run: &Run,
        tool_calls: Vec<Arc<ToolCallRecord>>,
        elapsed: Duration,
    ) -> Self {
        let text = match run.conversation().messages().last() {
            Some(Message::Assistant(message)) => message.visible_text().trim().to_owned(),
            Some(Message::User(_) | Message::ToolResults(_)) | None => String::new(),
        };
        let mut tool_calls = tool_calls;
        if run.answer_was_rejected() {
            let iteration = run.stats().iterations;
            tool_calls.retain(|record| {
                !record.outcome.rejected || !record.id.is_empty() || record.iteration != iteration
            });
        }
        for record in tool_calls.iter_mut().filter(|record| run.looked_around(&record.id)) {
            Arc::make_mut(record).attempts.retry_attempt = 0;
        }
        Self {
            outcome,
            text,
            tool_calls,
            errors: run.errors().to_vec(),
            stats: run.stats().clone(),
            tool_call_mode: Some(run.tool_call_mode()),
            correction_examples: run.correction_examples().to_vec(),
            elapsed,
        }
    }

    /// Creates the result of a run that did not begin.
    pub fn not_sent(reason: String, elapsed: Duration) -> Self {
        Self {
            outcome: RunOutcome::NotSent { reason },
            text: String::new(),
            tool_calls: Vec::new(),
            errors: Vec::new(),
            stats: RunStats::default(),
            tool_call_mode: None,
            correction_examples: Vec::new(),
            elapsed,
        }
    }

    /// Whether the model gave its last response, the response is complete, and at least one tool
    /// call, if any, succeeded.
    pub fn is_success(&self) -> bool {
        self.is_completed() && !self.all_calls_failed()
    }

    /// Returns whether the model made calls and none succeeded.
    pub(crate) fn all_calls_failed(&self) -> bool {
        !self.tool_calls.is_empty() && !self.tool_calls.iter().any(|record| record.outcome.success)
    }

    /// Whether the model gave its last response, and the response is complete.
    pub fn is_completed(&self) -> bool {
        match self.outcome {
            RunOutcome::Completed => true,
            RunOutcome::Truncated
            | RunOutcome::Refused
            | RunOutcome::IterationLimit
            | RunOutcome::Interrupted
            | RunOutcome::CallFailed
            | RunOutcome::LoopDetected
            | RunOutcome::NoValidCall { .. }
            | RunOutcome::Failed(_)
            | RunOutcome::NotSent { .. } => false,
        }
    }
}

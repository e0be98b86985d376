//! The next action of a run, or its outcome.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_toolcall::ResolvedCall;
use innkeeper_toolcall::prompt::FailedAttempt;

use crate::provider::{FinishReason, LlmError, LlmErrorKind, Request};

/// The action that the caller performs next.
#[derive(Debug)]
pub enum Effect {
    /// Send the request, then call [`Run::on_response`](super::Run::on_response) or
    /// [`Run::on_error`](super::Run::on_error).
    SendRequest(Box<Request>),
    /// Send the request like [`Self::SendRequest`]. The model writes a summary of old messages, which
    /// is not displayed.
    Summarize {
        /// The request.
        request: Box<Request>,
        /// The number of messages that the summary replaces.
        messages: usize,
    },
    /// Send the request like [`Self::SendRequest`]. The model writes a plan, which is not displayed as
    /// text; [`Run::plan`](super::Run::plan) has the plan after the response.
    RequestPlan(Box<Request>),
    /// Wait for this duration, then call [`Run::on_delay`](super::Run::on_delay).
    Sleep(Duration),
    /// Run these calls in any order, and call [`Run::on_tool_result`](super::Run::on_tool_result)
    /// for each. Before the start of a call, [`Run::start_decision`](super::Run::start_decision) may
    /// refuse it or let it wait. Without calls, because all calls of the response were rejected, call
    /// [`Run::on_calls_rejected`](super::Run::on_calls_rejected).
    CallTools(Vec<PendingCall>),
    /// Wait for the remaining calls.
    AwaitTools,
    /// The run has ended.
    Finish(RunOutcome),
}

/// A call to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCall {
    /// The id of the call in the conversation.
    pub id: String,
    /// The call. Its arguments match the tool's schema, as far as the validator can check.
    pub call: ResolvedCall,
    /// What led to the call.
    pub context: CallContext,
    /// 0 for a call that answers no failed call, otherwise one more than the failed call.
    pub retry_attempt: u32,
    /// The reason if the call is not to be run. The model gets the reason as the call's result.
    pub refusal: Option<String>,
}

/// What led to a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallContext {
    /// The origin of the call.
    pub origin: CallOrigin,
    /// The number of malformed or rejected attempts at the call, which were not run.
    pub failed_attempts: u32,
    /// What the model wrote before the call in the same response: its reasoning, or its text if
    /// there is no reasoning before the call.
    pub reasoning: String,
    /// The ids of the earlier calls of the run whose results the model saw when it made the call, in
    /// their order.
    pub visible_results: Arc<[String]>,
}

/// The decision about the start of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartDecision {
    /// The call starts.
    Start,
    /// By the plan, the call starts after another call of the response, which has not ended.
    Defer,
    /// The call is not started. The caller reports [`CallStatus::Refused`] with this reason.
    Refuse(String),
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The tool returned a result without an error.
    Succeeded,
    /// The call failed, or the tool reported an error.
    Failed,
    /// The call was refused.
    Refused,
    /// The call was malformed, or did not fit its tool, and was not run.
    Rejected,
}

/// A warning about a call: one that the run added to its result, or why a call in the text was not
/// taken for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallWarning {
    /// The id of the call in the conversation; empty for a call in the text.
    pub call_id: String,
    /// The public name of the tool.
    pub tool: String,
    /// The warning. The model gets it with the result of a call.
    pub text: String,
}

/// The way in which a model made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOrigin {
    /// A native call of the provider's API.
    Native,
    /// A valid call in the text.
    Recovered,
    /// A call that the parser repaired.
    Repaired,
    /// A call that the model corrected after an error.
    Corrected,
    /// A call in constrained output.
    Constrained,
}

impl CallOrigin {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Recovered => "recovered",
            Self::Repaired => "repaired",
            Self::Corrected => "corrected",
            Self::Constrained => "constrained",
        }
    }
}

/// The outcome of a run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// The model gave its last response.
    Completed,
    /// The last response was truncated at the token limit.
    Truncated,
    /// The model, or a filter of the provider, refused.
    Refused,
    /// The model still called tools at the iteration limit.
    IterationLimit,
    /// The application interrupted the run.
    Interrupted,
    /// A call failed, and [`ToolUseSettings::backtracking`](crate::agent::ToolUseSettings::backtracking) is off.
    CallFailed,
    /// The model repeated a call that was refused because its result did not change.
    LoopDetected,
    /// The model did not write a valid call.
    NoValidCall {
        /// The problem of each attempt.
        attempts: Vec<FailedAttempt>,
    },
    /// The request failed.
    Failed(LlmError),
    /// The request could not be built.
    NotSent {
        /// The cause.
        reason: String,
    },
}

impl RunOutcome {
    /// Returns the outcome of a run whose last response has no calls and ended for this reason;
    /// `None` if another request continues the response.
    pub(super) fn from_finish_reason(reason: &FinishReason) -> Option<Self> {
        Some(match reason {
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::MalformedToolCall => {
                Self::Completed
            }
            FinishReason::Length | FinishReason::ContextFull => Self::Truncated,
            FinishReason::Refusal => Self::Refused,
            FinishReason::Paused => return None,
            FinishReason::Other(reason) => {
                let message = format!("the response is not complete: it ended with `{reason}`");
                let kind = LlmErrorKind::RetryLater { after: None };
                Self::Failed(LlmError::new("", kind, message))
            }
        })
    }
}

//! Calls that a run rejects: they are malformed or don't fit their tool, so that no tool gets them.
//!
//! A rejected call is still something that the model did. It stands in the result of the run, and
//! counts as a failure wherever a failed call counts.

use innkeeper_toolcall::{Json, ResolvedCall};

use super::Run;
use super::effect::{CallContext, CallOrigin};
use super::response_parser::ParsedResponse;

/// A call that the run rejected. The model gets the error: as the result of a native call, or in the
/// request for a correction of a call in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectedToolCall {
    /// The index of the call among the calls of its response.
    pub position: usize,
    /// The iteration, counted from 1.
    pub iteration: u32,
    /// The id of the call in the conversation; empty for a call in the text, because a response
    /// that is corrected is not part of the conversation.
    pub id: String,
    /// The public name of the tool, or the model's spelling of an unknown tool.
    pub tool: String,
    /// The arguments; an empty object if the model wrote none that can be read.
    pub arguments: Json,
    /// The error.
    pub error: String,
    /// 0 for a call that works on no failed goal, otherwise one more than the attempt before.
    pub retry_attempt: u32,
    /// What led to the call, with the number of rejected attempts before this one.
    pub context: CallContext,
}

/// A call in the text of a response that is sent back for a correction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RejectedTextCall {
    /// The name of the tool; empty if the model wrote none.
    pub(super) tool: String,
    pub(super) arguments: Json,
    pub(super) problem: String,
}

impl RejectedTextCall {
    /// Creates a rejected call whose arguments cannot be read.
    pub(super) fn unreadable(tool: impl Into<String>, problem: impl Into<String>) -> Self {
        let arguments = Json::Object(Vec::new());
        Self { tool: tool.into(), arguments, problem: problem.into() }
    }

    /// Creates a rejected call that does not fit its tool.
    pub(super) fn misfit(call: &ResolvedCall, problem: impl Into<String>) -> Self {
        let tool = call.name.clone();
        let arguments = call.arguments.clone();
        Self { tool, arguments, problem: problem.into() }
    }
}

/// Returns the arguments of a native call that cannot be resolved, as far as they are an object.
pub(super) fn readable_arguments(text: &str) -> Json {
    match serde_json::from_str(text) {
        Ok(object @ Json::Object(_)) => object,
        Ok(_) | Err(_) => Json::Object(Vec::new()),
    }
}

impl Run {
    /// Returns the calls that the run has rejected since the last call of this function, in the order
    /// in which the model made them.
    pub fn take_rejected_calls(&mut self) -> Vec<RejectedToolCall> {
        self.calls.take_rejections()
    }

    /// Whether the answer of the run is prose about calls, which an attempt before was rejected for:
    /// the rejected calls of the last iteration were none.
    pub(crate) fn answer_was_rejected(&self) -> bool {
        self.correction.answer_was_rejected
    }

    /// Returns whether a call that had an attempt number turned out to be no attempt: the model
    /// looked around before it went back to the tool that had failed.
    pub(crate) fn looked_around(&self, call_id: &str) -> bool {
        self.calls.looked_around(call_id)
    }

    /// Records the invalid calls of a response that is sent back for a correction.
    pub(super) fn reject_text_calls(&mut self, parsed: ParsedResponse) {
        let constrained = self.correction.constrained;
        let context = CallContext {
            origin: if constrained { CallOrigin::Constrained } else { CallOrigin::Recovered },
            failed_attempts: self.correction.failed_attempts(),
            reasoning: parsed.message.reasoning(),
            visible_results: self.requests.visible_results.clone(),
        };
        let iteration = self.stats.iterations;
        self.calls.reject_text_calls(iteration, parsed.rejected, &context);
    }
}

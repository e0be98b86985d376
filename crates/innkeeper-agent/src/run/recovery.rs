//! Recovery from failed calls: what the model is told, and what the model does next.
//!
//! A run never repeats a call. The model gets the error and a request for another approach; what the
//! model does then is named by rules, from the next response alone.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

/// What the model did in the response after a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryAction {
    /// The model called the same tool with other arguments.
    OtherArguments,
    /// The model called the same tool with the same arguments.
    SameCall,
    /// The model called another tool.
    OtherTool,
    /// The model made several calls in place of the failed call.
    SeveralCalls,
    /// The model called no tool, and its text ends with a question.
    Question,
}

impl RecoveryAction {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::OtherArguments => "other_arguments",
            Self::SameCall => "same_call",
            Self::OtherTool => "other_tool",
            Self::SeveralCalls => "several_calls",
            Self::Question => "question",
        }
    }
}

/// An error of a run, and what the model did about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRecord {
    /// The iteration of the error, counted from 1; 0 before the first request.
    pub iteration: u32,
    /// The public name of the tool; `None` for an error of the run itself.
    pub tool: Option<String>,
    /// The id of the failed call in the conversation.
    pub call_id: Option<String>,
    /// The error text.
    pub error: String,
    /// What the model did in its next response; `None` if the model ignored the error, or there is
    /// no next response.
    pub recovery_action: Option<RecoveryAction>,
}

/// A call as the rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallKey<'c> {
    pub(super) tool: &'c str,
    /// The arguments as JSON text with sorted members.
    pub(super) arguments: &'c str,
}

/// A failed call that the model has not responded to.
#[derive(Debug)]
struct OpenFailure {
    tool: String,
    arguments: String,
    /// The attempt number of a call that answers the failure.
    next_attempt: u32,
    /// The index of the error.
    error: usize,
}

/// The errors of a run, and the failures that the next response answers.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    errors: Vec<ErrorRecord>,
    open: Vec<OpenFailure>,
}

impl Recovery {
    pub(super) fn errors(&self) -> &[ErrorRecord] {
        &self.errors
    }

    /// Records an error without a recovery, such as the end of a loop.
    pub(super) fn record_error(&mut self, error: ErrorRecord) {
        self.errors.push(error);
    }

    /// Records a failed call, which the next response answers. `next_attempt` is the attempt number
    /// of a call that answers the failure.
    pub(super) fn record_failure(
        &mut self,
        error: ErrorRecord,
        call: CallKey<'_>,
        next_attempt: u32,
    ) {
        let CallKey { tool, arguments } = call;
        let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
        self.open.push(OpenFailure { tool, arguments, next_attempt, error: self.errors.len() });
        self.errors.push(error);
    }

    /// Names what a response does about the open failures. Returns the attempt number of each call:
    /// 0 for a call that answers no failure, otherwise one more than the failed call.
    pub(super) fn on_response(&mut self, calls: &[CallKey<'_>], text: &str) -> Vec<u32> {
        let open = std::mem::take(&mut self.open);
        let mut failures_by_tool: HashMap<&str, usize> = HashMap::new();
        for failure in &open {
            *failures_by_tool.entry(failure.tool.as_str()).or_default() += 1;
        }
        // Calls of tools that failed in the same response answer their own failures.
        let is_free = |call: &&CallKey<'_>| !failures_by_tool.contains_key(call.tool);
        let others = calls.iter().filter(is_free).count();
        let mut calls_by_tool: HashMap<&str, HashSet<&str>> = HashMap::new();
        let mut count_by_tool: HashMap<&str, usize> = HashMap::new();
        for call in calls {
            calls_by_tool.entry(call.tool).or_default().insert(call.arguments);
            *count_by_tool.entry(call.tool).or_default() += 1;
        }
        let mut attempts_by_tool: HashMap<&str, u32> = HashMap::new();
        let mut free_attempt = 0;
        for failure in &open {
            let tool = failure.tool.as_str();
            let same = count_by_tool.get(tool).copied().unwrap_or_default();
            let repeats = |calls: &HashSet<&str>| calls.contains(failure.arguments.as_str());
            let failures = failures_by_tool.get(tool).copied().unwrap_or_default();
            let action = match (same, others) {
                (0, 0) if calls.is_empty() => ends_with_question(text),
                (0, 0) => None,
                (0, 1) => Some(RecoveryAction::OtherTool),
                (0, _) => Some(RecoveryAction::SeveralCalls),
                _ if calls_by_tool.get(tool).is_some_and(repeats) => Some(RecoveryAction::SameCall),
                (same, _) if same <= failures => Some(RecoveryAction::OtherArguments),
                _ => Some(RecoveryAction::SeveralCalls),
            };
            let attempt = match same == 0 {
                true => &mut free_attempt,
                false => attempts_by_tool.entry(tool).or_default(),
            };
            *attempt = (*attempt).max(failure.next_attempt);
            if let Some(error) = self.errors.get_mut(failure.error) {
                error.recovery_action = action;
            }
        }
        let attempt = |call: &CallKey<'_>| match attempts_by_tool.get(call.tool) {
            Some(attempt) => *attempt,
            None if is_free(&call) => free_attempt,
            None => 0,
        };
        calls.iter().map(attempt).collect()
    }
}

fn ends_with_question(text: &str) -> Option<RecoveryAction> {
    let question_marks = ['?', '？', '؟'];
    text.trim_end().ends_with(question_marks).then_some(RecoveryAction::Question)
}

/// Returns the addition to the result of a failed call.
pub(super) fn advice(tool: &str) -> String {
    format!(
        "The call of `{tool}` failed. Try a different approach: other arguments, another tool, or \
         several smaller steps. If you cannot continue, say what is missing."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key<'c>((tool, arguments): (&'c str, &'c str)) -> CallKey<'c> {
        CallKey { tool, arguments }
    }

    /// Records failures of these calls, and returns the actions and attempts of the next response.
    fn recover(
        failed: &[(&str, &str)],
        next: &[(&str, &str)],
        text: &str,
    ) -> (Vec<Option<RecoveryAction>>, Vec<u32>) {
        let mut recovery = Recovery::default();
        for call in failed {
            let error = ErrorRecord {
                iteration: 1,
                tool: Some(call.0.to_owned()),
                call_id: None,
                error: "no".to_owned(),
                recovery_action: None,
            };
            recovery.record_failure(error, key(*call), 1);
        }
        let next: Vec<_> = next.iter().copied().map(key).collect();
        let attempts = recovery.on_response(&next, text);
        (recovery.errors().iter().map(|error| error.recovery_action).collect(), attempts)
    }

    /// Proves: G28
    #[test]
    fn the_next_response_names_the_recovery_of_a_failure() {
        use RecoveryAction::{OtherArguments, OtherTool, Question, SameCall, SeveralCalls};
        let failed = [("read", "{1}")];
        for (next, text, action, attempts) in [
            (&[("read", "{2}")][..], "", Some(OtherArguments), &[1][..]),
            (&[("read", "{1}")], "", Some(SameCall), &[1]),
            (&[("list", "{1}")], "", Some(OtherTool), &[1]),
            (&[("read", "{2}"), ("read", "{3}")], "", Some(SeveralCalls), &[1, 1]),
            (&[("list", "{}"), ("stat", "{}")], "", Some(SeveralCalls), &[1, 1]),
            (&[("read", "{2}"), ("list", "{}")], "", Some(OtherArguments), &[1, 0]),
            (&[], "Which file do you mean? ", Some(Question), &[]),
            (&[], "I cannot read the file.", None, &[]),
        ] {
            let expected = (vec![action], attempts.to_vec());
            assert_eq!(recover(&failed, next, text), expected, "{next:?} {text}");
        }
    }

    #[test]
    fn each_of_several_failures_has_its_own_recovery() {
        use RecoveryAction::{OtherArguments, OtherTool};
        let failed = [("read", "{1}"), ("find", "{1}")];
        let (actions, attempts) = recover(&failed, &[("find", "{2}"), ("list", "{}")], "");
        assert_eq!(actions, [Some(OtherTool), Some(OtherArguments)]);
        assert_eq!(attempts, [1, 1]);
        let twice = [("read", "{1}"), ("read", "{2}")];
        let (actions, _) = recover(&twice, &[("read", "{3}"), ("read", "{4}")], "");
        assert_eq!(actions, [Some(OtherArguments); 2], "one call for each failure");
        let (actions, _) = recover(&twice, &[("read", "{2}"), ("read", "{1}")], "");
        assert_eq!(actions, [Some(RecoveryAction::SameCall); 2]);
        let (actions, attempts) = recover(&failed, &[("find", "{2}")], "");
        assert_eq!((actions, attempts), (vec![None, Some(OtherArguments)], vec![1]));
    }

    #[test]
    fn attempts_count_the_chain_of_failures_and_end_with_it() {
        let mut recovery = Recovery::default();
        let calls = [key(("read", "{1}")), key(("read", "{2}")), key(("list", "{}"))];
        for (attempt, call) in (0..).zip(calls) {
            assert_eq!(recovery.on_response(&[call], ""), [attempt]);
            let error = ErrorRecord {
                iteration: 1,
                tool: None,
                call_id: None,
                error: String::new(),
                recovery_action: None,
            };
            recovery.record_failure(error, call, attempt + 1);
        }
        assert_eq!(recovery.on_response(&[calls[0]], ""), [3]);
        assert_eq!(recovery.on_response(&[calls[0]], ""), [0], "the call before succeeded");
    }
}

//! Recovery from failed calls: what the model is told, and what the model does next.
//!
//! A run never repeats a call. The model gets the error and a request for another approach. Two
//! things are named by rules. The recovery action of a failure is what the next response does. The
//! attempt number counts the calls that work on one goal: a goal opens with a failed call, the next
//! call of the same tool is its next attempt, whatever was called in between, and the goal closes
//! when a tool that failed at it succeeds. A call of another tool right after a failure counts as an
//! attempt too, unless the model then goes back to the tool that failed: it only looked around.

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
    /// The id in the conversation; empty for a call that is not part of it.
    pub(super) id: &'c str,
    pub(super) tool: &'c str,
    /// The arguments as JSON text with sorted members.
    pub(super) arguments: &'c str,
}

/// A failed call that the model has not responded to.
#[derive(Debug)]
struct OpenFailure {
    tool: String,
    arguments: String,
    error: usize,
}

/// A call of another tool right after a failure.
#[derive(Debug)]
struct Alternative {
    call_id: String,
    tool: String,
}

/// What failed calls were meant to achieve.
#[derive(Debug, Default)]
struct Goal {
    /// The tools that failed at the goal.
    tools: HashSet<String>,
    /// The attempt number of the next call that works on the goal.
    next_attempt: u32,
    /// The calls of other tools right after a failure, as far as they did not fail.
    alternatives: Vec<Alternative>,
    /// What the calls of the last response did about the goal.
    has_failed: bool,
    has_succeeded: bool,
}

impl Goal {
    fn merge(&mut self, other: Self) {
        self.tools.extend(other.tools);
        self.next_attempt = self.next_attempt.max(other.next_attempt);
        self.alternatives.extend(other.alternatives);
    }
}

/// The errors of a run, the failures that the next response answers, and the open goals.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    errors: Vec<ErrorRecord>,
    open: Vec<OpenFailure>,
    goals: Vec<Goal>,
    looked_around: HashSet<String>,
}

impl Recovery {
    pub(super) fn errors(&self) -> &[ErrorRecord] {
        &self.errors
    }

    /// Returns whether a call that had an attempt number turned out to be no attempt, because the
    /// model went back to the tool that had failed.
    pub(super) fn looked_around(&self, call_id: &str) -> bool {
        self.looked_around.contains(call_id)
    }

    /// Records an error without a recovery, such as the end of a loop.
    pub(super) fn record_error(&mut self, error: ErrorRecord) {
        self.errors.push(error);
    }

    /// Records a failed call with its attempt number, which the next response answers.
    pub(super) fn record_failure(&mut self, error: ErrorRecord, call: CallKey<'_>, attempt: u32) {
        let CallKey { id, tool, arguments } = call;
        let error_index = self.errors.len();
        self.errors.push(error);
        let tool = tool.to_owned();
        let arguments = arguments.to_owned();
        self.open.push(OpenFailure { tool: tool.clone(), arguments, error: error_index });
        let goal = match self.goals.iter().position(|goal| goal.tools.contains(&tool)) {
            Some(at) => at,
            None => self
                .goals
                .iter()
                .position(|goal| {
                    goal.alternatives.iter().any(|other| other.call_id == id && other.tool == tool)
                })
                .unwrap_or_else(|| {
                    self.goals.push(Goal::default());
                    self.goals.len() - 1
                }),
        };
        let goal = &mut self.goals[goal];
        goal.alternatives.retain(|alternative| alternative.tool != tool);
        goal.tools.insert(tool);
        goal.next_attempt = goal.next_attempt.max(attempt + 1);
        goal.has_failed = true;
    }

    /// Records a call that succeeded.
    pub(super) fn record_success(&mut self, tool: &str) {
        let reached = self.goals.iter_mut().filter(|goal| goal.tools.contains(tool));
        reached.for_each(|goal| goal.has_succeeded = true);
    }

    /// Names what a response does about the open failures. Returns the attempt number of each call:
    /// 0 for a call that works on no open goal, otherwise one more than the last attempt.
    pub(super) fn on_response(&mut self, calls: &[CallKey<'_>], text: &str) -> Vec<u32> {
        self.name_actions(calls, text);
        self.goals.retain(|goal| goal.has_failed || !goal.has_succeeded);
        // A call of another tool may be an alternative to what has just failed.
        let mut unanswered: Option<Goal> = None;
        for mut goal in std::mem::take(&mut self.goals) {
            let is_fresh = std::mem::take(&mut goal.has_failed);
            goal.has_succeeded = false;
            if calls.iter().any(|call| goal.tools.contains(call.tool)) {
                let alternatives = std::mem::take(&mut goal.alternatives).into_iter();
                self.looked_around.extend(alternatives.map(|alternative| alternative.call_id));
                self.goals.push(goal);
            } else if is_fresh {
                unanswered.get_or_insert_default().merge(goal);
            } else {
                self.goals.push(goal);
            }
        }
        let mut attempts = Vec::with_capacity(calls.len());
        for call in calls {
            let retried = self.goals.iter().filter(|goal| goal.tools.contains(call.tool));
            let attempt = match (retried.map(|goal| goal.next_attempt).max(), &mut unanswered) {
                (Some(attempt), _) => attempt,
                (None, Some(goal)) => {
                    let call_id = call.id.to_owned();
                    let tool = call.tool.to_owned();
                    goal.alternatives.push(Alternative { call_id, tool });
                    goal.next_attempt
                }
                (None, None) => 0,
            };
            attempts.push(attempt);
        }
        self.goals.extend(unanswered);
        attempts
    }

    /// Names what a response does about the failures of the response before.
    fn name_actions(&mut self, calls: &[CallKey<'_>], text: &str) {
        let open = std::mem::take(&mut self.open);
        let mut failures_by_tool: HashMap<&str, usize> = HashMap::new();
        for failure in &open {
            *failures_by_tool.entry(failure.tool.as_str()).or_default() += 1;
        }
        // Calls of tools that failed in the same response answer their own failures.
        let others = calls.iter().filter(|call| !failures_by_tool.contains_key(call.tool)).count();
        let mut calls_by_tool: HashMap<&str, HashSet<&str>> = HashMap::new();
        let mut count_by_tool: HashMap<&str, usize> = HashMap::new();
        for call in calls {
            calls_by_tool.entry(call.tool).or_default().insert(call.arguments);
            *count_by_tool.entry(call.tool).or_default() += 1;
        }
        for failure in &open {
            let tool = failure.tool.as_str();
            let same = count_by_tool.get(tool).copied().unwrap_or_default();
            let same_tool = calls_by_tool.get(tool);
            let is_repeated =
                same_tool.is_some_and(|calls| calls.contains(failure.arguments.as_str()));
            let failures = failures_by_tool.get(tool).copied().unwrap_or_default();
            let action = match (same, others) {
                (0, 0) if calls.is_empty() => ends_with_question(text),
                (0, 0) => None,
                (0, 1) => Some(RecoveryAction::OtherTool),
                (0, _) => Some(RecoveryAction::SeveralCalls),
                _ if is_repeated => Some(RecoveryAction::SameCall),
                (same, _) if same <= failures => Some(RecoveryAction::OtherArguments),
                _ => Some(RecoveryAction::SeveralCalls),
            };
            if let Some(error) = self.errors.get_mut(failure.error) {
                error.recovery_action = action;
            }
        }
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
mod tests;

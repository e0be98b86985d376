//! A plan of tool calls that the model writes before its first call.
//!
//! The plan orders the calls of one response: a call of a step waits for the calls of earlier steps
//! that the step names, and a step whose condition is not met is skipped. A call belongs to the
//! first open step with its tool; a call without such a step runs as without a plan.

use std::collections::HashSet;

use innkeeper_toolcall::{Tools, quote_for_prompt};
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::conversation::Conversation;
use crate::provider::Request;
use crate::run::RunConfig;
use crate::run::request::build_text_request;

/// Maximum number of steps, more than a run has iterations by default.
const MAX_STEPS: usize = 64;

/// Maximum number of characters of a tool's description in the request for a plan.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// The end of the user message that follows the plan.
const START_MESSAGE: &str = "Carry out this plan. Depart from it if a result requires \
    it, and give the answer when you have it.";

const INSTRUCTIONS: &str = r#"Before you call a tool, write a plan as one JSON object and nothing else:
{"steps": [{"id": "1", "tool": "NAME", "purpose": "TEXT", "after": ["ID"], "if": {"step": "ID", "succeeded": true}}]}
Each step is one call of one of the tools below. `after` names earlier steps whose results the step needs; omit `after` for a step that needs none. `if` names an earlier step on whose success, or failure with `false`, the step depends; omit `if` for a step that always runs.
The tools, one a line:"#;

/// A step of a plan: one tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// The id of the step in the plan.
    pub id: String,
    /// The public name of the tool.
    pub tool: String,
    /// The purpose of the call.
    #[serde(default)]
    pub purpose: String,
    /// The ids of the earlier steps that must end before the call starts.
    #[serde(default)]
    pub after: Vec<String>,
    /// The condition of the step; `None` for a step that always runs.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<PlanCondition>,
}

/// The condition of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanCondition {
    /// The id of an earlier step.
    pub step: String,
    /// Whether that step must have succeeded; otherwise it must have failed.
    pub succeeded: bool,
}

#[derive(Deserialize)]
struct PlanDocument {
    steps: Vec<PlanStep>,
}

/// What a plan says about the start of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PlanDecision {
    Start,
    /// A call of an earlier step has not ended.
    Defer,
    /// The condition of the step is not met.
    Skip(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum StepState {
    #[default]
    Open,
    /// The call with this id belongs to the step.
    Called(String),
    Finished {
        succeeded: bool,
    },
    Skipped,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Whether the next request asks for the plan.
    pub(super) is_requested: bool,
    steps: Vec<PlanStep>,
    states: Vec<StepState>,
}

impl Plan {
    pub(super) fn new(is_requested: bool) -> Self {
        Self { is_requested, ..Self::default() }
    }

    pub(super) fn steps(&self) -> &[PlanStep] {
        &self.steps
    }

    /// Parses the plan in the model's text.
    pub(super) fn parse(&mut self, text: &str) -> Result<(), String> {
        self.is_requested = false;
        let start = text.find('{').ok_or("the text contains no JSON object")?;
        let end = text.rfind('}').filter(|end| *end > start).ok_or("the JSON object has no end")?;
        let document: PlanDocument =
            serde_json::from_str(&text[start..=end]).map_err(|error| error.to_string())?;
        check_steps(&document.steps)?;
        self.states = vec![StepState::Open; document.steps.len()];
        self.steps = document.steps;
        Ok(())
    }

    /// Assigns a call to its step. A further attempt at a failed call belongs to the failed step.
    pub(super) fn assign(&mut self, call_id: &str, tool: &str, is_retry: bool) {
        self.skip_unmet_steps();
        let failed = StepState::Finished { succeeded: false };
        let retried = if is_retry { self.find_step(tool, &failed) } else { None };
        if let Some(at) = retried.or_else(|| self.find_step(tool, &StepState::Open)) {
            self.states[at] = StepState::Called(call_id.to_owned());
        }
    }

    fn find_step(&self, tool: &str, state: &StepState) -> Option<usize> {
        let mut steps = self.steps.iter().zip(&self.states);
        steps.position(|(step, other)| step.tool == tool && other == state)
    }

    /// Skips the open steps whose conditions are decided and not met, so that a call belongs to the
    /// step whose condition is met. If all steps of the tool are skipped, the last one stays open.
    fn skip_unmet_steps(&mut self) {
        let unmet: Vec<usize> = (0..self.steps.len())
            .filter(|at| {
                self.states[*at] == StepState::Open
                && self.steps[*at].condition.as_ref().is_some_and(|condition| {
                    matches!(self.state(&condition.step), Some(StepState::Finished { succeeded })
                        if *succeeded != condition.succeeded)
                })
            })
            .collect();
        for at in unmet {
            let tool = &self.steps[at].tool;
            let mut later = self.steps.iter().zip(&self.states).skip(at + 1);
            if later.any(|(step, state)| step.tool == *tool && *state == StepState::Open) {
                self.states[at] = StepState::Skipped;
            }
        }
    }

    /// Decides about the start of a call.
    pub(super) fn decide(&self, call_id: &str) -> PlanDecision {
        let Some(at) = self.index_of(call_id) else { return PlanDecision::Start };
        let step = &self.steps[at];
        let needed = step.after.iter().chain(step.condition.iter().map(|it| &it.step));
        if needed.into_iter().any(|id| matches!(self.state(id), Some(StepState::Called(_)))) {
            return PlanDecision::Defer;
        }
        let Some(PlanCondition { step: id, succeeded }) = &step.condition else {
            return PlanDecision::Start;
        };
        let outcome = match self.state(id) {
            Some(StepState::Finished { succeeded: actual }) if actual == succeeded => {
                return PlanDecision::Start;
            }
            Some(StepState::Finished { succeeded: true }) => "succeeded",
            Some(StepState::Finished { succeeded: false }) => "failed",
            Some(StepState::Skipped) => "was skipped",
            Some(StepState::Open | StepState::Called(_)) | None => "was not run",
        };
        PlanDecision::Skip(format!(
            "step `{}` of the plan is skipped, because step `{id}` {outcome}",
            step.id
        ))
    }

    /// Records the end of a call. A step whose call was refused for another reason than its condition
    /// is open again.
    pub(super) fn record(&mut self, call_id: &str, succeeded: bool, was_run: bool) {
        let Some(at) = self.index_of(call_id) else { return };
        let is_skipped = matches!(self.decide(call_id), PlanDecision::Skip(_));
        self.states[at] = match (was_run, is_skipped) {
            (true, _) => StepState::Finished { succeeded },
            (false, true) => StepState::Skipped,
            (false, false) => StepState::Open,
        };
    }

    fn index_of(&self, call_id: &str) -> Option<usize> {
        self.states.iter().position(|state| matches!(state, StepState::Called(id) if id == call_id))
    }

    fn state(&self, step_id: &str) -> Option<&StepState> {
        let at = self.steps.iter().position(|step| step.id == step_id)?;
        self.states.get(at)
    }
}

/// A step refers to earlier steps only, so no steps wait for each other.
fn check_steps(steps: &[PlanStep]) -> Result<(), String> {
    if steps.len() > MAX_STEPS {
        return Err(format!("the plan has {} steps, the limit is {MAX_STEPS}", steps.len()));
    }
    let mut earlier = HashSet::new();
    for step in steps {
        let mut named = step.after.iter().chain(step.condition.iter().map(|it| &it.step));
        if let Some(id) = named.find(|id| !earlier.contains(id.as_str())) {
            return Err(format!("step `{}` names step `{id}`, which is not before it", step.id));
        }
        if !earlier.insert(step.id.as_str()) {
            return Err(format!("two steps have the id `{}`", step.id));
        }
    }
    Ok(())
}

/// Builds the request for a plan: the conversation, and the instructions with the tools.
pub(super) fn plan_request(config: &RunConfig, conversation: &Conversation) -> Request {
    build_text_request(config, conversation, instructions(&config.tools.available))
}

/// Returns the user message behind the plan. It repeats the user's question, because the last user
/// message is in every request; with `plan`, it repeats the plan too.
pub(super) fn start_message(conversation: &Conversation, plan: Option<&str>) -> Content {
    let question = conversation.last_user_message().cloned();
    let plan = plan.map(|plan| format!("Your plan:\n{plan}\n\n")).unwrap_or_default();
    question.unwrap_or_default().with_text(&format!("{plan}{START_MESSAGE}"))
}

fn instructions(tools: &Tools) -> String {
    let mut text = INSTRUCTIONS.to_owned();
    for tool in tools.iter() {
        let description: String = tool.description.chars().take(MAX_DESCRIPTION_CHARS).collect();
        let name = quote_for_prompt(&tool.name);
        let description = quote_for_prompt(&description);
        text.push_str(&format!("\n{name}: {description}"));
    }
    text
}

#[cfg(test)]
mod tests;

//! The configuration of a run, constant for its duration.

use std::time::Duration;

use innkeeper_toolcall::grammar::{CallSchemaOptions, GbnfOptions, OutputShape, call_schema, gbnf};
use innkeeper_toolcall::prompt::Template;
use innkeeper_toolcall::{Format, RejectReason, RejectedCall, ResolvedCall, ToolIndex, Tools};

use super::ToolCallMode;
use crate::conversation::HistoryBudget;
use crate::executor::MAX_CALLS_PER_RESPONSE;
use crate::provider::{Capabilities, OutputConstraint};
use crate::safety::ToolBlocklist;
use crate::tools::OfferedTools;

/// Maximum number of characters of a string without a limit in the schema, in constrained output:
/// weak models generate endless strings.
const MAX_STRING_CHARS: u64 = 200;

/// Maximum number of names that the error for an unknown tool lists.
const MAX_NEAREST_NAMES: usize = 3;

/// Maximum number of tools that the error for an unknown tool lists if no name is near.
const MAX_LISTED_NAMES: usize = 10;

/// Maximum number of characters of an unknown name that are compared with the tools.
const MAX_SEARCHED_NAME_CHARS: usize = 128;

/// The setting for native or prompted tool calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolCalling {
    /// Native calls if the model accepts tools, else calls in the text. The run changes to calls in
    /// the text if the provider or the server turns out not to support tools.
    #[default]
    Auto,
    /// Native calls, whatever the model supports.
    Native,
    /// Calls in the text, for every model.
    Prompt,
    /// Calls in the text, with a constrained first response: the server enforces the call syntax
    /// until a tool has returned a result; after that, responses are unconstrained. The same as
    /// `Prompt` if the server supports no constraint.
    Constrained,
}

/// The limits of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLimits {
    /// Maximum number of iterations, without retried responses. Default: 10.
    pub max_iterations: u32,
    /// Maximum number of calls per response. If a response has more calls, none is run. Default:
    /// 1,024.
    pub max_calls: usize,
    /// Maximum number of retries and corrections per run. Default: 8.
    pub retry_budget: u32,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { max_iterations: 10, max_calls: MAX_CALLS_PER_RESPONSE, retry_budget: 8 }
    }
}

/// The configuration of a run.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// The system prompt.
    pub system: String,
    /// The tools of the first iteration. [`Run::on_tools_changed`](super::Run::on_tools_changed)
    /// replaces them.
    pub tools: OfferedTools,
    /// The template that describes the tools in the prompt.
    pub template: Template,
    /// The format of calls in the model's text.
    pub format: Format,
    /// The setting for native or prompted tool calls.
    pub tool_calling: ToolCalling,
    /// The capabilities of the model.
    pub capabilities: Capabilities,
    /// The token budget of the history.
    pub history_budget: HistoryBudget,
    /// The required context window, for servers that need to be told.
    pub context_tokens: Option<u32>,
    /// Maximum number of tokens in one response.
    pub max_tokens: u32,
    /// Whether the tools are sent without the provider's strict mode.
    pub plain_tools: bool,
    /// Whether the provider caches each request for the next request.
    pub prompt_caching: bool,
    /// The temperature of the first attempt; `None` for the provider's default.
    pub temperature: Option<f64>,
    /// The reduction of the temperature for each further attempt.
    pub temperature_reduction: f64,
    /// Maximum number of correction requests for one response.
    pub max_retries: u32,
    /// The delay before the first correction request; the delay doubles with each further request.
    pub retry_delay: Duration,
    /// The limits of the run.
    pub limits: RunLimits,
    /// Whether the model writes a plan before its first call.
    pub planning: bool,
    /// Whether the model may continue after a failed call. Without backtracking, the first failed
    /// call ends the run.
    pub backtracking: bool,
    /// Whether a request has the whole conversation, as far as the budget permits; otherwise the
    /// last user message and the latest iteration.
    pub conversation_memory: bool,
    /// Whether the model summarizes the messages that a request leaves out because of the budget.
    pub summarize_history: bool,
    /// Tools that are blocked. A call of a blocked tool gets an error that says so.
    pub blocklist: ToolBlocklist,
}

impl RunConfig {
    pub(super) fn initial_tool_call_mode(&self) -> ToolCallMode {
        match self.tool_calling {
            ToolCalling::Prompt | ToolCalling::Constrained => ToolCallMode::Prompt,
            ToolCalling::Native => ToolCallMode::Native,
            ToolCalling::Auto if self.capabilities.native_tools => ToolCallMode::Native,
            ToolCalling::Auto => ToolCallMode::Prompt,
        }
    }

    /// Returns whether the run may change from native calls to calls in the text.
    pub(super) fn allows_prompt_mode(&self) -> bool {
        self.tool_calling != ToolCalling::Native
    }

    /// Returns whether the server enforces the call syntax in the first response.
    pub(super) fn constrains_first_response(&self) -> bool {
        self.tool_calling == ToolCalling::Constrained && self.can_constrain()
    }

    pub(super) fn can_constrain(&self) -> bool {
        self.constraint().is_some()
    }

    /// Returns the constraint that enforces a call of one of the tools.
    pub(super) fn constraint(&self) -> Option<OutputConstraint> {
        let takes = self.capabilities.constraints;
        let limit = Some(MAX_STRING_CHARS);
        let keys = self.template.family().call_keys();
        let options =
            CallSchemaOptions { string_limit: limit, keys, ..CallSchemaOptions::default() };
        let schema = || {
            Some(OutputConstraint::JsonSchema(call_schema(&self.tools.available, options)?.schema))
        };
        let options = GbnfOptions { string_limit: Some(MAX_STRING_CHARS) };
        let grammar = || {
            Some(OutputConstraint::Gbnf(
                gbnf(&self.tools.available, OutputShape::Call, options)?.text,
            ))
        };
        let constrained = takes.json_schema.then(schema).flatten();
        constrained.or_else(|| takes.gbnf.then(grammar).flatten())
    }

    /// Returns the violations of the schema as a message, if there are any.
    fn violation_message(&self, call: &ResolvedCall) -> Option<String> {
        // Without a verdict of the validator, the runner checks the arguments.
        let violations = self.tools.validator.violations(call).unwrap_or_default();
        if violations.is_empty() {
            return None;
        }
        let each: Vec<_> = violations.iter().map(ToString::to_string).collect();
        Some(format!("invalid arguments for `{}`: {}", call.name, each.join("; ")))
    }

    /// Returns why a call cannot be run: its tool was lost, or its arguments are invalid. `None` for a
    /// blocked tool, whose schema the model does not see.
    pub(super) fn call_problem(&self, call: &ResolvedCall) -> Option<String> {
        if self.blocklist.blocked_name(call).is_some() {
            return None;
        }
        let lost = self.tools.unavailable_message(&call.name);
        lost.or_else(|| self.violation_message(call))
    }

    /// Returns the message to the model for an invalid call.
    pub(super) fn rejection_message(&self, rejected: &RejectedCall) -> String {
        self.blocklist.rejection_message(&self.with_nearest_names(rejected.clone()))
    }

    /// Adds the nearest names to an unknown name that is similar to none.
    fn with_nearest_names(&self, mut rejected: RejectedCall) -> RejectedCall {
        if rejected.reason == RejectReason::UnknownTool && rejected.suggestions.is_empty() {
            rejected.suggestions = nearest_names(&self.tools.available, &rejected.name);
        }
        rejected
    }

    pub(super) fn too_many_calls_message(&self) -> String {
        let max_calls = self.limits.max_calls;
        format!("too many calls in one response: maximum is {max_calls}; no call was run")
    }
}

/// Returns the names of the tools that share words with an unknown name; without such tools, the
/// names of all tools if there are few.
fn nearest_names(tools: &Tools, written_name: &str) -> Vec<String> {
    let words: String = written_name
        .chars()
        .map(|char| if char.is_alphanumeric() { char } else { ' ' })
        .take(MAX_SEARCHED_NAME_CHARS)
        .collect();
    let index = ToolIndex::new(tools);
    let found = index.search(&words, MAX_NEAREST_NAMES);
    let names: Vec<String> = found.into_iter().map(str::to_owned).collect();
    if names.is_empty() && tools.len() <= MAX_LISTED_NAMES {
        return tools.iter().map(|tool| tool.name.clone()).collect();
    }
    names
}

//! The configuration of a run, constant for its duration.

use std::sync::Arc;

use innkeeper_toolcall::grammar::{CallSchemaOptions, GbnfOptions, OutputShape, call_schema, gbnf};
use innkeeper_toolcall::prompt::Template;
use innkeeper_toolcall::{RejectReason, RejectedCall, ResolvedCall, ToolIndex, Tools};

use super::ToolCallMode;
use crate::conversation::HistoryBudget;
use crate::provider::{Capabilities, OutputConstraint};
use crate::settings::{AgentSettings, ToolCalling};
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

/// The configuration of a run.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// The settings of the agent.
    pub settings: Arc<AgentSettings>,
    /// The tools of the first iteration. [`Run::on_tools_changed`](super::Run::on_tools_changed)
    /// replaces them.
    pub tools: OfferedTools,
    /// The template that describes the tools in the prompt: that of the settings, or the model's.
    pub template: Template,
    /// The capabilities of the model.
    pub capabilities: Capabilities,
    /// The token budget of the history: that of the settings, or the model's.
    pub history_budget: HistoryBudget,
    /// The required context window, for servers that need to be told.
    pub context_tokens: Option<u32>,
    /// Maximum number of tokens in one response: that of the settings, or less for a model with a
    /// small context window.
    pub max_tokens: u32,
    /// Whether the tools are sent without the provider's strict mode.
    pub plain_tools: bool,
}

impl RunConfig {
    pub(super) fn initial_tool_call_mode(&self) -> ToolCallMode {
        match self.settings.tool_use.tool_calling {
            ToolCalling::Prompt | ToolCalling::Constrained => ToolCallMode::Prompt,
            ToolCalling::Native => ToolCallMode::Native,
            ToolCalling::Auto if self.capabilities.tools.native => ToolCallMode::Native,
            ToolCalling::Auto => ToolCallMode::Prompt,
        }
    }

    /// Returns whether the run may change from native calls to calls in the text.
    pub(super) fn allows_prompt_mode(&self) -> bool {
        self.settings.tool_use.tool_calling != ToolCalling::Native
    }

    /// Returns whether the server enforces the call syntax in the first response.
    pub(super) fn constrains_first_response(&self) -> bool {
        self.settings.tool_use.tool_calling == ToolCalling::Constrained && self.can_constrain()
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
        let tools = &self.tools.available;
        if takes.json_schema
            && let Some(schema) = call_schema(tools, options)
        {
            return Some(OutputConstraint::JsonSchema(schema.schema));
        }
        if !takes.gbnf {
            return None;
        }
        let grammar = gbnf(tools, OutputShape::Call, GbnfOptions { string_limit: limit })?;
        Some(OutputConstraint::Gbnf(grammar.text))
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
        if self.settings.blocklist.blocked_name(call).is_some() {
            return None;
        }
        let lost = self.tools.unavailable_message(&call.name);
        lost.or_else(|| self.violation_message(call))
    }

    /// Returns the message to the model for an invalid call.
    pub(super) fn rejection_message(&self, rejected: &RejectedCall) -> String {
        self.settings.blocklist.rejection_message(&self.with_nearest_names(rejected.clone()))
    }

    /// Adds the nearest names to an unknown name that is similar to none.
    fn with_nearest_names(&self, mut rejected: RejectedCall) -> RejectedCall {
        if rejected.reason == RejectReason::UnknownTool && rejected.suggestions.is_empty() {
            rejected.suggestions = nearest_names(&self.tools.available, &rejected.name);
        }
        rejected
    }

    pub(super) fn too_many_calls_message(&self) -> String {
        let max_calls = self.settings.limits.max_calls;
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

//! What a turn needs to know: the tools, the words, what the model takes, and the limits.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_toolcall::grammar::{GbnfOptions, Shape, UnionOptions, gbnf, union};
use innkeeper_toolcall::prompt::Template;
use innkeeper_toolcall::{Call, Format, Reason, Rejected, Repair, Toolbox, Tools, quoted};

use super::Way;
use crate::conversation::Budget;
use crate::provider::{Capabilities, Constraint};
use crate::safety::Patterns;

/// The most characters of a string without a limit of its own where a server holds a model to the
/// form of a call: weak models run away inside one.
const STRING: u64 = 200;

/// Which of the two ways to call tools is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolCalling {
    /// The provider's own form where the model takes tools, else the prompt; from the first to the
    /// second where it turns out that it does not.
    #[default]
    Auto,
    /// The provider's own form, whatever comes of it.
    Native,
    /// The prompt, for every model.
    Prompt,
    /// The prompt, where a call is wanted: the server holds the first answer to a message to the form
    /// of a call, and once there are results the model answers as it likes. Where no server holds it,
    /// the same as `Prompt`.
    Constrained,
}

/// How much one turn may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Rounds: answers of the model, those not counted that were repeated. Default: 10.
    pub max_iterations: u32,
    /// Calls of one answer; if it has more, none is run. Default: 128.
    pub max_calls: usize,
    /// Requests that are repeated in one turn, for whatever reason. Default: 8.
    pub retry_budget: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_iterations: 10, max_calls: 128, retry_budget: 8 }
    }
}

/// Everything that stays as it is during a turn.
#[derive(Debug)]
pub struct Setup {
    /// What the model is told before all else.
    pub system: String,
    /// The tools that may be called.
    pub tools: Arc<Tools>,
    /// What checks their arguments.
    pub toolbox: Arc<Toolbox>,
    /// How the model is told of tools in its prompt.
    pub template: Template,
    /// The format in which calls are looked for in its text.
    pub format: Format,
    /// Which way tools are called.
    pub calling: ToolCalling,
    /// What the model takes.
    pub capabilities: Capabilities,
    /// How much of the conversation goes along.
    pub budget: Budget,
    /// The context window that is wanted, where the server has to be told.
    pub context_tokens: Option<u32>,
    /// The most tokens of one answer.
    pub max_tokens: u32,
    /// Whether the provider is to keep the tools and the system text for the next request.
    pub keep_prompt: bool,
    /// How random the first attempt may be; `None`: as the provider has it.
    pub temperature: Option<f64>,
    /// By how much less each further attempt.
    pub temperature_reduction: f64,
    /// How often the model is told what was wrong with its calls, for one answer.
    pub max_retries: u32,
    /// The pause before the first of these; each further one is twice as long.
    pub retry_delay: Duration,
    /// The limits.
    pub limits: Limits,
    /// Tools that are kept out, to be named as such when they are called all the same.
    pub blocked: Patterns,
}

impl Setup {
    pub(super) fn first_way(&self) -> Way {
        match self.calling {
            ToolCalling::Prompt | ToolCalling::Constrained => Way::Prompt,
            ToolCalling::Native => Way::Native,
            ToolCalling::Auto if self.capabilities.native_tools => Way::Native,
            ToolCalling::Auto => Way::Prompt,
        }
    }

    /// Whether the prompt may take the place of the provider's own form.
    pub(super) fn may_prompt(&self) -> bool {
        self.calling != ToolCalling::Native
    }

    /// Whether the first answer is held to the form of a call.
    pub(super) fn wants_call(&self) -> bool {
        self.calling == ToolCalling::Constrained && self.can_constrain()
    }

    pub(super) fn can_constrain(&self) -> bool {
        self.constraint().is_some()
    }

    /// What holds an answer to the form of a call of one of the tools.
    pub(super) fn constraint(&self) -> Option<Constraint> {
        let takes = self.capabilities.constraints;
        let limit = Some(STRING);
        let keys = self.template.family().keys();
        let options = UnionOptions { string_limit: limit, keys, ..UnionOptions::default() };
        let schema = || Some(Constraint::JsonSchema(union(&self.tools, options)?.schema));
        let options = GbnfOptions { string_limit: Some(STRING) };
        let grammar = || Some(Constraint::Gbnf(gbnf(&self.tools, Shape::Call, options)?.text));
        let held = takes.json_schema.then(schema).flatten();
        held.or_else(|| takes.gbnf.then(grammar).flatten())
    }

    /// What is wrong with the arguments, if they do not fit.
    pub(super) fn violations(&self, call: &Call) -> Option<String> {
        // Where it cannot be told, who runs the tool finds out.
        let violations = self.toolbox.violations(call).unwrap_or_default();
        if violations.is_empty() {
            return None;
        }
        let each: Vec<_> = violations.iter().map(ToString::to_string).collect();
        Some(format!("arguments of `{}` do not fit: {}", call.name, each.join("; ")))
    }

    /// What the model is told of a call that is none.
    pub(super) fn refusal(&self, rejected: &Rejected) -> String {
        if rejected.reason == Reason::UnknownTool && self.blocked.block(&rejected.name) {
            return kept_out(&rejected.name);
        }
        rejected.to_string()
    }

    /// Why a call that would be run may not: the name it was said by is that of a tool that is kept
    /// out, and only looks like one that is not.
    pub(super) fn kept_out(&self, call: &Call) -> Option<String> {
        let said = call.repairs.iter().find_map(|repair| match repair {
            Repair::Name { said, .. } => Some(said),
            Repair::Text { .. }
            | Repair::Encoded { .. }
            | Repair::Value { .. }
            | Repair::More { .. } => None,
        })?;
        self.blocked.block(said).then(|| kept_out(said))
    }

    pub(super) fn too_many(&self) -> String {
        let most = self.limits.max_calls;
        format!("too many calls at once: {most} at most, none was run")
    }
}

/// The most characters of a name that is told.
const SHOWN: usize = 60;

fn kept_out(said: &str) -> String {
    let shown: String = said.chars().take(SHOWN).collect();
    format!("the tool {} may not be called here", quoted(&shown))
}

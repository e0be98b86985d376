//! How an agent works.

use std::time::Duration;

use innkeeper_toolcall::Format;
use innkeeper_toolcall::prompt::Template;

use crate::conversation::Budget;
use crate::safety::{Patterns, Policy};
use crate::transport::TIMEOUT;
use crate::turn::{Limits, ToolCalling};

/// How an agent works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the model is told before all else. Default: nothing.
    pub system: String,
    /// Which of the two ways to call tools is used. Default: the one the model takes.
    pub calling: ToolCalling,
    /// How the model is told of tools in its prompt. Default: as is best for its family.
    pub template: Option<Template>,
    /// The format in which calls are looked for in the model's text. Default: whatever turns up.
    pub format: Format,
    /// How much one message may take.
    pub limits: Limits,
    /// How much of the conversation goes along with a request. Default: what the model's context
    /// window leaves beside the answer, where the window is known, else 100,000 tokens.
    pub budget: Option<Budget>,
    /// The most tokens of one answer. Default: 4,096.
    pub max_tokens: u32,
    /// Whether the provider is to keep the tools and the system text for the next request, where it
    /// has to be told: Anthropic, for five minutes. Reading what is kept costs a part of what it costs
    /// to read it anew, and keeping it costs more once. Default: no.
    pub keep_prompt: bool,
    /// How random the first attempt is, where the model takes that. Default: as the provider has it.
    pub temperature: Option<f64>,
    /// By how much less each further attempt at a call. Default: 0.1.
    pub temperature_reduction: f64,
    /// How often the model is told what was wrong with a call in its text, for one answer. Default: 3.
    pub max_retries: u32,
    /// The pause before the first of these; each further one is twice as long, 30 s at most, with up
    /// to three tenths added by chance. Default: 1 s.
    pub retry_delay: Duration,
    /// How many requests may be sent in any 60 seconds. Default: any number.
    pub rate_limit_per_minute: Option<u32>,
    /// Whether a request waits for that, instead of failing. Default: no.
    pub wait_for_rate_limit: bool,
    /// Tools that the model does not see and cannot call. Default: none.
    pub blocked: Patterns,
    /// Which calls need a yes. Default: none.
    pub approve: Policy,
    /// How long one answer may take. Default: 600 s.
    pub answer_timeout: Duration,
}

/// The history that goes along with a request to a model whose window is not known.
const HISTORY: usize = 100_000;

impl Settings {
    /// How much of the conversation goes along, and how large a window that needs, where either is
    /// known. An answer gets three quarters of a window at most.
    pub(super) fn window(&self, known: Option<u32>) -> (Budget, Option<u32>) {
        let answer = self.max_tokens as usize;
        match (self.budget, known) {
            (Some(budget), _) => {
                (budget, Some(u32::try_from(budget.tokens + answer).unwrap_or(u32::MAX)))
            }
            (None, Some(window)) => {
                let all = window as usize;
                (Budget { tokens: all.saturating_sub(answer).max(all / 4) }, Some(window))
            }
            (None, None) => (Budget { tokens: HISTORY }, None),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            system: String::new(),
            calling: ToolCalling::default(),
            template: None,
            format: Format::Detect,
            limits: Limits::default(),
            budget: None,
            max_tokens: 4096,
            keep_prompt: false,
            temperature: None,
            temperature_reduction: 0.1,
            max_retries: 3,
            retry_delay: Duration::from_secs(1),
            rate_limit_per_minute: None,
            wait_for_rate_limit: false,
            blocked: Patterns::default(),
            approve: Policy::default(),
            answer_timeout: TIMEOUT,
        }
    }
}

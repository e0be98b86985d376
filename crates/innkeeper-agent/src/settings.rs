//! Settings of an agent, in groups that the run and the executor share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_toolcall::Format;
use innkeeper_toolcall::prompt::Template;

use serde::{Deserialize, Serialize};

use crate::conversation::HistoryBudget;
use crate::executor::{CallSettings, ExecutorSettings, MAX_CALLS_PER_RESPONSE};
use crate::provider::{Capabilities, DEFAULT_RESPONSE_TIMEOUT};
use crate::safety::{ApprovalPolicy, ToolBlocklist};
use crate::tool_search::{SearchableTools, ToolSearchSettings};
use crate::tools::ToolRunner;

/// Settings of an agent.
#[derive(Clone, Debug, Default)]
pub struct AgentSettings {
    /// The system prompt. Default: empty.
    pub system: String,
    /// The limits of a run.
    pub limits: RunLimits,
    /// What requests to the model contain.
    pub requests: RequestSettings,
    /// How the model calls tools.
    pub tool_use: ToolUseSettings,
    /// How calls run.
    pub calls: CallSettings,
    /// When the model gets a search for tools in place of all tools. Default: when the definitions
    /// take more than a tenth of the context window (100,000 tokens if the window is unknown), or
    /// there are more tools than the provider takes.
    pub tool_search: ToolSearchSettings,
    /// The tools that the model does not see and cannot call. Default: none.
    pub blocklist: ToolBlocklist,
    /// The policy that decides which calls need approval. Default: no call needs approval.
    pub approval_policy: ApprovalPolicy,
}

/// The limits of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLimits {
    /// Maximum number of iterations, without retried responses. Default: 10.
    pub max_iterations: u32,
    /// Maximum number of calls per response. If a response has more calls, none is run. Default:
    /// 1,024.
    pub max_calls: usize,
    /// Maximum number of retries and corrections per run. Default: 8.
    pub retry_budget: u32,
    /// Maximum number of correction requests for one response, after invalid calls in its text.
    /// Default: 3.
    pub max_retries: u32,
    /// The delay before the first correction request. The delay doubles with each further request,
    /// up to 30 s, plus up to 30 % jitter. Default: 1 s.
    #[serde(rename = "retry_delay_ms", with = "crate::millis")]
    pub retry_delay: Duration,
    /// Maximum number of requests in any 60 seconds, over all runs of an agent. Default: no limit.
    pub rate_limit_per_minute: Option<u32>,
    /// Whether a request waits for the rate limit instead of failing. Default: no.
    pub wait_for_rate_limit: bool,
    /// The timeout of one response. Default: 600 s.
    #[serde(rename = "response_timeout_ms", with = "crate::millis")]
    pub response_timeout: Duration,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_iterations: 10,
            max_calls: MAX_CALLS_PER_RESPONSE,
            retry_budget: 8,
            max_retries: 3,
            retry_delay: Duration::from_secs(1),
            rate_limit_per_minute: None,
            wait_for_rate_limit: false,
            response_timeout: DEFAULT_RESPONSE_TIMEOUT,
        }
    }
}

/// What requests to the model contain.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestSettings {
    /// The maximum size of a request. Default: the context window minus the response if the window is
    /// known, else 100,000 tokens.
    #[serde(rename = "history_tokens")]
    pub history_budget: Option<HistoryBudget>,
    /// Maximum number of tokens in one response; at most half of a known context window. Default: 4,096.
    pub max_tokens: u32,
    /// Whether the provider caches each request for the next request of the conversation. The setting
    /// affects only Anthropic, whose API caches on demand, for five minutes. Cached tokens cost a
    /// fraction of the normal price; the request that fills the cache costs more. Default: yes.
    pub prompt_caching: bool,
    /// The temperature of the first attempt, if the model accepts one. Default: the provider's.
    pub temperature: Option<f64>,
    /// The reduction of the temperature for each further attempt at a call. Default: 0.1.
    pub temperature_reduction: f64,
    /// Whether each request has the whole conversation, as far as the budget permits. Otherwise a
    /// request has the last user message and the latest calls with their results (C54). Default:
    /// yes.
    pub conversation_memory: bool,
    /// Whether the model writes a summary of the oldest messages when a request exceeds the budget.
    /// The requests then contain the summary in place of the messages; the conversation keeps them.
    /// Without a summary, because of this setting or of a failure, requests leave the messages out.
    /// Default: yes.
    pub summarize_history: bool,
}

impl Default for RequestSettings {
    fn default() -> Self {
        Self {
            history_budget: None,
            max_tokens: 4096,
            prompt_caching: true,
            temperature: None,
            temperature_reduction: 0.1,
            conversation_memory: true,
            summarize_history: true,
        }
    }
}

/// How the model calls tools. `serde` neither writes nor reads the template and the format.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolUseSettings {
    /// The setting for native or prompted tool calls. Default: chosen by the model's capabilities.
    pub tool_calling: ToolCalling,
    /// The template that describes the tools in the prompt. Default: chosen by the model's family.
    #[serde(skip)]
    pub template: Option<Template>,
    /// The format of calls in the model's text. Default: detected.
    #[serde(skip)]
    pub format: Format,
    /// Whether the model writes a plan before its first call, which costs one more request. The
    /// conversation contains the plan. Calls of one response wait for each other as the plan says,
    /// and a step whose condition is not met is not run. Default: no.
    pub planning: bool,
    /// Whether the model may continue after a failed call. Without backtracking, the first failed
    /// call ends the run with [`RunOutcome::CallFailed`](crate::run::RunOutcome::CallFailed).
    /// Default: yes.
    pub backtracking: bool,
    /// The tool that undoes a call of another tool, by public names; see [`Agent::undo`]. The names
    /// precede those in the definitions of the tools. Default: none.
    ///
    /// [`Agent::undo`]: crate::agent::Agent::undo
    pub undo_tools: BTreeMap<String, String>,
}

impl Default for ToolUseSettings {
    fn default() -> Self {
        Self {
            tool_calling: ToolCalling::default(),
            template: None,
            format: Format::Detect,
            planning: false,
            backtracking: true,
            undo_tools: BTreeMap::new(),
        }
    }
}

/// The setting for native or prompted tool calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// Number of history tokens in a request to a model with an unknown context window.
const DEFAULT_HISTORY_TOKENS: usize = 100_000;

impl AgentSettings {
    /// Returns the rules for tool calls.
    pub(crate) fn executor_settings(&self) -> ExecutorSettings {
        ExecutorSettings {
            blocklist: self.blocklist.clone(),
            approval_policy: self.approval_policy,
            calls: self.calls.clone(),
        }
    }

    /// Returns a runner that offers a search for the tools if the settings require a search.
    pub(crate) fn searchable_runner(
        &self,
        runner: Arc<dyn ToolRunner>,
        capabilities: &Capabilities,
    ) -> Arc<dyn ToolRunner> {
        let search = self.tool_search.clone();
        if search.max_listing_share.is_none() {
            return runner;
        }
        let (budget, window) = self.history_and_window(capabilities.tokens.context);
        let tokens = window.map_or(budget.max_tokens, |window| window as usize);
        let searchable = SearchableTools::new(runner, search, self.blocklist.clone(), tokens);
        // A prompt may describe any number of tools.
        let is_native = match self.tool_use.tool_calling {
            ToolCalling::Native => true,
            ToolCalling::Auto => capabilities.tools.native,
            ToolCalling::Prompt | ToolCalling::Constrained => false,
        };
        Arc::new(searchable.with_max_tools(capabilities.tools.max.filter(|_| is_native)))
    }

    /// Returns the number of tokens of a response: at most half of the context window.
    pub(crate) fn response_tokens(&self, context_window: Option<u32>) -> u32 {
        let window = self.requests.history_budget.is_none().then_some(context_window).flatten();
        window.map_or(self.requests.max_tokens, |window| {
            self.requests.max_tokens.min((window / 2).max(1))
        })
    }

    /// Returns the budget of the history and the required context window, if one is known.
    pub(crate) fn history_and_window(
        &self,
        context_window: Option<u32>,
    ) -> (HistoryBudget, Option<u32>) {
        let max_tokens = self.response_tokens(context_window) as usize;
        match (self.requests.history_budget, context_window) {
            (Some(budget), _) => {
                (budget, Some(u32::try_from(budget.max_tokens + max_tokens).unwrap_or(u32::MAX)))
            }
            (None, Some(window)) => (
                HistoryBudget { max_tokens: (window as usize).saturating_sub(max_tokens) },
                Some(window),
            ),
            (None, None) => (HistoryBudget { max_tokens: DEFAULT_HISTORY_TOKENS }, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_takes_at_most_half_of_a_small_window() {
        let settings = AgentSettings::default();
        for (window, response, history) in [
            (0, 1, 0),
            (2048, 1024, 1024),
            (4096, 2048, 2048),
            (8192, 4096, 4096),
            (32_768, 4096, 28_672),
        ] {
            let (budget, _) = settings.history_and_window(Some(window));
            let sizes = (settings.response_tokens(Some(window)), budget.max_tokens);
            assert_eq!(sizes, (response, history), "{window}");
        }
        let mut settings = AgentSettings::default();
        settings.requests.history_budget = Some(HistoryBudget { max_tokens: 6000 });
        assert_eq!(settings.response_tokens(Some(4096)), 4096, "the settings decide");
    }
}

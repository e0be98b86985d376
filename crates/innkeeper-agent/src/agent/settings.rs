//! Settings of an agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_toolcall::Format;
use innkeeper_toolcall::prompt::Template;

use crate::conversation::HistoryBudget;
use crate::executor::{CacheSettings, DEFAULT_PARALLEL_CALLS, ExecutorSettings};
use crate::provider::Capabilities;
use crate::run::{RunLimits, ToolCalling};
use crate::safety::{ApprovalPolicy, ToolBlocklist};
use crate::tool_search::{SearchableTools, ToolSearchSettings};
use crate::tools::ToolRunner;
use crate::transport::DEFAULT_RESPONSE_TIMEOUT;

/// Settings of an agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// The system prompt. Default: empty.
    pub system: String,
    /// The setting for native or prompted tool calls. Default: chosen by the model's capabilities.
    pub tool_calling: ToolCalling,
    /// The template that describes the tools in the prompt. Default: chosen by the model's family.
    pub template: Option<Template>,
    /// The format of calls in the model's text. Default: detected.
    pub format: Format,
    /// The limits of one run. Default: see [`RunLimits`].
    pub limits: RunLimits,
    /// The maximum size of a request. Default: the context window minus the response if the window is
    /// known, else 100,000 tokens.
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
    /// Maximum number of correction requests for one response, after invalid calls in its text.
    /// Default: 3.
    pub max_retries: u32,
    /// The delay before the first correction request. The delay doubles with each further request,
    /// up to 30 s, plus up to 30 % jitter. Default: 1 s.
    pub retry_delay: Duration,
    /// Maximum number of requests in any 60 seconds. Default: no limit.
    pub rate_limit_per_minute: Option<u32>,
    /// Whether a request waits for the rate limit instead of failing. Default: no.
    pub wait_for_rate_limit: bool,
    /// Whether the model writes a plan before its first call, which costs one more request. The
    /// conversation contains the plan. Calls of one response wait for each other as the plan says,
    /// and a step whose condition is not met is not run. Default: no.
    pub planning: bool,
    /// Whether the model may continue after a failed call. Without backtracking, the first failed
    /// call ends the run with [`RunOutcome::CallFailed`](crate::run::RunOutcome::CallFailed).
    /// Default: yes.
    pub backtracking: bool,
    /// Whether each request has the whole conversation, as far as the budget permits. Otherwise a
    /// request has the last user message and the latest calls with their results (C54). Default:
    /// yes.
    pub conversation_memory: bool,
    /// Whether the model writes a summary of the oldest messages when a request exceeds the budget.
    /// The requests then contain the summary in place of the messages; the conversation keeps them.
    /// Without a summary, because of this setting or of a failure, requests leave the messages out.
    /// Default: yes.
    pub summarize_history: bool,
    /// The tools that the model does not see and cannot call. Default: none.
    pub blocklist: ToolBlocklist,
    /// The policy that decides which calls need approval. Default: no call needs approval.
    pub approval_policy: ApprovalPolicy,
    /// Maximum number of tool calls in any 60 seconds; further calls are refused. Default: no
    /// limit.
    pub call_rate_limit_per_minute: Option<u32>,
    /// Maximum number of concurrent calls per response. Default: [`DEFAULT_PARALLEL_CALLS`].
    pub max_parallel_calls: usize,
    /// The cache of results for repeated calls of tools that are annotated as read-only or
    /// idempotent. Default: no cache.
    pub cache: Option<CacheSettings>,
    /// When the model gets a search for tools in place of all tools. Default: when the definitions
    /// take more than a tenth of the context window (100,000 tokens if the window is unknown), or
    /// there are more tools than the provider takes.
    pub tool_search: ToolSearchSettings,
    /// The tool that undoes a call of another tool, by public names; see [`Agent::undo`]. The names
    /// precede those in the definitions of the tools. Default: none.
    ///
    /// [`Agent::undo`]: crate::agent::Agent::undo
    pub undo_tools: BTreeMap<String, String>,
    /// The timeout of one tool call, without a response or progress. Default: the limit of the
    /// [`ToolRunner`](crate::tools::ToolRunner); for a host, the server's `timeout`.
    pub call_timeout: Option<Duration>,
    /// The timeout of one response. Default: 600 s.
    pub response_timeout: Duration,
}

/// Number of history tokens in a request to a model with an unknown context window.
const DEFAULT_HISTORY_TOKENS: usize = 100_000;

impl AgentSettings {
    /// Returns the rules for tool calls.
    pub(super) fn executor_settings(&self) -> ExecutorSettings {
        ExecutorSettings {
            blocklist: self.blocklist.clone(),
            approval_policy: self.approval_policy,
            call_rate_limit_per_minute: self.call_rate_limit_per_minute,
            max_parallel_calls: self.max_parallel_calls,
            cache: self.cache.clone(),
            call_timeout: self.call_timeout,
        }
    }

    /// Returns a runner that offers a search for the tools if the settings require a search.
    pub(super) fn searchable_runner(
        &self,
        runner: Arc<dyn ToolRunner>,
        capabilities: &Capabilities,
    ) -> Arc<dyn ToolRunner> {
        let search = self.tool_search.clone();
        if search.max_listing_share.is_none() {
            return runner;
        }
        let (budget, window) = self.history_and_window(capabilities.context_tokens);
        let tokens = window.map_or(budget.max_tokens, |window| window as usize);
        let searchable = SearchableTools::new(runner, search, self.blocklist.clone(), tokens);
        // A prompt may describe any number of tools.
        let is_native = match self.tool_calling {
            ToolCalling::Native => true,
            ToolCalling::Auto => capabilities.native_tools,
            ToolCalling::Prompt | ToolCalling::Constrained => false,
        };
        Arc::new(searchable.with_max_tools(capabilities.max_tools.filter(|_| is_native)))
    }

    /// Returns the number of tokens of a response: at most half of the context window.
    pub(super) fn response_tokens(&self, context_window: Option<u32>) -> u32 {
        let window = self.history_budget.is_none().then_some(context_window).flatten();
        window.map_or(self.max_tokens, |window| self.max_tokens.min((window / 2).max(1)))
    }

    /// Returns the budget of the history and the required context window, if one is known.
    pub(super) fn history_and_window(
        &self,
        context_window: Option<u32>,
    ) -> (HistoryBudget, Option<u32>) {
        let max_tokens = self.response_tokens(context_window) as usize;
        match (self.history_budget, context_window) {
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

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            system: String::new(),
            tool_calling: ToolCalling::default(),
            template: None,
            format: Format::Detect,
            limits: RunLimits::default(),
            history_budget: None,
            max_tokens: 4096,
            prompt_caching: true,
            temperature: None,
            temperature_reduction: 0.1,
            max_retries: 3,
            retry_delay: Duration::from_secs(1),
            rate_limit_per_minute: None,
            wait_for_rate_limit: false,
            planning: false,
            backtracking: true,
            conversation_memory: true,
            summarize_history: true,
            blocklist: ToolBlocklist::default(),
            approval_policy: ApprovalPolicy::default(),
            call_rate_limit_per_minute: None,
            max_parallel_calls: DEFAULT_PARALLEL_CALLS,
            cache: None,
            tool_search: ToolSearchSettings::default(),
            undo_tools: BTreeMap::new(),
            call_timeout: None,
            response_timeout: DEFAULT_RESPONSE_TIMEOUT,
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
        let settings = AgentSettings {
            history_budget: Some(HistoryBudget { max_tokens: 6000 }),
            ..AgentSettings::default()
        };
        assert_eq!(settings.response_tokens(Some(4096)), 4096, "the settings decide");
    }
}

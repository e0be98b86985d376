//! The settings of an agent in a golden.

use std::collections::BTreeMap;
use std::time::Duration;

use innkeeper_toolcall::Format;
use serde::{Deserialize, Serialize};

use crate::agent::{AgentSettings, CacheSettings};
use crate::conversation::HistoryBudget;
use crate::run::{RunLimits, ToolCalling};
use crate::safety::{ApprovalPolicy, PatternError, ToolBlocklist};
use crate::tool_search::ToolSearchSettings;

/// The settings of an agent, all of them: a default that changes later does not change a golden.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingsRecord {
    tool_calling: ToolCallingRecord,
    max_iterations: u32,
    max_calls: usize,
    retry_budget: u32,
    history_tokens: Option<usize>,
    max_tokens: u32,
    prompt_caching: bool,
    temperature: Option<f64>,
    temperature_reduction: f64,
    max_retries: u32,
    retry_delay_ms: u64,
    rate_limit_per_minute: Option<u32>,
    wait_for_rate_limit: bool,
    planning: bool,
    backtracking: bool,
    conversation_memory: bool,
    summarize_history: bool,
    blocked_tools: Vec<String>,
    approval_policy: ApprovalPolicyRecord,
    call_rate_limit_per_minute: Option<u32>,
    max_parallel_calls: usize,
    cache: Option<CacheRecord>,
    max_listing_share: Option<f64>,
    pinned_tools: Vec<String>,
    undo_tools: BTreeMap<String, String>,
    call_timeout_ms: Option<u64>,
    response_timeout_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToolCallingRecord {
    Auto,
    Native,
    Prompt,
    Constrained,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ApprovalPolicyRecord {
    AllowAll,
    Ask,
    AskAll,
    DenyAll,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheRecord {
    ttl_ms: u64,
    max_entries: usize,
}

impl SettingsRecord {
    /// Returns the record of the settings; the name of a setting if a golden cannot hold its value.
    pub(super) fn new(settings: &AgentSettings) -> Result<Self, &'static str> {
        let AgentSettings {
            system: _,
            tool_calling,
            template,
            format,
            limits: RunLimits { max_iterations, max_calls, retry_budget },
            history_budget,
            max_tokens,
            prompt_caching,
            temperature,
            temperature_reduction,
            max_retries,
            retry_delay,
            rate_limit_per_minute,
            wait_for_rate_limit,
            planning,
            backtracking,
            conversation_memory,
            summarize_history,
            blocklist,
            approval_policy,
            call_rate_limit_per_minute,
            max_parallel_calls,
            cache,
            tool_search: ToolSearchSettings { max_listing_share, pinned_tools },
            undo_tools,
            call_timeout,
            response_timeout,
        } = settings;
        if template.is_some() {
            return Err("template");
        }
        if *format != Format::Detect {
            return Err("format");
        }
        Ok(Self {
            tool_calling: match tool_calling {
                ToolCalling::Auto => ToolCallingRecord::Auto,
                ToolCalling::Native => ToolCallingRecord::Native,
                ToolCalling::Prompt => ToolCallingRecord::Prompt,
                ToolCalling::Constrained => ToolCallingRecord::Constrained,
            },
            max_iterations: *max_iterations,
            max_calls: *max_calls,
            retry_budget: *retry_budget,
            history_tokens: history_budget.map(|budget| budget.max_tokens),
            max_tokens: *max_tokens,
            prompt_caching: *prompt_caching,
            temperature: *temperature,
            temperature_reduction: *temperature_reduction,
            max_retries: *max_retries,
            retry_delay_ms: millis(*retry_delay),
            rate_limit_per_minute: *rate_limit_per_minute,
            wait_for_rate_limit: *wait_for_rate_limit,
            planning: *planning,
            backtracking: *backtracking,
            conversation_memory: *conversation_memory,
            summarize_history: *summarize_history,
            blocked_tools: blocklist.patterns().to_vec(),
            approval_policy: match approval_policy {
                ApprovalPolicy::AllowAll => ApprovalPolicyRecord::AllowAll,
                ApprovalPolicy::Ask => ApprovalPolicyRecord::Ask,
                ApprovalPolicy::AskAll => ApprovalPolicyRecord::AskAll,
                ApprovalPolicy::DenyAll => ApprovalPolicyRecord::DenyAll,
            },
            call_rate_limit_per_minute: *call_rate_limit_per_minute,
            max_parallel_calls: *max_parallel_calls,
            cache: cache.as_ref().map(|cache| CacheRecord {
                ttl_ms: millis(cache.ttl),
                max_entries: cache.max_entries,
            }),
            max_listing_share: *max_listing_share,
            pinned_tools: pinned_tools.clone(),
            undo_tools: undo_tools.clone(),
            call_timeout_ms: call_timeout.map(millis),
            response_timeout_ms: millis(*response_timeout),
        })
    }

    /// Returns the settings with a system prompt.
    ///
    /// # Errors
    ///
    /// A pattern of a blocked tool is invalid.
    pub(super) fn to_settings(&self, system: &str) -> Result<AgentSettings, PatternError> {
        Ok(AgentSettings {
            system: system.to_owned(),
            tool_calling: match self.tool_calling {
                ToolCallingRecord::Auto => ToolCalling::Auto,
                ToolCallingRecord::Native => ToolCalling::Native,
                ToolCallingRecord::Prompt => ToolCalling::Prompt,
                ToolCallingRecord::Constrained => ToolCalling::Constrained,
            },
            template: None,
            format: Format::Detect,
            limits: RunLimits {
                max_iterations: self.max_iterations,
                max_calls: self.max_calls,
                retry_budget: self.retry_budget,
            },
            history_budget: self.history_tokens.map(|max_tokens| HistoryBudget { max_tokens }),
            max_tokens: self.max_tokens,
            prompt_caching: self.prompt_caching,
            temperature: self.temperature,
            temperature_reduction: self.temperature_reduction,
            max_retries: self.max_retries,
            retry_delay: Duration::from_millis(self.retry_delay_ms),
            rate_limit_per_minute: self.rate_limit_per_minute,
            wait_for_rate_limit: self.wait_for_rate_limit,
            planning: self.planning,
            backtracking: self.backtracking,
            conversation_memory: self.conversation_memory,
            summarize_history: self.summarize_history,
            blocklist: ToolBlocklist::new(&self.blocked_tools)?,
            approval_policy: match self.approval_policy {
                ApprovalPolicyRecord::AllowAll => ApprovalPolicy::AllowAll,
                ApprovalPolicyRecord::Ask => ApprovalPolicy::Ask,
                ApprovalPolicyRecord::AskAll => ApprovalPolicy::AskAll,
                ApprovalPolicyRecord::DenyAll => ApprovalPolicy::DenyAll,
            },
            call_rate_limit_per_minute: self.call_rate_limit_per_minute,
            max_parallel_calls: self.max_parallel_calls,
            cache: self.cache.as_ref().map(|cache| CacheSettings {
                ttl: Duration::from_millis(cache.ttl_ms),
                max_entries: cache.max_entries,
            }),
            tool_search: ToolSearchSettings {
                max_listing_share: self.max_listing_share,
                pinned_tools: self.pinned_tools.clone(),
            },
            undo_tools: self.undo_tools.clone(),
            call_timeout: self.call_timeout_ms.map(Duration::from_millis),
            response_timeout: Duration::from_millis(self.response_timeout_ms),
        })
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

//! The settings of an agent in a golden.

use innkeeper_toolcall::Format;
use serde::{Deserialize, Serialize};

use crate::agent::{AgentSettings, CallSettings, RequestSettings, ToolUseSettings};
use crate::run::RunLimits;
use crate::safety::{ApprovalPolicy, PatternError, ToolBlocklist};
use crate::tool_search::ToolSearchSettings;

/// The settings of an agent, all of them: a default that changes later does not change a golden.
/// The members of the groups are members of the record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingsRecord {
    #[serde(flatten)]
    limits: RunLimits,
    #[serde(flatten)]
    requests: RequestSettings,
    #[serde(flatten)]
    tool_use: ToolUseSettings,
    #[serde(flatten)]
    calls: CallSettings,
    #[serde(flatten)]
    tool_search: ToolSearchSettings,
    blocked_tools: Vec<String>,
    approval_policy: ApprovalPolicy,
}

impl SettingsRecord {
    /// Returns the record of the settings; the name of a setting if a golden cannot hold its value.
    pub(super) fn new(settings: &AgentSettings) -> Result<Self, &'static str> {
        let AgentSettings {
            system: _,
            limits,
            requests,
            tool_use,
            calls,
            tool_search,
            blocklist,
            approval_policy,
        } = settings.clone();
        if tool_use.template.is_some() {
            return Err("template");
        }
        if tool_use.format != Format::Detect {
            return Err("format");
        }
        let blocked_tools = blocklist.patterns().to_vec();
        Ok(Self { limits, requests, tool_use, calls, tool_search, blocked_tools, approval_policy })
    }

    /// Returns the settings with a system prompt.
    ///
    /// # Errors
    ///
    /// A pattern of a blocked tool is invalid.
    pub(super) fn into_settings(self, system: &str) -> Result<AgentSettings, PatternError> {
        Ok(AgentSettings {
            system: system.to_owned(),
            limits: self.limits,
            requests: self.requests,
            tool_use: self.tool_use,
            calls: self.calls,
            tool_search: self.tool_search,
            blocklist: ToolBlocklist::new(&self.blocked_tools)?,
            approval_policy: self.approval_policy,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::agent::CacheSettings;

    fn default_settings() -> Value {
        json!({
            "tool_calling": "auto",
            "max_iterations": 10,
            "max_calls": 1024,
            "retry_budget": 8,
            "history_tokens": null,
            "max_tokens": 4096,
            "prompt_caching": true,
            "temperature": null,
            "temperature_reduction": 0.1,
            "max_retries": 3,
            "retry_delay_ms": 1000,
            "rate_limit_per_minute": null,
            "wait_for_rate_limit": false,
            "planning": false,
            "backtracking": true,
            "conversation_memory": true,
            "summarize_history": true,
            "blocked_tools": [],
            "approval_policy": "allow_all",
            "call_rate_limit_per_minute": null,
            "max_parallel_calls": 4,
            "cache": null,
            "max_listing_share": 0.1,
            "pinned_tools": [],
            "undo_tools": {},
            "call_timeout_ms": null,
            "response_timeout_ms": 600_000
        })
    }

    #[test]
    fn the_record_has_one_flat_member_per_setting() {
        let record = SettingsRecord::new(&AgentSettings::default()).unwrap();
        assert_eq!(serde_json::to_value(&record).unwrap(), default_settings());
    }

    #[test]
    fn a_changed_setting_survives_the_record() {
        let mut settings = AgentSettings {
            approval_policy: ApprovalPolicy::DenyAll,
            blocklist: ToolBlocklist::new(["rm"]).unwrap(),
            ..AgentSettings::default()
        };
        settings.requests.temperature = Some(0.7);
        settings.calls.timeout = Some(Duration::from_millis(1500));
        settings.calls.cache = Some(CacheSettings::default());
        let text = serde_json::to_string(&SettingsRecord::new(&settings).unwrap()).unwrap();
        assert!(text.contains(r#""cache":{"ttl_ms":300000,"max_entries":128}"#), "{text}");
        let record: SettingsRecord = serde_json::from_str(&text).unwrap();
        let read = record.into_settings("").unwrap();
        assert_eq!(format!("{read:?}"), format!("{settings:?}"));
    }

    #[test]
    fn an_unknown_or_missing_member_is_refused() {
        let mut unknown = default_settings();
        unknown["max_tries"] = json!(3);
        let error = serde_json::from_value::<SettingsRecord>(unknown).unwrap_err().to_string();
        assert!(error.contains("unknown field `max_tries`"), "{error}");
        let mut missing = default_settings();
        missing.as_object_mut().unwrap().remove("max_calls");
        let error = serde_json::from_value::<SettingsRecord>(missing).unwrap_err().to_string();
        assert!(error.contains("missing field `max_calls`"), "{error}");
    }
}

//! Filter for a server's tools and their arguments.

use std::time::Duration;

use indexmap::IndexMap;
use serde::Serialize;

use crate::settings::argument_rule::{self, ArgumentPatterns};
use crate::settings::{pattern, seconds};

/// Allow and deny lists of tool names; `*` matches any sequence of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFilter {
    /// Tools that are allowed; `None` allows all tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Tools that are denied, even if `allow` matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Patterns that no string argument may match, by tool name or pattern.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub deny_arguments: IndexMap<String, Vec<String>>,
    /// Tools whose calls a chat runs without a question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approve: Vec<String>,
    /// Tools whose calls a chat runs without a question if their arguments match one of the rules, by
    /// tool name or pattern.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub approve_arguments: IndexMap<String, Vec<ArgumentPatterns>>,
    /// Tools whose calls a chat always asks about, even if `approve` matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    /// Time for one call of a tool without a response or progress, by tool name or pattern, in
    /// place of the server's `timeout`.
    #[serde(skip_serializing_if = "IndexMap::is_empty", serialize_with = "seconds::serialize_map")]
    pub timeouts: IndexMap<String, Duration>,
}

impl ToolFilter {
    /// Returns whether a tool of this name is allowed.
    pub fn permits(&self, tool: &str) -> bool {
        let matches_any =
            |patterns: &[String]| patterns.iter().any(|pattern| Self::matches(pattern, tool));
        self.allow.as_deref().is_none_or(matches_any) && !matches_any(&self.deny)
    }

    /// Returns the rule that excludes a tool, as written in the file.
    pub fn deny_reason(&self, tool: &str) -> Option<DenyReason<'_>> {
        if let Some(rule) = self.deny.iter().find(|pattern| Self::matches(pattern, tool)) {
            return Some(DenyReason::Denied { rule });
        }
        (!self.permits(tool)).then_some(DenyReason::NotAllowed)
    }

    /// Returns whether the calls of a tool run without a question; `None` without a rule.
    pub fn is_approved(&self, tool: &str) -> Option<bool> {
        let matches_any =
            |patterns: &[String]| patterns.iter().any(|pattern| Self::matches(pattern, tool));
        match (matches_any(&self.ask), matches_any(&self.approve)) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => None,
        }
    }

    /// Returns whether a call of a tool runs without a question because of its arguments, the JSON
    /// text that the server gets. `ask` takes precedence.
    pub fn approves_arguments(&self, tool: &str, arguments: &str) -> bool {
        let mut rules =
            self.approve_arguments.iter().filter(|(tools, _)| Self::matches(tools, tool));
        self.is_approved(tool) != Some(false)
            && rules
                .any(|(_, rules)| rules.iter().any(|rule| argument_rule::approves(rule, arguments)))
    }

    /// Removes all rules that approve calls.
    pub fn remove_approvals(&mut self) {
        self.approve.clear();
        self.approve_arguments.clear();
    }

    /// Returns the denied argument patterns of a tool.
    pub fn denied_arguments(&self, tool: &str) -> impl Iterator<Item = &str> {
        let rules = self.deny_arguments.iter().filter(move |(tools, _)| Self::matches(tools, tool));
        rules.flat_map(|(_, texts)| texts).map(String::as_str)
    }

    /// Returns the timeout of a tool: the timeout of the first name or pattern that matches.
    pub fn timeout(&self, tool: &str) -> Option<Duration> {
        self.timeouts.iter().find(|(tools, _)| Self::matches(tools, tool)).map(|(_, time)| *time)
    }

    /// Returns whether a name matches a pattern; `*` matches any sequence of characters.
    pub fn matches(pattern: &str, name: &str) -> bool {
        pattern::matches(pattern, name)
    }
}

/// The reason why a tool is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenyReason<'a> {
    /// An entry of `tools.deny` matches.
    Denied {
        /// The matching entry.
        rule: &'a str,
    },
    /// `tools.allow` is set and no entry matches.
    NotAllowed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(allow: Option<&[&str]>, deny: &[&str]) -> ToolFilter {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ToolFilter { allow: allow.map(owned), deny: owned(deny), ..ToolFilter::default() }
    }

    #[test]
    fn without_rules_every_tool_is_offered() {
        assert!(filter(None, &[]).permits("read_file"));
    }

    #[test]
    fn an_empty_allow_list_offers_nothing() {
        assert!(!filter(Some(&[]), &[]).permits("read_file"));
    }

    #[test]
    fn deny_wins_over_allow_and_names_its_rule() {
        let filter = filter(Some(&["*"]), &["write_*"]);
        assert!(filter.permits("read_file"));
        assert!(!filter.permits("write_file"));
        assert_eq!(filter.deny_reason("write_file"), Some(DenyReason::Denied { rule: "write_*" }));
        assert_eq!(filter.deny_reason("read_file"), None);
    }

    #[test]
    fn a_tool_missing_from_allow_is_refused_as_such() {
        assert_eq!(filter(Some(&["a"]), &[]).deny_reason("b"), Some(DenyReason::NotAllowed));
    }

    #[test]
    fn a_tool_that_asks_is_not_approved_by_another_pattern() {
        let patterns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let filter = ToolFilter {
            approve: patterns(&["write_*"]),
            ask: patterns(&["write_all", "read_secret"]),
            ..ToolFilter::default()
        };
        let approved = ["write_one", "write_all", "read_secret", "read"];
        let approved = approved.map(|tool| filter.is_approved(tool));
        assert_eq!(approved, [Some(true), Some(false), Some(false), None]);
    }

    #[test]
    fn a_rule_for_arguments_applies_to_its_tools_unless_they_ask() {
        let rules = |path: &str| {
            let patterns = [("path".to_owned(), path.to_owned())].into_iter().collect();
            vec![patterns, ArgumentPatterns::new()]
        };
        let mut filter = ToolFilter::default();
        filter.approve_arguments.insert("write_*".to_owned(), rules("/srv/*"));
        filter.ask.push("write_all".to_owned());
        let arguments = r#"{"path": "/srv/a"}"#;
        let approves = |tool| filter.approves_arguments(tool, arguments);
        assert_eq!(
            [approves("write_one"), approves("write_all"), approves("read")],
            [true, false, false]
        );
        assert!(filter.approves_arguments("write_one", "{}"), "the second rule");
        assert!(!filter.approves_arguments("write_one", r#"{"path": "/etc/a"}"#));
        filter.remove_approvals();
        assert!(!filter.approves_arguments("write_one", arguments));
    }

    #[test]
    fn the_first_timeout_whose_name_matches_counts() {
        let seconds = Duration::from_secs;
        let timeouts =
            [("read_big", seconds(9)), ("read_*", seconds(3)), ("read_small", seconds(1))];
        let timeouts = timeouts.map(|(tools, time)| (tools.to_owned(), time)).into_iter().collect();
        let filter = ToolFilter { timeouts, ..ToolFilter::default() };
        assert_eq!(filter.timeout("read_big"), Some(seconds(9)));
        assert_eq!(filter.timeout("read_small"), Some(seconds(3)));
        assert_eq!(filter.timeout("write"), None);
    }

    #[test]
    fn stars_stand_for_any_run_of_characters() {
        for (pattern, name, expected) in [
            ("read", "read", true),
            ("read", "reads", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "abc", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("a.*", "axb", false),
        ] {
            assert_eq!(ToolFilter::matches(pattern, name), expected, "`{pattern}` on `{name}`");
        }
    }
}

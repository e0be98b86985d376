//! Remembered decisions of a user about tools and servers.

use std::collections::BTreeMap;

use crate::tools::ToolAnnotations;

/// What a decision of the user applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionScope {
    /// This call only.
    Call,
    /// All calls of this tool.
    Tool,
    /// All calls of all tools of this server, unless a decision about the tool says otherwise.
    Server,
}

/// A rule for the calls of a tool or a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalRule {
    /// The calls run without a question.
    Allow,
    /// The calls do not run.
    Deny,
}

/// The decision about a call for which the user made no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultDecision {
    /// The call runs without a question.
    Allow,
    /// The user decides.
    Ask,
    /// The user decides, even if a rule allows the server of the tool.
    AlwaysAsk,
}

impl DefaultDecision {
    /// Returns the decision for a tool with these annotations: only a tool that is annotated as
    /// read-only runs without a question.
    pub fn for_annotations(annotations: ToolAnnotations) -> Self {
        if annotations.read_only { Self::Allow } else { Self::Ask }
    }
}

/// The rules that a user made for tools, by their public names, and for servers. A rule for a tool
/// precedes the rule for its server.
///
/// # Examples
///
/// ```
/// use innkeeper_agent::safety::{ApprovalRule, ApprovalRules, DecisionScope, DefaultDecision};
///
/// let mut rules = ApprovalRules::default();
/// let ask = DefaultDecision::Ask;
/// assert_eq!(rules.find("files.write", Some("files"), ask), None);
/// rules.add("files.write", Some("files"), DecisionScope::Server, ApprovalRule::Allow);
/// rules.add("files.delete", Some("files"), DecisionScope::Tool, ApprovalRule::Deny);
/// assert_eq!(rules.find("files.write", Some("files"), ask), Some(ApprovalRule::Allow));
/// assert_eq!(rules.find("files.delete", Some("files"), ask), Some(ApprovalRule::Deny));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    tools: BTreeMap<String, ApprovalRule>,
    servers: BTreeMap<String, ApprovalRule>,
}

impl ApprovalRules {
    /// Returns the rule for a call; `None` if the user must decide.
    pub fn find(
        &self,
        tool: &str,
        server: Option<&str>,
        default: DefaultDecision,
    ) -> Option<ApprovalRule> {
        let of_tool = self.tools.get(tool).copied();
        let of_server = server.and_then(|server| self.servers.get(server)).copied();
        of_tool.or(match default {
            DefaultDecision::Allow => of_server.or(Some(ApprovalRule::Allow)),
            DefaultDecision::Ask => of_server,
            DefaultDecision::AlwaysAsk => of_server.filter(|rule| *rule == ApprovalRule::Deny),
        })
    }

    /// Adds the rule of a decision. A decision about one call, or about the server of a tool without
    /// a server, adds none.
    pub fn add(
        &mut self,
        tool: &str,
        server: Option<&str>,
        scope: DecisionScope,
        rule: ApprovalRule,
    ) {
        match (scope, server) {
            (DecisionScope::Tool, _) => drop(self.tools.insert(tool.to_owned(), rule)),
            (DecisionScope::Server, Some(server)) => {
                self.servers.insert(server.to_owned(), rule);
            }
            (DecisionScope::Call, _) | (DecisionScope::Server, None) => {}
        }
    }

    /// Removes the rule for a tool. Returns whether there was one.
    pub fn remove_tool(&mut self, tool: &str) -> bool {
        self.tools.remove(tool).is_some()
    }

    /// Returns the rules for tools, by their public names.
    pub fn tools(&self) -> impl Iterator<Item = (&str, ApprovalRule)> {
        self.tools.iter().map(|(tool, rule)| (&**tool, *rule))
    }

    /// Returns the rules for servers, by their names.
    pub fn servers(&self) -> impl Iterator<Item = (&str, ApprovalRule)> {
        self.servers.iter().map(|(server, rule)| (&**server, *rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOW: Option<ApprovalRule> = Some(ApprovalRule::Allow);
    const DENY: Option<ApprovalRule> = Some(ApprovalRule::Deny);

    #[test]
    fn only_tools_that_are_annotated_as_read_only_run_without_a_question() {
        let writes = ToolAnnotations::default();
        let reads = ToolAnnotations { read_only: true, ..writes };
        assert_eq!(DefaultDecision::for_annotations(reads), DefaultDecision::Allow);
        assert_eq!(DefaultDecision::for_annotations(writes), DefaultDecision::Ask);
        let rules = ApprovalRules::default();
        assert_eq!(rules.find("a.read", Some("a"), DefaultDecision::Allow), ALLOW);
        assert_eq!(rules.find("a.write", Some("a"), DefaultDecision::Ask), None);
    }

    #[test]
    fn a_decision_about_one_call_adds_no_rule() {
        let mut rules = ApprovalRules::default();
        rules.add("a.write", Some("a"), DecisionScope::Call, ApprovalRule::Allow);
        rules.add("own", None, DecisionScope::Server, ApprovalRule::Allow);
        assert_eq!(rules, ApprovalRules::default());
    }

    #[test]
    fn a_rule_for_a_tool_precedes_the_rule_for_its_server_and_the_default() {
        let mut rules = ApprovalRules::default();
        rules.add("a.write", Some("a"), DecisionScope::Server, ApprovalRule::Allow);
        assert_eq!(rules.find("a.other", Some("a"), DefaultDecision::Ask), ALLOW);
        assert_eq!(rules.find("b.other", Some("b"), DefaultDecision::Ask), None);
        rules.add("a.read", Some("a"), DecisionScope::Tool, ApprovalRule::Deny);
        assert_eq!(rules.find("a.read", Some("a"), DefaultDecision::Allow), DENY);
        rules.add("a.x", Some("a"), DecisionScope::Server, ApprovalRule::Deny);
        assert_eq!(rules.find("a.list", Some("a"), DefaultDecision::Allow), DENY);
    }

    #[test]
    fn a_tool_that_always_asks_needs_a_rule_of_its_own() {
        let mut rules = ApprovalRules::default();
        rules.add("a.x", Some("a"), DecisionScope::Server, ApprovalRule::Allow);
        assert_eq!(rules.find("a.read", Some("a"), DefaultDecision::AlwaysAsk), None);
        rules.add("a.read", Some("a"), DecisionScope::Tool, ApprovalRule::Allow);
        assert_eq!(rules.find("a.read", Some("a"), DefaultDecision::AlwaysAsk), ALLOW);
        rules.add("a.x", Some("a"), DecisionScope::Server, ApprovalRule::Deny);
        assert_eq!(rules.find("a.other", Some("a"), DefaultDecision::AlwaysAsk), DENY);
    }
}

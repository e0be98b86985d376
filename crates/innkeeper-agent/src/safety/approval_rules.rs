//! Remembered decisions of a user about tools and servers.

use std::collections::{BTreeMap, BTreeSet};

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

/// The rules that a user made for tools, by their public names, and for servers. A rule for a tool
/// precedes the rule for its server. Without a rule, a call needs a decision unless the tool is
/// annotated as read-only.
///
/// # Examples
///
/// ```
/// use innkeeper_agent::safety::{ApprovalRule, ApprovalRules, DecisionScope};
/// use innkeeper_agent::ToolAnnotations;
///
/// let mut rules = ApprovalRules::default();
/// let writes = ToolAnnotations::default();
/// assert_eq!(rules.find("files.write", Some("files"), writes), None);
/// rules.add("files.write", Some("files"), DecisionScope::Server, ApprovalRule::Allow);
/// rules.add("files.delete", Some("files"), DecisionScope::Tool, ApprovalRule::Deny);
/// assert_eq!(rules.find("files.write", Some("files"), writes), Some(ApprovalRule::Allow));
/// assert_eq!(rules.find("files.delete", Some("files"), writes), Some(ApprovalRule::Deny));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    tools: BTreeMap<String, ApprovalRule>,
    servers: BTreeMap<String, ApprovalRule>,
    /// The read-only tools that need a decision too.
    always_ask: BTreeSet<String>,
}

impl ApprovalRules {
    /// Returns the rule for a call; `None` if the user must decide.
    pub fn find(
        &self,
        tool: &str,
        server: Option<&str>,
        annotations: ToolAnnotations,
    ) -> Option<ApprovalRule> {
        let of_server = || self.servers.get(server?).copied();
        let rule = self.tools.get(tool).copied();
        let asks_always = self.always_ask.contains(tool);
        let read_only = (annotations.read_only && !asks_always).then_some(ApprovalRule::Allow);
        let of_server = if asks_always { None } else { of_server() };
        rule.or(of_server).or(read_only)
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

    /// Requires a decision about each call of a tool, also if the tool is annotated as read-only or a
    /// rule allows its server.
    pub fn always_ask(&mut self, tool: &str) {
        self.always_ask.insert(tool.to_owned());
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

    const WRITES: ToolAnnotations = ToolAnnotations {
        read_only: false,
        idempotent: false,
        destructive: true,
        open_world: true,
    };
    const READS: ToolAnnotations = ToolAnnotations { read_only: true, ..WRITES };

    #[test]
    fn only_tools_without_the_read_only_annotation_need_a_decision() {
        let rules = ApprovalRules::default();
        assert_eq!(rules.find("a.read", Some("a"), READS), Some(ApprovalRule::Allow));
        assert_eq!(rules.find("a.write", Some("a"), WRITES), None);
    }

    #[test]
    fn a_decision_about_one_call_adds_no_rule() {
        let mut rules = ApprovalRules::default();
        rules.add("a.write", Some("a"), DecisionScope::Call, ApprovalRule::Allow);
        rules.add("own", None, DecisionScope::Server, ApprovalRule::Allow);
        assert_eq!(rules, ApprovalRules::default());
    }

    #[test]
    fn a_rule_for_a_tool_precedes_the_rule_for_its_server_and_the_annotation() {
        let mut rules = ApprovalRules::default();
        rules.add("a.write", Some("a"), DecisionScope::Server, ApprovalRule::Allow);
        assert_eq!(rules.find("a.other", Some("a"), WRITES), Some(ApprovalRule::Allow));
        assert_eq!(rules.find("b.other", Some("b"), WRITES), None);
        rules.add("a.read", Some("a"), DecisionScope::Tool, ApprovalRule::Deny);
        assert_eq!(rules.find("a.read", Some("a"), READS), Some(ApprovalRule::Deny));
        rules.add("a.x", Some("a"), DecisionScope::Server, ApprovalRule::Deny);
        assert_eq!(rules.find("a.list", Some("a"), READS), Some(ApprovalRule::Deny));
    }

    #[test]
    fn a_tool_that_always_asks_needs_a_rule_of_its_own() {
        let mut rules = ApprovalRules::default();
        rules.always_ask("a.read");
        rules.add("a.x", Some("a"), DecisionScope::Server, ApprovalRule::Allow);
        assert_eq!(rules.find("a.read", Some("a"), READS), None);
        rules.add("a.read", Some("a"), DecisionScope::Tool, ApprovalRule::Allow);
        assert_eq!(rules.find("a.read", Some("a"), READS), Some(ApprovalRule::Allow));
    }
}

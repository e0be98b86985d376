//! Remembered decisions of a user about tools and servers.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::tools::ToolAnnotations;

/// What a decision of the user applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionScope {
    /// This call only.
    Call,
    /// All calls of this tool, with its present definition.
    Tool,
    /// All calls of the present tools of this server, unless a decision about a tool says otherwise.
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

/// A tool as a rule sees it.
#[derive(Clone, Copy, Debug)]
pub struct RuledTool<'t> {
    /// The public name.
    pub name: &'t str,
    /// The server; `None` for a tool without one.
    pub server: Option<&'t str>,
    /// The definition that the model and the user see; `None` for a tool without an MCP server.
    pub definition: Option<&'t RawValue>,
}

impl RuledTool<'_> {
    fn definition_hash(&self) -> DefinitionHash {
        self.definition.map(|definition| Sha256::digest(definition.get()).into())
    }
}

/// The hash of a definition, of which only one is known at a time.
type DefinitionHash = Option<[u8; 32]>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct ToolRule {
    rule: ApprovalRule,
    definition: DefinitionHash,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ServerRule {
    rule: ApprovalRule,
    /// The tools of the server at the time of the decision.
    tools: BTreeMap<String, DefinitionHash>,
}

/// The rules that a user made for tools, by their public names, and for servers. A rule for a tool
/// precedes the rule for its server.
///
/// What a user allows is a definition: a tool that changes, or that appears on an allowed server
/// after the decision, is asked about again. A denial holds whatever the definition is.
///
/// # Examples
///
/// ```
/// use innkeeper_agent::safety::{
///     ApprovalRule, ApprovalRules, DecisionScope, DefaultDecision, RuledTool,
/// };
/// use serde_json::value::RawValue;
///
/// let definition = RawValue::from_string(r#"{"name": "write"}"#.to_owned())?;
/// let write =
///     RuledTool { name: "files.write", server: Some("files"), definition: Some(&definition) };
/// let delete = RuledTool { name: "files.delete", ..write };
/// let mut rules = ApprovalRules::default();
/// assert_eq!(rules.find(write, DefaultDecision::Ask), None);
/// rules.add(write, DecisionScope::Server, ApprovalRule::Allow, &[write]);
/// rules.add(delete, DecisionScope::Tool, ApprovalRule::Deny, &[]);
/// assert_eq!(rules.find(write, DefaultDecision::Ask), Some(ApprovalRule::Allow));
/// assert_eq!(rules.find(delete, DefaultDecision::Ask), Some(ApprovalRule::Deny));
/// let changed = RawValue::from_string(r#"{"name": "write", "description": "New."}"#.to_owned())?;
/// let changed = RuledTool { definition: Some(&changed), ..write };
/// assert_eq!(rules.find(changed, DefaultDecision::Ask), None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    tools: BTreeMap<String, ToolRule>,
    servers: BTreeMap<String, ServerRule>,
}

impl ApprovalRules {
    /// Returns the rule for a call; `None` if the user must decide.
    pub fn find(&self, tool: RuledTool<'_>, default: DefaultDecision) -> Option<ApprovalRule> {
        let hash = tool.definition_hash();
        let of_tool = self
            .tools
            .get(tool.name)
            .filter(|rule| rule.rule == ApprovalRule::Deny || rule.definition == hash);
        let of_server = tool.server.and_then(|server| self.servers.get(server)).filter(|rule| {
            rule.rule == ApprovalRule::Deny || rule.tools.get(tool.name) == Some(&hash)
        });
        let of_server = of_server.map(|rule| rule.rule);
        of_tool.map(|rule| rule.rule).or(match default {
            DefaultDecision::Allow => of_server.or(Some(ApprovalRule::Allow)),
            DefaultDecision::Ask => of_server,
            DefaultDecision::AlwaysAsk => of_server.filter(|rule| *rule == ApprovalRule::Deny),
        })
    }

    /// Adds the rule of a decision. `tools_of_server` are the tools that a rule for the server of the
    /// tool allows, as the user could see them. A decision about one call, or about the server of a
    /// tool without a server, adds none.
    pub fn add(
        &mut self,
        tool: RuledTool<'_>,
        scope: DecisionScope,
        rule: ApprovalRule,
        tools_of_server: &[RuledTool<'_>],
    ) {
        match (scope, tool.server) {
            (DecisionScope::Tool, _) => {
                let definition = tool.definition_hash();
                self.tools.insert(tool.name.to_owned(), ToolRule { rule, definition });
            }
            (DecisionScope::Server, Some(server)) => {
                let tools = tools_of_server.iter().chain([&tool]);
                let tools = tools.map(|tool| (tool.name.to_owned(), tool.definition_hash()));
                let rule = ServerRule { rule, tools: tools.collect() };
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
        self.tools.iter().map(|(tool, rule)| (&**tool, rule.rule))
    }

    /// Returns the rules for servers, by their names.
    pub fn servers(&self) -> impl Iterator<Item = (&str, ApprovalRule)> {
        self.servers.iter().map(|(server, rule)| (&**server, rule.rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOW: Option<ApprovalRule> = Some(ApprovalRule::Allow);
    const DENY: Option<ApprovalRule> = Some(ApprovalRule::Deny);

    /// A tool named `SERVER.TOOL`, or a tool without a server, without a definition.
    fn tool(name: &str) -> RuledTool<'_> {
        let server = name.split_once('.').map(|(server, _)| server);
        RuledTool { name, server, definition: None }
    }

    /// Adds a decision about the tool when its server has these tools.
    fn add(rules: &mut ApprovalRules, name: &str, scope: DecisionScope, rule: ApprovalRule) {
        let of_server = ["a.read", "a.write", "a.other", "a.list"].map(tool);
        rules.add(tool(name), scope, rule, &of_server);
    }

    #[test]
    fn only_tools_that_are_annotated_as_read_only_run_without_a_question() {
        let writes = ToolAnnotations::default();
        let reads = ToolAnnotations { read_only: true, ..writes };
        assert_eq!(DefaultDecision::for_annotations(reads), DefaultDecision::Allow);
        assert_eq!(DefaultDecision::for_annotations(writes), DefaultDecision::Ask);
        let rules = ApprovalRules::default();
        assert_eq!(rules.find(tool("a.read"), DefaultDecision::Allow), ALLOW);
        assert_eq!(rules.find(tool("a.write"), DefaultDecision::Ask), None);
    }

    #[test]
    fn a_decision_about_one_call_adds_no_rule() {
        let mut rules = ApprovalRules::default();
        add(&mut rules, "a.write", DecisionScope::Call, ApprovalRule::Allow);
        add(&mut rules, "own", DecisionScope::Server, ApprovalRule::Allow);
        assert_eq!(rules, ApprovalRules::default());
    }

    #[test]
    fn a_rule_for_a_tool_precedes_the_rule_for_its_server_and_the_default() {
        let mut rules = ApprovalRules::default();
        add(&mut rules, "a.write", DecisionScope::Server, ApprovalRule::Allow);
        assert_eq!(rules.find(tool("a.other"), DefaultDecision::Ask), ALLOW);
        assert_eq!(rules.find(tool("b.other"), DefaultDecision::Ask), None);
        add(&mut rules, "a.read", DecisionScope::Tool, ApprovalRule::Deny);
        assert_eq!(rules.find(tool("a.read"), DefaultDecision::Allow), DENY);
        add(&mut rules, "a.write", DecisionScope::Server, ApprovalRule::Deny);
        assert_eq!(rules.find(tool("a.list"), DefaultDecision::Allow), DENY);
    }

    #[test]
    fn a_tool_that_always_asks_needs_a_rule_of_its_own() {
        let mut rules = ApprovalRules::default();
        add(&mut rules, "a.write", DecisionScope::Server, ApprovalRule::Allow);
        assert_eq!(rules.find(tool("a.read"), DefaultDecision::AlwaysAsk), None);
        add(&mut rules, "a.read", DecisionScope::Tool, ApprovalRule::Allow);
        assert_eq!(rules.find(tool("a.read"), DefaultDecision::AlwaysAsk), ALLOW);
        add(&mut rules, "a.write", DecisionScope::Server, ApprovalRule::Deny);
        assert_eq!(rules.find(tool("a.other"), DefaultDecision::AlwaysAsk), DENY);
    }

    /// Attack: model | a server changes a tool, or adds one, after the user has allowed the tool or the
    /// server | the user is asked again | Approval first
    #[test]
    fn a_changed_or_new_tool_is_not_allowed_by_an_earlier_decision() {
        let [old, new] = ["{}", r#"{"description": "x"}"#]
            .map(|text| RawValue::from_string(text.to_owned()).unwrap());
        let write = RuledTool { definition: Some(&old), ..tool("a.write") };
        let changed = RuledTool { definition: Some(&new), ..write };
        for scope in [DecisionScope::Tool, DecisionScope::Server] {
            let mut rules = ApprovalRules::default();
            rules.add(write, scope, ApprovalRule::Allow, &[write]);
            assert_eq!(rules.find(write, DefaultDecision::Ask), ALLOW, "{scope:?}");
            assert_eq!(rules.find(changed, DefaultDecision::Ask), None, "{scope:?}");
            assert_eq!(rules.find(tool("a.new"), DefaultDecision::Ask), None, "{scope:?}");
            rules.add(write, scope, ApprovalRule::Deny, &[write]);
            assert_eq!(rules.find(changed, DefaultDecision::Ask), DENY, "{scope:?}");
        }
    }
}

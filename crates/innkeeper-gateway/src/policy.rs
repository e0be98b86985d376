//! Decides which tools a client may use.
//!
//! A tool that a client may not use does not exist for the client: lists, searches, hints and errors
//! are the same as without the tool. Callers therefore look up tools with [`ToolPolicy::find`], and
//! build lists from the tools that [`ToolPolicy::permits`].

use std::collections::HashMap;
use std::sync::Arc;

use innkeeper_host::config::{ServeConfig, ToolFilter};

use crate::item_names::ItemNames;
use crate::principal::Principal;

/// The tools that each client may use, by any of their names.
#[derive(Clone, Debug, Default)]
pub struct ToolPolicy {
    clients: HashMap<Arc<str>, ToolFilter>,
    others: ToolFilter,
}

impl ToolPolicy {
    /// Creates a policy with the rules of single clients, and the rules of all other clients.
    pub fn new(
        clients: impl IntoIterator<Item = (Principal, ToolFilter)>,
        others: ToolFilter,
    ) -> Self {
        let clients = clients.into_iter().map(|(client, rules)| (Arc::clone(client.id()), rules));
        Self { clients: clients.collect(), others }
    }

    /// Creates the policy of the configuration. The local user may use every tool.
    pub fn from_config(config: &ServeConfig) -> Self {
        let keys = config.auth.api_keys.iter();
        let keys = keys.map(|key| (Principal::new(key.principal.as_str()), key.tools.clone()));
        let local = (Principal::local_user(), ToolFilter::default());
        let tokens = config.auth.oauth.as_ref().map(|oauth| oauth.tools.clone());
        Self::new(keys.chain([local]), tokens.unwrap_or_default())
    }

    /// Returns whether every client may use the same tools.
    pub(crate) fn is_same_for_all(&self) -> bool {
        self.clients.values().all(|rules| *rules == self.others)
    }

    /// Returns whether the client may use a tool with these names.
    pub fn permits(&self, client: &Principal, tool: &ItemNames) -> bool {
        tool.are_permitted_by(self.clients.get(client.id()).unwrap_or(&self.others))
    }

    /// Looks up a tool by its offered name for a client; `None` for an unknown tool and for a tool that
    /// the client may not use.
    pub fn find<T: AsRef<ItemNames>>(
        &self,
        client: &Principal,
        tool: &str,
        lookup: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        // The lookup comes first, so that both cases do the same work.
        lookup(tool).filter(|tool| self.permits(client, tool.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_host::config::NameStyle;
    use serde_json::json;

    use super::*;

    const TOOLS: [&str; 4] = ["files.read", "files.write", "files.write_all", "git.log"];

    fn rules(allow: Option<&[&str]>, deny: &[&str]) -> ToolFilter {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ToolFilter { allow: allow.map(owned), deny: owned(deny), ..ToolFilter::default() }
    }

    fn policy() -> ToolPolicy {
        let reader = rules(Some(&["files.*"]), &["*write*"]);
        let clients = [("reader", reader), ("nobody", rules(Some(&[]), &[]))];
        let clients = clients.map(|(name, rules)| (Principal::new(name), rules));
        ToolPolicy::new(clients, rules(None, &["files.write_all"]))
    }

    fn names(tool: &str) -> ItemNames {
        ItemNames::from_offered(NameStyle::Prefixed, tool.split('.').next().unwrap(), tool)
    }

    fn permitted(client: &str) -> Vec<&'static str> {
        let client = Principal::new(client);
        TOOLS.into_iter().filter(|tool| policy().permits(&client, &names(tool))).collect()
    }

    #[test]
    fn a_client_has_its_own_rules_and_every_other_client_the_common_ones() {
        assert_eq!(permitted("reader"), ["files.read"]);
        assert!(permitted("nobody").is_empty());
        assert_eq!(permitted("ann"), ["files.read", "files.write", "git.log"]);
        assert_eq!(permitted("Reader"), permitted("ann"));
        let all = ToolPolicy::default();
        assert!(TOOLS.iter().all(|tool| all.permits(&Principal::local_user(), &names(tool))));
    }

    #[test]
    fn the_policy_of_the_configuration_has_the_rules_of_its_clients() {
        let serve = json!({"auth": {
            "apiKeys": [{"principal": "ci", "sha256": "0".repeat(64), "allow": ["git.*"]}],
            "oauth": {"issuer": "https://a.b", "audience": "https://a.b", "jwksUrl": "https://a.b",
                "deny": ["git.*"]},
        }});
        let policy = ToolPolicy::from_config(&crate::test_config::serve(&serve));
        let permits = |client: &str| {
            ["git.log", "files.read"]
                .map(|tool| policy.permits(&Principal::new(client), &names(tool)))
        };
        assert_eq!(permits("ci"), [true, false]);
        assert_eq!(permits("oauth:ci"), [false, true]);
        assert_eq!(permits("local"), [true, true]);
    }

    /// Attack: remote | a client calls a tool that is denied to the client, and compares the response
    /// with the response to an unknown tool | the lookup finds neither | Isolation
    #[test]
    fn a_denied_tool_is_found_as_little_as_an_unknown_one() {
        let find = |client: &str, tool: &str| {
            policy().find(&Principal::new(client), tool, |name| {
                TOOLS.contains(&name).then(|| names(name))
            })
        };
        assert_eq!(find("reader", "files.write"), find("reader", "files.unknown"));
        assert_eq!(find("reader", "files.write"), None);
        assert_eq!(find("reader", "files.read"), Some(names("files.read")));
        for spelling in ["files.Write", "files.write ", "FILES.write", "files.write\0", "write"] {
            assert_eq!(find("reader", spelling), None, "{spelling:?}");
        }
    }
}

//! Guard settings: scanned content and the action on findings.

use serde::Serialize;

/// The action on a guard finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GuardMode {
    /// Content is not scanned.
    #[default]
    Off,
    /// Findings are reported and the content passes.
    Flag,
    /// Findings are reported and the content is withheld.
    Refuse,
}

/// The guard mode of each kind of content. Default: off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GuardModes {
    /// Mode for definitions of tools, prompts and resources and for instructions, on every read.
    pub definitions: GuardMode,
    /// Mode for tool arguments, before they are sent.
    pub arguments: GuardMode,
    /// Mode for results and errors of tools, prompts and resources, before the application receives
    /// them.
    pub results: GuardMode,
}

impl GuardModes {
    /// Returns the same mode for all kinds of content.
    pub(crate) fn all(mode: GuardMode) -> Self {
        Self { definitions: mode, arguments: mode, results: mode }
    }

    /// Returns whether each mode is at least as strict as in `other`.
    pub fn covers(self, other: Self) -> bool {
        let Self { definitions, arguments, results } = self;
        definitions >= other.definitions && arguments >= other.arguments && results >= other.results
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::Config;
    use crate::variables::environment::Environment;

    fn guards(host: &Value, one: &Value) -> Result<[GuardModes; 2], String> {
        let servers = json!({"one": {"command": "a", "guard": one}, "two": {"command": "b"}});
        let file = json!({"host": {"guard": host}, "servers": servers});
        let env = Environment::default();
        let config = Config::from_value(&file, "mcp.json", "/".as_ref(), &env);
        let config = config.map_err(|error| error.to_string())?;
        Ok(["one", "two"].map(|name| config.servers[name].guard))
    }

    #[test]
    fn a_single_mode_is_for_everything_and_the_host_gives_what_a_server_omits() {
        let [host, two] = guards(&json!("flag"), &json!({"results": "refuse"})).unwrap();
        assert_eq!(two, GuardModes::all(GuardMode::Flag));
        assert_eq!(host, GuardModes { results: GuardMode::Refuse, ..two });
        let [one, two] = guards(&json!({"arguments": "flag"}), &json!("off")).unwrap();
        assert_eq!(one, GuardModes::default());
        assert_eq!(two, GuardModes { arguments: GuardMode::Flag, ..GuardModes::default() });
    }

    #[test]
    fn an_unknown_mode_is_refused_with_its_place() {
        let error = guards(&json!("block"), &json!("off")).unwrap_err();
        assert!(error.contains("host.guard"), "{error}");
        let error = guards(&json!("off"), &json!({"results": "no"})).unwrap_err();
        assert!(error.contains("servers.one.guard"), "{error}");
    }
    #[test]
    fn an_unknown_part_is_refused_and_named() {
        for name in ["result", "Results", "argument"] {
            let misspelled = json!({"definitions": "flag", name: "refuse"});
            let error = guards(&json!("off"), &misspelled).unwrap_err();
            assert!(error.contains(&format!("servers.one.guard.{name}: unknown key")), "{error}");
            let error = guards(&misspelled, &json!("off")).unwrap_err();
            assert!(error.contains(&format!("host.guard.{name}: unknown key")), "{error}");
        }
    }
}

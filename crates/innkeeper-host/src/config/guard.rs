//! Whether what passes is looked at for attacks, and what becomes of what looks like one.

use serde::Serialize;

/// What is done about what looks like an attack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GuardMode {
    /// Nothing is looked at.
    #[default]
    Off,
    /// It is told and passes.
    Flag,
    /// It is told and held back.
    Refuse,
}

/// What is looked at, each with what is done about it. Default: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GuardModes {
    /// Tools, prompts, resources and instructions, whenever they are read.
    pub definitions: GuardMode,
    /// Arguments of tools, before they are sent.
    pub arguments: GuardMode,
    /// Results and errors of tools, prompts and resources, before they are given to the application.
    pub results: GuardMode,
}

impl GuardModes {
    /// The same for everything.
    pub(super) fn all(mode: GuardMode) -> Self {
        Self { definitions: mode, arguments: mode, results: mode }
    }

    /// Whether each part is looked at no less strictly than by the other.
    pub(crate) fn covers(self, other: Self) -> bool {
        let Self { definitions, arguments, results } = self;
        definitions >= other.definitions && arguments >= other.arguments && results >= other.results
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::{Config, Environment};

    fn guards(host: &Value, one: &Value) -> Result<[GuardModes; 2], String> {
        let servers = json!({"one": {"command": "a", "guard": one}, "two": {"command": "b"}});
        let file = json!({"host": {"guard": host}, "servers": servers});
        let env = Environment::default();
        let config = Config::from_value(&file, "mcp.json", "/".as_ref(), &env);
        let config = config.map_err(|error| error.to_string())?;
        Ok(["one", "two"].map(|name| config.servers[name].guard))
    }

    #[test]
    fn one_word_is_for_everything_and_what_a_server_does_not_say_the_host_does() {
        let [one, two] = guards(&json!("flag"), &json!({"results": "refuse"})).unwrap();
        assert_eq!(two, GuardModes::all(GuardMode::Flag));
        assert_eq!(one, GuardModes { results: GuardMode::Refuse, ..two });
        let [one, two] = guards(&json!({"arguments": "flag"}), &json!("off")).unwrap();
        assert_eq!(one, GuardModes::default());
        assert_eq!(two, GuardModes { arguments: GuardMode::Flag, ..GuardModes::default() });
    }

    #[test]
    fn another_word_is_refused_with_its_place() {
        let error = guards(&json!("block"), &json!("off")).unwrap_err();
        assert!(error.contains("host.guard"), "{error}");
        let error = guards(&json!("off"), &json!({"results": "no"})).unwrap_err();
        assert!(error.contains("servers.one.guard"), "{error}");
    }
    #[test]
    fn a_part_that_there_is_not_is_refused_and_named() {
        for name in ["result", "Results", "argument"] {
            let slip = json!({"definitions": "flag", name: "refuse"});
            let error = guards(&json!("off"), &slip).unwrap_err();
            assert!(error.contains(&format!("servers.one.guard.{name}: unknown key")), "{error}");
            let error = guards(&slip, &json!("off")).unwrap_err();
            assert!(error.contains(&format!("host.guard.{name}: unknown key")), "{error}");
        }
    }
}

//! Parser of the fixture server's command line.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::switch_table::{SWITCHES, Switch, SwitchKind};

/// The switches of the command line by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Switches(BTreeMap<&'static str, String>);

impl Switches {
    /// Parses `--switch`, `--switch VALUE` and `--switch=VALUE`; the last value of a repeated
    /// switch applies.
    pub(super) fn parse(args: Vec<String>) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let (name, mut value) = match arg.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (arg, None),
            };
            let switch = SWITCHES
                .iter()
                .find(|switch| switch.name == name)
                .ok_or_else(|| format!("unknown switch `{name}`"))?;
            if switch.kind != SwitchKind::Flag && value.is_none() {
                value = args.next();
            }
            values.insert(switch.name, check_value(switch, value)?);
        }
        Ok(Self(values))
    }

    /// Whether the command line has the switch.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// Returns the value of a switch, empty for a flag.
    ///
    /// # Panics
    ///
    /// If the table has no such switch: a misspelt name must not count as "not given".
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        assert!(SWITCHES.iter().any(|switch| switch.name == name), "`{name}` is not in the table");
        self.0.get(name).map(String::as_str)
    }

    /// Returns the value of a numeric switch.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.value(name)?.parse().ok()
    }

    /// Returns the value of a counter switch; 0 if absent or negative.
    pub(super) fn count(&self, name: &str) -> usize {
        self.number(name).and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
    }

    pub(super) fn json(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.value(name)?).ok()
    }

    /// Returns the duration of a switch in milliseconds; zero if absent.
    pub(super) fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.count(name) as u64)
    }

    /// The message of a requested error, or the default message.
    pub(super) fn error_text<'t>(&'t self, default: &'t str) -> &'t str {
        self.value("--error-text").unwrap_or(default)
    }

    /// The name of this server in journals, resource URIs and `serverInfo`.
    pub(super) fn server_name(&self) -> &str {
        self.value("--name").unwrap_or("fx")
    }
}

fn check_value(switch: &Switch, value: Option<String>) -> Result<String, String> {
    let name = switch.name;
    match (switch.kind, value) {
        (SwitchKind::Flag, None) => Ok(String::new()),
        (SwitchKind::Flag, Some(_)) => Err(format!("`{name}` takes no value")),
        (
            SwitchKind::Number | SwitchKind::Text | SwitchKind::Json | SwitchKind::Choice(_),
            None,
        ) => Err(format!("`{name}` needs a value")),
        (SwitchKind::Json, Some(value)) => match serde_json::from_str::<Value>(&value) {
            Ok(_) => Ok(value),
            Err(error) => Err(format!("`{name}` needs JSON: {error}")),
        },
        (SwitchKind::Text, Some(value)) => Ok(value),
        (SwitchKind::Number, Some(value)) => match value.parse::<i64>() {
            Ok(_) => Ok(value),
            Err(_) => Err(format!("`{name}` needs a number, not `{value}`")),
        },
        (SwitchKind::Choice(choices), Some(value)) if choices.contains(&value.as_str()) => {
            Ok(value)
        }
        (SwitchKind::Choice(choices), Some(value)) => {
            Err(format!("`{name}` is one of {}, not `{value}`", choices.join(", ")))
        }
    }
}

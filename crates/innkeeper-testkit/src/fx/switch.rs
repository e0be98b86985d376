//! Reading the fixture server's command line against its table of switches.

use std::collections::BTreeMap;
use std::time::Duration;

use super::table::{Kind, Switch, TABLE};

/// The switches given, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Switches(BTreeMap<&'static str, String>);

impl Switches {
    /// Reads `--switch`, `--switch VALUE` and `--switch=VALUE`; the last of a repeated one counts.
    pub(super) fn parse(args: Vec<String>) -> Result<Self, String> {
        let mut given = BTreeMap::new();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let (name, mut value) = match arg.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (arg, None),
            };
            let switch = TABLE
                .iter()
                .find(|switch| switch.name == name)
                .ok_or_else(|| format!("unknown switch `{name}`"))?;
            if switch.kind != Kind::Flag && value.is_none() {
                value = args.next();
            }
            given.insert(switch.name, checked(switch, value)?);
        }
        Ok(Self(given))
    }

    /// Whether the switch was given.
    pub(super) fn on(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    /// The value of a switch, empty for a flag.
    ///
    /// # Panics
    ///
    /// When the table has no such switch: a misspelt name must not read as "not given".
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        assert!(TABLE.iter().any(|switch| switch.name == name), "`{name}` is not in the table");
        self.0.get(name).map(String::as_str)
    }

    /// The value of a numeric switch.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }

    /// The value of a numeric switch that counts something; 0 when not given or negative.
    pub(super) fn count(&self, name: &str) -> usize {
        self.number(name).and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
    }

    /// The value of a switch given in milliseconds; zero when not given.
    pub(super) fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.count(name) as u64)
    }

    /// What this server is called in journals, resource addresses and its own introduction.
    pub(super) fn server(&self) -> &str {
        self.text("--name").unwrap_or("fx")
    }
}

fn checked(switch: &Switch, value: Option<String>) -> Result<String, String> {
    let name = switch.name;
    match (switch.kind, value) {
        (Kind::Flag, None) => Ok(String::new()),
        (Kind::Flag, Some(_)) => Err(format!("`{name}` takes no value")),
        (Kind::Number | Kind::Text | Kind::OneOf(_), None) => {
            Err(format!("`{name}` needs a value"))
        }
        (Kind::Text, Some(value)) => Ok(value),
        (Kind::Number, Some(value)) => match value.parse::<i64>() {
            Ok(_) => Ok(value),
            Err(_) => Err(format!("`{name}` needs a number, not `{value}`")),
        },
        (Kind::OneOf(words), Some(value)) if words.contains(&value.as_str()) => Ok(value),
        (Kind::OneOf(words), Some(value)) => {
            Err(format!("`{name}` is one of {}, not `{value}`", words.join(", ")))
        }
    }
}

//! A setting of `serve` with its source: an option, a variable of the environment, or the default.

use std::fmt::Display;
use std::time::Duration;

use innkeeper_host::Environment;
use serde_json::{Value, json};

use crate::exit::CliError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueSource {
    Option(&'static str),
    Variable(&'static str),
    Default,
}

impl ValueSource {
    fn name(self) -> &'static str {
        match self {
            Self::Option(name) | Self::Variable(name) => name,
            Self::Default => "default",
        }
    }
}

/// A value with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting<T> {
    pub(super) value: T,
    pub(super) source: ValueSource,
}

impl<T> Setting<T> {
    pub(super) fn json(&self, show: impl FnOnce(&T) -> Value) -> Value {
        json!({ "value": show(&self.value), "source": self.source.name() })
    }
}

pub(super) fn default<T>(value: T) -> Setting<T> {
    Setting { value, source: ValueSource::Default }
}

/// Returns the value of a variable; an empty variable counts as absent.
pub(super) fn variable<T, E: Display>(
    environment: &Environment,
    name: &'static str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<Setting<T>>, CliError> {
    let Some(text) = environment.get(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    match parse(text) {
        Ok(value) => Ok(Some(Setting { value, source: ValueSource::Variable(name) })),
        Err(problem) => Err(CliError::usage(format!("variable `{name}`: {problem}"))
            .with_hint("correct the variable, or remove it")),
    }
}

pub(super) fn parse_bool(text: &str) -> Result<bool, &'static str> {
    match &*text.to_ascii_lowercase() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("the value must be `true`, `1`, `yes` or `on`, or `false`, `0`, `no` or `off`"),
    }
}

/// Maximum time in a variable: a year.
const MAX_SECONDS: u64 = 365 * 24 * 60 * 60;

pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| format!("the value must be a number of seconds from 1 to {MAX_SECONDS}"))
}

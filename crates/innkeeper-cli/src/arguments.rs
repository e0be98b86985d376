//! From what was typed to the arguments of a tool: `--args` and `key=value`, typed by its schema.

mod distinct;
mod expected;
mod given;
#[cfg(test)]
mod tests;

pub(crate) use given::{Given, GivenError, read_given};

use std::str::FromStr;

use indexmap::IndexMap;
use serde_json::Value;
use serde_json::value::RawValue;

use expected::{Expected, Key};

/// Arguments in the order they were given, each as JSON text, so that no number loses digits.
pub(crate) type Arguments = IndexMap<String, Box<RawValue>>;

/// One `key=value` as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) text: String,
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        match typed.split_once('=') {
            Some(("", _)) => Err("expected key=value with a key before the `=`".to_owned()),
            Some((key, text)) => Ok(Self { key: key.to_owned(), text: text.to_owned() }),
            None => Err(format!("expected key=value, found `{typed}` without `=`")),
        }
    }
}

/// Why a `key=value` does not fit the tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("argument `{key}` is not known to this tool")]
    Unknown {
        key: String,
        /// The known key that looks most like it.
        nearest: Option<String>,
        known: Vec<String>,
    },
    #[error("argument `{key}` must be {expected}")]
    Unreadable { key: String, expected: String },
    #[error("argument `{key}` is given more than once")]
    Repeated { key: String },
    #[error("argument `{key}` is missing")]
    Missing { key: String },
}

/// Types every pair by the input schema of its tool; all problems at once.
///
/// A key that occurs more than once makes an array where the schema takes one. Where nothing is
/// wrong with a pair, what is missing beside `given` is left to the call to say.
pub(crate) fn typed(
    schema: &Value,
    pairs: &[Pair],
    given: &Arguments,
) -> Result<Arguments, Vec<Problem>> {
    let mut texts: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for pair in pairs {
        texts.entry(&pair.key).or_default().push(&pair.text);
    }
    let mut arguments = Arguments::new();
    let mut problems = Vec::new();
    for (key, texts) in texts {
        match read(schema, key, &texts) {
            Ok(value) => drop(arguments.insert(key.to_owned(), value)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        return Ok(arguments);
    }
    let is_there = |key: &str| given.contains_key(key) || pairs.iter().any(|pair| pair.key == key);
    let missing = expected::required(schema).into_iter().filter(|key| !is_there(key));
    problems.extend(missing.map(|key| Problem::Missing { key: key.to_owned() }));
    Err(problems)
}

/// Takes the arguments of `given` and lets those of `pairs` add to them or replace them.
pub(crate) fn merged(mut given: Arguments, pairs: Arguments) -> Arguments {
    given.extend(pairs);
    given
}

fn read(schema: &Value, key: &str, texts: &[&str]) -> Result<Box<RawValue>, Problem> {
    let expected = match expected::find(schema, key) {
        Key::Known(expected) => expected,
        Key::Unknown { known } => {
            let nearest = nearest(key, &known);
            return Err(Problem::Unknown { key: key.to_owned(), nearest, known });
        }
    };
    let unreadable = |expected: &Expected| Problem::Unreadable {
        key: key.to_owned(),
        expected: expected.to_string(),
    };
    if let [text] = texts {
        return expected.read(text).ok_or_else(|| unreadable(&expected));
    }
    let Some(item) = expected.items() else {
        return Err(Problem::Repeated { key: key.to_owned() });
    };
    let items: Option<Vec<_>> = texts.iter().map(|text| item.read(text)).collect();
    let items = items.ok_or_else(|| unreadable(item))?;
    serde_json::value::to_raw_value(&items).map_err(|_| unreadable(&expected))
}

/// The known key nearest to a mistyped one, if any is near.
fn nearest(key: &str, known: &[String]) -> Option<String> {
    /// Below this, two words have too little in common to be taken for a slip of the hand.
    const ALIKE: f64 = 0.6;
    known
        .iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(key, name), name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.clone())
}

//! Parses tool arguments from `--args` and `key=value` pairs.

mod duplicate_keys;
mod expected_type;
mod parameter;
mod source;
#[cfg(test)]
mod tests;
mod type_text;

pub(crate) use parameter::Parameter;
pub(crate) use source::{ArgumentSource, ArgumentSourceError, read_arguments};
pub(crate) use type_text::type_text;

use std::str::FromStr;

use indexmap::IndexMap;
use serde_json::Value;
use serde_json::value::RawValue;

use expected_type::{ExpectedType, PropertyLookup};

/// Arguments in their order, each as JSON text, so that numbers keep all digits.
pub(crate) type ArgumentMap = IndexMap<String, Box<RawValue>>;

/// A `key=value` argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyValuePair {
    pub(crate) key: String,
    pub(crate) value: String,
}

impl FromStr for KeyValuePair {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        match typed.split_once('=') {
            Some(("", _)) => Err("expected key=value with a key before the `=`".to_owned()),
            Some((key, text)) => Ok(Self { key: key.to_owned(), value: text.to_owned() }),
            None => Err(format!("expected key=value, but `{typed}` has no `=`")),
        }
    }
}

/// Why a `key=value` pair is invalid for the tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArgumentError {
    #[error("unknown argument `{key}`")]
    Unknown {
        key: String,
        /// The most similar known key.
        suggestion: Option<String>,
        known_keys: Vec<String>,
    },
    #[error("argument `{key}` must be {expected}")]
    InvalidValue { key: String, expected: String },
    #[error("argument `{key}` is given more than once")]
    DuplicateKey { key: String },
    #[error("argument `{key}` is missing")]
    Missing { key: String },
}

/// Converts all pairs to the types of the tool's input schema; returns all errors.
///
/// A repeated key becomes an array if the schema allows an array. If all pairs are valid, missing
/// arguments are not reported here but by the call.
pub(crate) fn parse_pairs(
    schema: &Value,
    pairs: &[KeyValuePair],
    input: &ArgumentMap,
) -> Result<ArgumentMap, Vec<ArgumentError>> {
    let mut texts: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for pair in pairs {
        texts.entry(&pair.key).or_default().push(&pair.value);
    }
    let mut arguments = ArgumentMap::new();
    let mut problems = Vec::new();
    for (key, texts) in texts {
        match parse_value(schema, key, &texts) {
            Ok(value) => drop(arguments.insert(key.to_owned(), value)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        return Ok(arguments);
    }
    let is_there = |key: &str| input.contains_key(key) || pairs.iter().any(|pair| pair.key == key);
    let missing = expected_type::required_keys(schema).into_iter().filter(|key| !is_there(key));
    problems.extend(missing.map(|key| ArgumentError::Missing { key: key.to_owned() }));
    Err(problems)
}

/// Merges pairs into the arguments of `--args`; a pair overrides an argument of the same name.
pub(crate) fn merge(mut arguments: ArgumentMap, pairs: ArgumentMap) -> ArgumentMap {
    arguments.extend(pairs);
    arguments
}

fn parse_value(schema: &Value, key: &str, texts: &[&str]) -> Result<Box<RawValue>, ArgumentError> {
    let expected = match expected_type::find_property(schema, key) {
        PropertyLookup::Known(expected) => expected,
        PropertyLookup::Unknown { known_keys: keys } => {
            let nearest = nearest_name(key, keys.iter().map(String::as_str));
            let suggestion = nearest.map(str::to_owned);
            return Err(ArgumentError::Unknown {
                key: key.to_owned(),
                suggestion,
                known_keys: keys,
            });
        }
    };
    let unreadable = |expected: &ExpectedType| ArgumentError::InvalidValue {
        key: key.to_owned(),
        expected: expected.to_string(),
    };
    if let [text] = texts {
        return expected.parse(text).ok_or_else(|| unreadable(&expected));
    }
    let Some(item) = expected.items() else {
        return Err(ArgumentError::DuplicateKey { key: key.to_owned() });
    };
    let items: Option<Vec<_>> = texts.iter().map(|text| item.parse(text)).collect();
    let items = items.ok_or_else(|| unreadable(item))?;
    serde_json::value::to_raw_value(&items).map_err(|_| unreadable(&expected))
}

/// Returns the most similar name, if one is similar enough.
pub(crate) fn nearest_name<'n>(
    name: &str,
    known_names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    /// Minimum similarity of a suggestion; less similar words are rarely typos.
    const MIN_SIMILARITY: f64 = 0.6;
    known_names
        .into_iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(name, known), known))
        .filter(|(alike, _)| *alike >= MIN_SIMILARITY)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

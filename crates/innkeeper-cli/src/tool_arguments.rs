//! Converts the arguments of the command line to the types of a tool's input schema.

mod duplicate_keys;
mod expected_type;
mod nested;
mod parameter;
mod source;
#[cfg(test)]
mod tests;
mod type_text;
mod typed;

pub(crate) use parameter::Parameter;
pub(crate) use source::{ArgumentInput, ArgumentSourceError};
pub(crate) use type_text::type_text;
pub(crate) use typed::TypedArgument;

use indexmap::IndexMap;
use innkeeper_host::config::name::closest;
use serde_json::Value;
use serde_json::value::RawValue;

use expected_type::{ExpectedType, PropertyLookup};
use nested::NestedArguments;
use source::ArgumentValue;

/// Arguments in their order, each as JSON text, so that numbers keep all digits.
pub(crate) type ArgumentMap = IndexMap<String, Box<RawValue>>;

/// Why an argument is invalid for the tool.
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

impl ArgumentInput {
    /// Converts all arguments to the types of the input schema; returns all errors.
    ///
    /// A pair adds to the JSON object or replaces its member. A key with dots is a member of nested
    /// objects if the schema has no argument of this name. A repeated key, or one text that is
    /// no list, becomes a list if the schema allows a list; arrays among repeated values are joined. If all pairs are valid, missing
    /// arguments are not reported here but by the call.
    pub(crate) fn convert(mut self, schema: &Value) -> Result<ArgumentMap, Vec<ArgumentError>> {
        let mut values: IndexMap<String, Vec<ArgumentValue>> = IndexMap::new();
        for (key, value) in self.pairs {
            values.entry(key).or_default().push(value);
        }
        let mut arguments = ArgumentMap::new();
        let mut nested = NestedArguments::default();
        let mut problems = Vec::new();
        for (key, values) in &values {
            let (path, expected) = match expected_type::find_property(schema, key) {
                PropertyLookup::Known(expected) => (vec![key.as_str()], expected),
                PropertyLookup::Unknown { known_keys } => {
                    match expected_type::find_nested(schema, key) {
                        Some(found) => found,
                        None => {
                            problems.push(unknown_argument(key, known_keys));
                            continue;
                        }
                    }
                }
            };
            match (convert_values(&expected, key, values), &path[..]) {
                (Ok(value), [_]) => drop(arguments.insert(key.clone(), value)),
                (Ok(value), path) => {
                    if !nested.insert(path, value) {
                        problems.push(ArgumentError::DuplicateKey { key: key.clone() });
                    }
                }
                (Err(problem), _) => problems.push(problem),
            }
        }
        for (key, value) in nested.into_members() {
            if arguments.contains_key(&key) || self.object.contains_key(&key) {
                problems.push(ArgumentError::DuplicateKey { key });
            } else {
                arguments.insert(key, value);
            }
        }
        if problems.is_empty() {
            self.object.extend(arguments);
            return Ok(self.object);
        }
        let missing = expected_type::required_keys(schema).into_iter().filter(|key| {
            !self.object.contains_key(*key)
                && !values.keys().any(|given| given.split('.').next() == Some(*key))
        });
        problems.extend(missing.map(|key| ArgumentError::Missing { key: key.to_owned() }));
        Err(problems)
    }
}

fn unknown_argument(key: &str, known_keys: Vec<String>) -> ArgumentError {
    let nearest = closest(key, known_keys.iter().map(String::as_str));
    let suggestion = nearest.map(str::to_owned);
    ArgumentError::Unknown { key: key.to_owned(), suggestion, known_keys }
}

fn convert_values(
    expected: &ExpectedType,
    key: &str,
    values: &[ArgumentValue],
) -> Result<Box<RawValue>, ArgumentError> {
    let invalid = |expected: &ExpectedType| ArgumentError::InvalidValue {
        key: key.to_owned(),
        expected: expected.describe(key),
    };
    if let [value] = values {
        let converted = match value {
            ArgumentValue::Text(text) => {
                expected.parse(text).or_else(|| expected.parse_single_item(text))
            }
            ArgumentValue::FileText(text) => expected.parse(text),
            ArgumentValue::Json(json) => Some(json.clone()),
        };
        return converted.ok_or_else(|| invalid(expected));
    }
    let Some(item) = expected.items() else {
        return Err(ArgumentError::DuplicateKey { key: key.to_owned() });
    };
    let items: Option<Vec<_>> = values.iter().map(|value| convert_items(item, value)).collect();
    let items = items.ok_or_else(|| invalid(item))?.concat();
    serde_json::value::to_raw_value(&items).map_err(|_| invalid(expected))
}

/// Converts one of several values of a list: the items of an array, or one item. An array is one
/// item if the items are arrays.
fn convert_items(item: &ExpectedType, value: &ArgumentValue) -> Option<Vec<Box<RawValue>>> {
    let text = match value {
        ArgumentValue::Text(text) | ArgumentValue::FileText(text) => text,
        ArgumentValue::Json(json) => json.get(),
    };
    if item.items().is_none()
        && let Ok(items) = serde_json::from_str(text)
    {
        return Some(items);
    }
    let single = match value {
        ArgumentValue::Text(text) | ArgumentValue::FileText(text) => item.parse(text)?,
        ArgumentValue::Json(json) => json.clone(),
    };
    Some(vec![single])
}

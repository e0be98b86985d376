//! The differences between two JSON values, field by field.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::value::RawValue;

use crate::json::{Document, MAX_DEPTH, Node, Value, Values};

/// Maximum number of characters of a value in a difference.
const MAX_SHOWN_CHARS: usize = 200;

/// Number of characters before the first difference of two strings that are shown.
const CONTEXT_CHARS: usize = 40;

/// A field with two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The JSON pointer of the field; empty for the whole value.
    pub path: String,
    /// The recorded value as JSON, shortened; `None` if the field was not there.
    pub expected: Option<String>,
    /// The new value as JSON, shortened; `None` if the field is not there.
    pub actual: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the value" } else { &self.path };
        match (&self.expected, &self.actual) {
            (Some(expected), Some(actual)) => {
                write!(f, "`{path}` was {expected}, is now {actual}")
            }
            (Some(expected), None) => write!(f, "`{path}` was {expected}, is missing now"),
            (None, Some(actual)) => write!(f, "`{path}` is new: {actual}"),
            (None, None) => write!(f, "`{path}` differs"),
        }
    }
}

/// Returns the differences in the order of the recorded value, at most `max`. `is_ignored` gets the
/// JSON pointer of a field.
pub fn differences(
    expected: &RawValue,
    actual: &RawValue,
    is_ignored: &dyn Fn(&str) -> bool,
    max: usize,
) -> Vec<Difference> {
    let mut search = Search { is_ignored, max, found: Vec::new() };
    if expected.get() != actual.get() {
        let [expected, actual] = [expected, actual].map(Document::new);
        search.compare(expected.root(), actual.root(), &mut String::new(), 0);
    }
    search.found
}

struct Search<'s> {
    is_ignored: &'s dyn Fn(&str) -> bool,
    max: usize,
    found: Vec<Difference>,
}

impl Search<'_> {
    fn compare(&mut self, expected: Value<'_>, actual: Value<'_>, path: &mut String, depth: usize) {
        if self.found.len() >= self.max
            || expected.text() == actual.text()
            || (self.is_ignored)(path)
        {
            return;
        }
        let nodes = (depth < MAX_DEPTH).then(|| (expected.node(), actual.node()));
        match nodes {
            Some((Node::Object(expected), Node::Object(actual))) => {
                self.compare_members(expected, &actual, path, depth);
            }
            Some((Node::Array(expected), Node::Array(actual))) => {
                self.compare_items(expected, actual, path, depth);
            }
            Some((Node::String(expected), Node::String(actual))) => {
                if expected != actual {
                    let [expected, actual] = shown_strings(&expected, &actual);
                    self.push(path, Some(expected), Some(actual));
                }
            }
            Some((Node::Literal(_), Node::Literal(_))) | None => {
                self.push(path, Some(shown(expected)), Some(shown(actual)));
            }
            Some(_) => {
                self.push(path, Some(shown(expected)), Some(shown(actual)));
            }
        }
    }

    fn compare_members(
        &mut self,
        expected: Vec<(String, Value<'_>)>,
        actual: &[(String, Value<'_>)],
        path: &mut String,
        depth: usize,
    ) {
        let mut actual_members: BTreeMap<&str, Value<'_>> =
            actual.iter().map(|(key, value)| (&**key, *value)).collect();
        for (key, value) in expected {
            let actual = actual_members.remove(&*key);
            self.at(path, &key, |search, path| match actual {
                Some(actual) => search.compare(value, actual, path, depth + 1),
                None => search.push(path, Some(shown(value)), None),
            });
        }
        for (key, value) in actual {
            if actual_members.remove(&**key).is_some() {
                self.at(path, key, |search, path| search.push(path, None, Some(shown(*value))));
            }
        }
    }

    fn compare_items(
        &mut self,
        mut expected: Values<'_>,
        mut actual: Values<'_>,
        path: &mut String,
        depth: usize,
    ) {
        for at in 0_usize.. {
            let items = (expected.next(), actual.next());
            if let (None, None) = items {
                break;
            }
            self.at(path, &at.to_string(), |search, path| match items {
                (Some(expected), Some(actual)) => search.compare(expected, actual, path, depth + 1),
                (expected, actual) => search.push(path, expected.map(shown), actual.map(shown)),
            });
        }
    }

    fn at(&mut self, path: &mut String, token: &str, then: impl FnOnce(&mut Self, &mut String)) {
        let length = path.len();
        path.push('/');
        path.push_str(&token.replace('~', "~0").replace('/', "~1"));
        then(self, path);
        path.truncate(length);
    }

    fn push(&mut self, path: &str, expected: Option<String>, actual: Option<String>) {
        if self.found.len() < self.max && !(self.is_ignored)(path) {
            self.found.push(Difference { path: path.to_owned(), expected, actual });
        }
    }
}

fn shown(value: Value<'_>) -> String {
    shorten(&value.canonical())
}

pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns both strings from a little before their first difference on.
pub(crate) fn shown_strings(expected: &str, actual: &str) -> [String; 2] {
    let same = expected.chars().zip(actual.chars()).take_while(|(left, right)| left == right);
    let skipped = same.count().saturating_sub(CONTEXT_CHARS);
    [expected, actual].map(|text| {
        let rest: String = text.chars().skip(skipped).collect();
        let start = if skipped == 0 { "" } else { "…" };
        let end = if rest.chars().count() > MAX_SHOWN_CHARS { "…" } else { "" };
        let rest: String = rest.chars().take(MAX_SHOWN_CHARS).collect();
        serde_json::Value::from(format!("{start}{rest}{end}")).to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn found(expected: &str, actual: &str) -> Vec<String> {
        let found = differences(&raw(expected), &raw(actual), &|path| path == "/id", 10);
        found.iter().map(Difference::to_string).collect()
    }

    #[test]
    fn each_difference_names_its_field_and_both_values() {
        let expected = r#"{"id": 1, "a": {"x/y": [1, 2.0]}, "b": "one", "gone": null}"#;
        let actual = r#"{"a": {"x/y": [1, 2, 3]}, "new": true, "b": "two", "id": 2}"#;
        assert_eq!(
            found(expected, actual),
            [
                "`/a/x~1y/1` was 2.0, is now 2",
                "`/a/x~1y/2` is new: 3",
                "`/b` was \"one\", is now \"two\"",
                "`/gone` was null, is missing now",
                "`/new` is new: true",
            ]
        );
    }

    #[test]
    fn the_order_of_members_and_blanks_are_no_difference() {
        let equal = found(r#"{"a":1,"b":"A"}"#, r#"{ "b": "\u0041", "a": 1 }"#);
        assert_eq!(equal, [""; 0]);
    }

    #[test]
    fn long_strings_are_shown_around_their_first_difference() {
        let [expected, actual] = ["x", "y"].map(|end| format!("\"{}{end}\"", "a".repeat(500)));
        let found = found(&expected, &actual);
        let context = "a".repeat(CONTEXT_CHARS);
        assert_eq!(found, [format!("`the value` was \"…{context}x\", is now \"…{context}y\"")]);
    }
}

//! Rules for arguments that no schema states: depth, NUL in paths and addresses, what is denied.
//!
//! Whether arguments carry an attack cannot be seen from here: code is what some tools are for. What
//! can be stated is checked, before anything is sent.

use innkeeper_protocol::skim;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::config::ToolFilter;
use crate::error::ArgumentProblem;

/// How deep arguments may be nested: what parsers of servers take without special settings.
pub(crate) const DEPTH: usize = 120;

/// Formats of strings that name a file or a place.
const PLACES: [&str; 8] = [
    "\"uri\"",
    "\"uri-reference\"",
    "\"iri\"",
    "\"iri-reference\"",
    "\"url\"",
    "\"path\"",
    "\"file-path\"",
    "\"directory-path\"",
];

/// Names of arguments that say the same.
const NAMES: [&str; 8] = ["path", "paths", "file", "filename", "dir", "directory", "uri", "url"];

/// The rules of one tool.
#[derive(Debug, Default)]
pub(crate) struct ArgumentRules {
    /// Arguments that name a file or a place.
    places: Vec<Box<str>>,
    /// What no text in the arguments may match, as it stands in the configuration.
    denied: Vec<Box<str>>,
}

/// What is wrong with arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) problem: ArgumentProblem,
    /// The line of the configuration that denies it.
    pub(crate) rule: Option<Box<str>>,
}

impl ArgumentRules {
    /// The rules for a tool with this schema.
    pub(crate) fn new(tool: &str, schema: &RawValue, filter: &ToolFilter) -> Self {
        let properties = skim::member(schema.get(), "properties").unwrap_or("{}");
        let places = skim::members(properties).filter(|(name, property)| is_place(name, property));
        let places = places.map(|(name, _)| name.into()).collect();
        Self { places, denied: filter.denied_arguments(tool).map(Into::into).collect() }
    }

    /// The first rule that arguments break.
    pub(crate) fn check(&self, arguments: &Value) -> Option<Broken> {
        let broken = |pointer: String, message: String, rule: Option<Box<str>>| Broken {
            problem: ArgumentProblem { pointer, message },
            rule,
        };
        if is_deeper(arguments, DEPTH) {
            let message = format!("nested more than {DEPTH} levels deep");
            return Some(broken(String::new(), message, None));
        }
        for name in &self.places {
            if arguments.get(&**name).is_some_and(has_nul) {
                let message = "a path or address cannot have a NUL in it".to_owned();
                return Some(broken(pointer_to(name), message, None));
            }
        }
        if self.denied.is_empty() {
            return None;
        }
        let (name, rule) = arguments.as_object()?.iter().find_map(|(name, value)| {
            let rule = self.denied.iter().find(|rule| holds(value, rule))?;
            Some((name, rule))
        })?;
        let message = format!("`tools.denyArguments` has `{rule}`");
        Some(broken(pointer_to(name), message, Some(rule.clone())))
    }
}

/// The JSON pointer to one argument.
pub(crate) fn pointer_to(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn is_place(name: &str, property: &str) -> bool {
    let format = property.starts_with('{').then(|| skim::member(property, "format")).flatten();
    let lower = name.to_ascii_lowercase();
    format.is_some_and(|format| PLACES.contains(&format))
        || NAMES.iter().any(|ending| lower.ends_with(ending))
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => memchr::memchr(0, text.as_bytes()).is_some(),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// Whether a text in the value, at any depth, matches the pattern. The value is not too deep.
fn holds(value: &Value, pattern: &str) -> bool {
    match value {
        Value::String(text) => ToolFilter::matches(pattern, text),
        Value::Array(items) => items.iter().any(|item| holds(item, pattern)),
        Value::Object(members) => members
            .iter()
            .any(|(key, value)| ToolFilter::matches(pattern, key) || holds(value, pattern)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a value is nested more than so many levels deep; looks no deeper than that.
fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(members) => {
            levels == 0 || members.values().any(|value| is_deeper(value, levels - 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(denied: &[&str]) -> ArgumentRules {
        let schema = json!({"properties": {
            "filePath": {"type": "string"}, "text": {}, "where": {"format": "uri"}, "urls": true,
        }});
        let schema = serde_json::value::to_raw_value(&schema).unwrap();
        let denied = denied.iter().map(|rule| (*rule).to_owned()).collect();
        let deny_arguments = [("w*".to_owned(), denied)].into_iter().collect();
        let filter = ToolFilter { deny_arguments, ..ToolFilter::default() };
        ArgumentRules::new("write", &schema, &filter)
    }

    fn problem(rules: &ArgumentRules, arguments: &Value) -> Option<String> {
        rules.check(arguments).map(|broken| broken.problem.to_string())
    }

    /// Proves: TR10.6
    #[test]
    fn code_passes_and_a_nul_in_a_path_or_address_does_not() {
        let rules = rules(&[]);
        let code = "'; DROP TABLE x; -- $(rm -rf /) \u{0} <script>";
        assert_eq!(problem(&rules, &json!({"text": code, "filePath": "a;b"})), None);
        for name in ["filePath", "where"] {
            for value in [json!("a\0"), json!(["a", "\0"])] {
                let words = format!("`/{name}`: a path or address cannot have a NUL in it");
                assert_eq!(problem(&rules, &json!({ name: value })), Some(words));
            }
        }
    }

    /// Proves: TR10.6
    #[test]
    fn a_denied_text_is_refused_wherever_it_stands_and_its_rule_named() {
        let rules = rules(&["*rm -rf*", "/etc/*"]);
        assert_eq!(problem(&rules, &json!({"text": "rm -r", "filePath": "/home/etc/x"})), None);
        let words = "`/text`: `tools.denyArguments` has `*rm -rf*`";
        let deep = json!({"text": {"a": ["sudo rm -rf /"]}});
        assert_eq!(problem(&rules, &deep).as_deref(), Some(words));
        let words = "`/filePath`: `tools.denyArguments` has `/etc/*`";
        assert_eq!(problem(&rules, &json!({"filePath": "/etc/x"})).as_deref(), Some(words));
    }

    #[test]
    fn arguments_may_be_as_deep_as_the_limit_and_no_deeper() {
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(problem(&rules(&[]), &nested(DEPTH)), None);
        let words = format!("nested more than {DEPTH} levels deep");
        assert_eq!(problem(&rules(&[]), &nested(DEPTH + 1)), Some(words));
    }
}

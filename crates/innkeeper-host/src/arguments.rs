//! Argument rules that no schema states: depth, NUL in paths, denied patterns.
//!
//! The host cannot tell whether arguments carry an attack, because some tools take code. The host
//! checks these rules before it sends anything.

use innkeeper_config::ToolFilter;
use innkeeper_protocol::skim;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::Violation;

/// Maximum nesting depth of arguments: the limit of servers' JSON parsers with default settings.
pub(crate) const MAX_ARGUMENT_DEPTH: usize = 120;

/// JSON Schema string formats that denote a file or a URI.
const PATH_FORMATS: [&str; 8] = [
    "\"uri\"",
    "\"uri-reference\"",
    "\"iri\"",
    "\"iri-reference\"",
    "\"url\"",
    "\"path\"",
    "\"file-path\"",
    "\"directory-path\"",
];

/// Argument names, or endings of names, that denote a file or a URI.
const PATH_ARGUMENT_NAMES: [&str; 8] =
    ["path", "paths", "file", "filename", "dir", "directory", "uri", "url"];

#[derive(Debug, Default)]
pub(crate) struct ArgumentRules {
    /// Names of arguments that denote a file or a URI.
    path_arguments: Vec<Box<str>>,
    /// Patterns that no string in the arguments may match, as written in the configuration.
    denied_patterns: Vec<Box<str>>,
}

/// A rule that the arguments break.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RuleViolation {
    pub(crate) problem: Violation,
    /// The pattern of the configuration that denies the argument.
    pub(crate) rule: Option<Box<str>>,
}

impl ArgumentRules {
    pub(crate) fn new(tool: &str, schema: &RawValue, filter: &ToolFilter) -> Self {
        let properties = skim::member(schema.get(), "properties").unwrap_or("{}");
        let path_members =
            skim::members(properties).filter(|(name, property)| is_path_argument(name, property));
        let path_arguments = path_members.map(|(name, _)| name.into()).collect();
        Self {
            path_arguments,
            denied_patterns: filter.denied_arguments(tool).map(Into::into).collect(),
        }
    }

    /// Adds to a problem of arguments that cannot be read that no denied pattern was compared with
    /// them.
    pub(crate) fn unreadable(&self, mut problem: Violation) -> Violation {
        if !self.denied_patterns.is_empty() {
            problem
                .message
                .push_str("; `tools.denyArguments` refuses arguments that it cannot read");
        }
        problem
    }

    /// Returns the first rule that the arguments break.
    pub(crate) fn check(&self, arguments: &Value) -> Option<RuleViolation> {
        if is_deeper_than(arguments, MAX_ARGUMENT_DEPTH) {
            let message = format!("nested deeper than {MAX_ARGUMENT_DEPTH} levels");
            return Some(RuleViolation { problem: Violation::of_whole_value(message), rule: None });
        }
        for name in &self.path_arguments {
            if arguments.get(&**name).is_some_and(has_nul) {
                let message = "a path or address must not contain NUL".to_owned();
                let problem = Violation { pointer: pointer_to(name), message };
                return Some(RuleViolation { problem, rule: None });
            }
        }
        if self.denied_patterns.is_empty() {
            return None;
        }
        let (name, rule) = arguments.as_object()?.iter().find_map(|(name, value)| {
            let mut rules = self.denied_patterns.iter();
            let rule = rules
                .find(|rule| ToolFilter::matches(rule, name) || contains_match(value, rule))?;
            Some((name, rule))
        })?;
        let message = format!("denied by `{rule}` in `tools.denyArguments`");
        let problem = Violation { pointer: pointer_to(name), message };
        Some(RuleViolation { problem, rule: Some(rule.clone()) })
    }
}

/// Returns the JSON pointer to an argument.
pub(crate) fn pointer_to(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn is_path_argument(name: &str, property: &str) -> bool {
    let format = property.starts_with('{').then(|| skim::member(property, "format")).flatten();
    let lower = name.to_ascii_lowercase();
    format.is_some_and(|format| PATH_FORMATS.contains(&format))
        || PATH_ARGUMENT_NAMES.iter().any(|suffix| lower.ends_with(suffix))
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => memchr::memchr(0, text.as_bytes()).is_some(),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// Returns whether a string anywhere in the value matches the pattern. The caller has checked the
/// depth of the value.
fn contains_match(value: &Value, pattern: &str) -> bool {
    match value {
        Value::String(text) => ToolFilter::matches(pattern, text),
        Value::Array(items) => items.iter().any(|item| contains_match(item, pattern)),
        Value::Object(members) => members.iter().any(|(key, value)| {
            ToolFilter::matches(pattern, key) || contains_match(value, pattern)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns whether a value is nested deeper than `levels`; the search stops at that depth.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => {
            levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1))
        }
        Value::Object(members) => {
            levels == 0 || members.values().any(|value| is_deeper_than(value, levels - 1))
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
        rules.check(arguments).map(|violation| violation.problem.to_string())
    }

    /// Proves: TR10.6
    #[test]
    fn code_passes_and_a_nul_in_a_path_or_address_does_not() {
        let rules = rules(&[]);
        let code = "'; DROP TABLE x; -- $(rm -rf /) \u{0} <script>";
        assert_eq!(problem(&rules, &json!({"text": code, "filePath": "a;b"})), None);
        for name in ["filePath", "where"] {
            for value in [json!("a\0"), json!(["a", "\0"])] {
                let message = format!("`/{name}`: a path or address must not contain NUL");
                assert_eq!(problem(&rules, &json!({ name: value })), Some(message));
            }
        }
    }

    /// Attack: model | a denied text stands deep in the arguments | the arguments are rejected, and
    /// the message names the rule | Complete checks
    /// Proves: TR10.6
    #[test]
    fn a_denied_text_is_refused_wherever_it_stands_and_its_rule_named() {
        let rules = rules(&["*rm -rf*", "/etc/*"]);
        assert_eq!(problem(&rules, &json!({"text": "rm -r", "filePath": "/home/etc/x"})), None);
        let message = "`/text`: denied by `*rm -rf*` in `tools.denyArguments`";
        let nested = json!({"text": {"a": ["sudo rm -rf /"]}});
        assert_eq!(problem(&rules, &nested).as_deref(), Some(message));
        let message = "`/filePath`: denied by `/etc/*` in `tools.denyArguments`";
        assert_eq!(problem(&rules, &json!({"filePath": "/etc/x"})).as_deref(), Some(message));
    }

    /// Attack: model | a denied text is the name of an argument, at the top or below, also in a list |
    /// the arguments are rejected, and the message names the rule | Complete checks
    #[test]
    fn a_denied_text_is_refused_as_a_name_at_every_level() {
        let rules = rules(&["/etc/*"]);
        for (arguments, place) in [
            (json!({"/etc/shadow": 1}), "/~1etc~1shadow"),
            (json!({"a": {"/etc/shadow": 1}}), "/a"),
            (json!({"a": [[{"/etc/shadow": null}]]}), "/a"),
        ] {
            let message = format!("`{place}`: denied by `/etc/*` in `tools.denyArguments`");
            assert_eq!(problem(&rules, &arguments), Some(message));
        }
        assert_eq!(problem(&rules, &json!({"etc/shadow": {"x": ["y"]}})), None);
    }

    /// Attack: model | arguments that the host cannot parse | the message says that the denied
    /// patterns refuse them too | Complete checks
    #[test]
    fn arguments_that_cannot_be_read_are_refused_by_the_rules_too() {
        let unreadable = |rules: &ArgumentRules| {
            rules.unreadable(Violation::of_whole_value("cannot be checked".to_owned())).message
        };
        assert!(unreadable(&rules(&["/etc/*"])).contains("`tools.denyArguments` refuses"));
        assert_eq!(unreadable(&rules(&[])), "cannot be checked");
    }

    /// Attack: model | arguments nest one level past the limit | the arguments are rejected | No
    /// unbounded memory
    #[test]
    fn arguments_may_be_as_deep_as_the_limit_and_no_deeper() {
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(problem(&rules(&[]), &nested(MAX_ARGUMENT_DEPTH)), None);
        let message = format!("nested deeper than {MAX_ARGUMENT_DEPTH} levels");
        assert_eq!(problem(&rules(&[]), &nested(MAX_ARGUMENT_DEPTH + 1)), Some(message));
    }
}

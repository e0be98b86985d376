//! Rules that approve calls by their arguments.

use std::fmt;

use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::settings::pattern;

/// Patterns by the names of arguments; `*` matches any sequence of characters.
pub type ArgumentPatterns = IndexMap<String, String>;

/// Returns whether a rule approves arguments, the JSON text that the server gets.
///
/// Each argument needs a pattern that matches its whole value, and each pattern needs its argument.
/// A string is compared without escapes; a number, `true`, `false` and `null` are compared as written. An
/// array, an object, and an argument that is there twice match no pattern. A value with the path
/// segment `..` matches only the same text.
pub(crate) fn approves(rule: &ArgumentPatterns, arguments: &str) -> bool {
    let Ok(Members(members)) = serde_json::from_str(arguments) else { return false };
    members.iter().all(|(name, value)| {
        rule.get(name).zip(text_of(value)).is_some_and(|(pattern, text)| matches(pattern, &text))
    }) && rule.keys().all(|name| members.iter().filter(|(member, _)| member == name).count() == 1)
}

fn matches(pattern: &str, text: &str) -> bool {
    let climbs = text.split(['/', '\\']).any(|segment| segment == "..");
    if climbs { pattern == text } else { pattern::matches(pattern, text) }
}

/// Returns the text of a value that a pattern can match.
fn text_of(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'{' | b'[' => None,
        _ => Some(value.get().to_owned()),
    }
}

/// All members of an object, also those of the same name.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MemberVisitor;

        impl<'de> Visitor<'de> for MemberVisitor {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MemberVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(patterns: &[(&str, &str)]) -> ArgumentPatterns {
        patterns.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    /// Attack: model | a model adds, repeats, escapes, nests or leaves out arguments of a call that a
    /// rule approves | the rule does not approve the call | Approval first
    #[test]
    fn a_rule_approves_only_the_named_arguments_each_once_and_as_a_whole() {
        let rule = rule(&[("path", "/srv/*"), ("mode", "append")]);
        for (arguments, expected) in [
            (r#"{"path": "/srv/a", "mode": "append"}"#, true),
            (r#"{"mode":"append","path":"\/srv\/a"}"#, true),
            (r#"{"pa\u0074h": "/srv/a", "mode": "append"}"#, true),
            (r#"{"path": "/srv/a"}"#, false),
            (r#"{"mode": "append"}"#, false),
            ("{}", false),
            (r#"{"path": "/srv/a", "mode": "append", "follow": "/etc/passwd"}"#, false),
            (r#"{"path": "/srv/a", "mode": "append", "path": "/srv/b"}"#, false),
            (r#"{"path": "/etc/a", "mode": "append", "path": "/srv/b"}"#, false),
            (r#"{"path": "/srv/a", "mode": "append", "p\u0061th": "/srv/b"}"#, false),
            (r#"{"path": "x/srv/a", "mode": "append"}"#, false),
            (r#"{"path": "/srv/a", "mode": "append it"}"#, false),
            (r#"{"path": ["/srv/a"], "mode": "append"}"#, false),
            (r#"{"path": {"/srv/a": 1}, "mode": "append"}"#, false),
            (r#"{"path": "/srv/\ud800", "mode": "append"}"#, false),
            (r#"{"path": "/srv/a", "mode": "append"} {}"#, false),
            (r#"["/srv/a", "append"]"#, false),
            ("", false),
        ] {
            assert_eq!(approves(&rule, arguments), expected, "{arguments}");
        }
    }

    /// Attack: model | a model leaves the directory of a pattern by `..` | the rule does not approve
    /// the call | Approval first
    #[test]
    fn a_value_that_climbs_out_of_a_directory_matches_only_the_same_text() {
        let rule_for = |pattern| rule(&[("path", pattern)]);
        for path in ["/srv/../etc/passwd", "/srv/..", "/srv/a/../../etc", r"/srv/..\\etc"] {
            let arguments = format!(r#"{{"path": "{path}"}}"#);
            assert!(!approves(&rule_for("/srv/*"), &arguments), "{path}");
            assert!(!approves(&rule_for("*"), &arguments), "{path}");
        }
        assert!(approves(&rule_for("../notes"), r#"{"path": "../notes"}"#));
        assert!(approves(&rule_for("/srv/*"), r#"{"path": "/srv/a..b/..c"}"#));
    }

    #[test]
    fn a_number_and_a_literal_are_compared_as_written() {
        let rule = rule(&[("count", "1*"), ("all", "true")]);
        for (count, all, expected) in [
            ("1", "true", true),
            ("10.50", "true", true),
            ("1e99", "true", true),
            ("\"1\"", "\"true\"", true),
            ("2", "true", false),
            ("0.1", "true", false),
            ("1", "false", false),
            ("1", "null", false),
            ("null", "true", false),
        ] {
            let arguments = format!(r#"{{"count": {count}, "all": {all}}}"#);
            assert_eq!(approves(&rule, &arguments), expected, "{arguments}");
        }
    }

    #[test]
    fn a_rule_without_patterns_approves_a_call_without_arguments() {
        assert!(approves(&rule(&[]), "{}"));
        assert!(!approves(&rule(&[]), r#"{"path": "a"}"#));
    }
}

//! JSON as text: one level of a value, a readable form, and a form for comparisons.
//!
//! Numbers keep their digits. `serde_json::Value` would round them.

use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Maximum depth that is looked into. Deeper values are compared as text.
pub(crate) const MAX_DEPTH: usize = 128;

/// One level of a JSON value.
#[derive(Debug)]
pub(crate) enum Node<'r> {
    /// `null`, a boolean or a number, as written.
    Literal(&'r str),
    /// A string, unescaped.
    String(String),
    /// The items of an array.
    Array(Vec<&'r RawValue>),
    /// The members of an object, in their order.
    Object(Vec<(String, &'r RawValue)>),
}

struct Members<'r>(Vec<(String, &'r RawValue)>);

impl<'de: 'r, 'r> Deserialize<'de> for Members<'r> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

impl<'r> Node<'r> {
    /// Reads one level. A string with half of a surrogate pair stays as written.
    pub(crate) fn of(raw: &'r RawValue) -> Self {
        let text = raw.get();
        let read = match text.as_bytes().first() {
            Some(b'{') => serde_json::from_str(text).map(|Members(members)| Self::Object(members)),
            Some(b'[') => serde_json::from_str(text).map(Self::Array),
            Some(b'"') => serde_json::from_str(text).map(Self::String),
            _ => return Self::Literal(text),
        };
        read.unwrap_or(Self::Literal(text))
    }
}

/// Returns the value without blanks and with sorted members, for comparisons. Strings have one
/// spelling; numbers keep theirs.
pub fn canonical(raw: &RawValue) -> String {
    let mut text = String::with_capacity(raw.get().len());
    write_canonical(raw, 0, &mut text);
    text
}

fn write_canonical(raw: &RawValue, depth: usize, text: &mut String) {
    if depth == MAX_DEPTH {
        text.push_str(raw.get());
        return;
    }
    match Node::of(raw) {
        Node::Literal(literal) => text.push_str(literal),
        Node::String(string) => push_string(&string, text),
        Node::Array(items) => {
            text.push('[');
            for (at, item) in items.into_iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                write_canonical(item, depth + 1, text);
            }
            text.push(']');
        }
        Node::Object(mut members) => {
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            text.push('{');
            for (at, (key, value)) in members.into_iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                push_string(&key, text);
                text.push(':');
                write_canonical(value, depth + 1, text);
            }
            text.push('}');
        }
    }
}

fn push_string(string: &str, text: &mut String) {
    // Writing a string to a `String` cannot fail.
    let _ = write!(text, "{}", serde_json::Value::from(string));
}

/// Returns the value on one line: without blanks between tokens, and otherwise as written.
pub fn on_one_line(raw: &RawValue) -> String {
    let mut text = String::with_capacity(raw.get().len());
    let mut is_in_string = false;
    let mut is_escaped = false;
    for character in raw.get().chars() {
        if is_in_string {
            is_in_string = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
        } else if character.is_ascii_whitespace() {
            continue;
        } else {
            is_in_string = character == '"';
        }
        text.push(character);
    }
    text
}

/// Returns the value with one line for each item, two blanks deeper than `depth`. Only blanks between
/// tokens change.
pub fn indent(raw: &RawValue, depth: usize) -> Box<RawValue> {
    let mut text = String::with_capacity(raw.get().len() * 2);
    let mut depth = depth;
    let mut is_in_string = false;
    let mut is_escaped = false;
    let mut characters = raw.get().chars().peekable();
    while let Some(character) = characters.next() {
        if is_in_string {
            text.push(character);
            is_in_string = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
            continue;
        }
        match character {
            ' ' | '\t' | '\n' | '\r' => {}
            '{' | '[' => {
                text.push(character);
                while characters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(close) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    text.push(close);
                } else {
                    depth += 1;
                    push_line(depth, &mut text);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                push_line(depth, &mut text);
                text.push(character);
            }
            ',' => {
                text.push(',');
                push_line(depth, &mut text);
            }
            ':' => text.push_str(": "),
            _ => {
                is_in_string = character == '"';
                text.push(character);
            }
        }
    }
    RawValue::from_string(text).unwrap_or_else(|_| raw.to_owned())
}

fn push_line(depth: usize, text: &mut String) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn the_form_for_comparisons_sorts_members_and_keeps_digits() {
        let text = r#"{"b": 1.0, "a": [1e400, "\u0041\/"], "c": {}}"#;
        assert_eq!(canonical(&raw(text)), r#"{"a":[1e400,"A/"],"b":1.0,"c":{}}"#);
    }

    #[test]
    fn a_very_deep_value_is_compared_as_text() {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        assert_eq!(canonical(&raw(&deep)), deep);
    }

    #[test]
    fn indentation_changes_only_blanks_between_tokens() {
        let text = r#"{"a":[1,{"b c":"x, {\"y\": [\\"}],"d":{ },"e":[]}"#;
        let expected = "{\n  \"a\": [\n    1,\n    {\n      \"b c\": \"x, {\\\"y\\\": [\\\\\"\n    \
                        }\n  ],\n  \"d\": {},\n  \"e\": []\n}";
        let indented = indent(&raw(text), 0);
        assert_eq!(indented.get(), expected);
        assert_eq!(on_one_line(&indented), text.replace("{ }", "{}"));
    }
}

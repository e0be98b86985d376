//! JSON as indented text for a terminal, with all digits of its numbers.

use std::fmt::{self, Write as _};

use innkeeper_protocol::skim::{self, Token};
use serde::de::IgnoredAny;

/// Displays JSON text indented, token by token: the indentation of deep JSON takes many times its
/// length. Deceptive characters are escaped, which does not change the value. Text that is not JSON
/// is not indented.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndentedJson<'j>(pub(crate) &'j str);

impl fmt::Display for IndentedJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if serde_json::from_str::<IgnoredAny>(self.0).is_err() {
            return write_escaped(f, self.0);
        }
        let mut depth = 0;
        // Whether the next value or key is the first of its container, and whether it follows a key.
        let mut is_first = true;
        let mut follows_key = false;
        for token in skim::tokens(self.0) {
            if matches!(token, Token::ObjectEnd | Token::ArrayEnd) {
                depth -= 1;
                if !is_first {
                    write_line_break(f, depth)?;
                }
                is_first = false;
                f.write_char(if token == Token::ObjectEnd { '}' } else { ']' })?;
                continue;
            }
            if !std::mem::take(&mut follows_key) && depth > 0 {
                f.write_str(if is_first { "" } else { "," })?;
                write_line_break(f, depth)?;
            }
            is_first = matches!(token, Token::ObjectStart | Token::ArrayStart);
            match token {
                Token::ObjectStart | Token::ArrayStart => {
                    f.write_char(if token == Token::ObjectStart { '{' } else { '[' })?;
                    depth += 1;
                }
                Token::Key(key) => {
                    f.write_str(&quote(&format!("\"{key}\"")))?;
                    f.write_str(": ")?;
                    follows_key = true;
                }
                Token::String(text) => f.write_str(&quote(text))?,
                Token::Scalar(text) => f.write_str(text)?,
                Token::ObjectEnd | Token::ArrayEnd => {}
            }
        }
        Ok(())
    }
}

fn write_line_break(f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
    f.write_char('\n')?;
    (0..depth).try_for_each(|_| f.write_str("  "))
}

/// Returns a string with the fewest escapes, and with escapes of deceptive characters. A string that
/// is not valid Unicode stays as written.
fn quote(spelled: &str) -> String {
    let decoded = serde_json::from_str::<String>(spelled);
    let quoted = decoded.and_then(|text| serde_json::to_string(&text));
    let mut escaped = String::new();
    // Writing to a string cannot fail.
    let _ = write_escaped(&mut escaped, quoted.as_deref().unwrap_or(spelled));
    escaped
}

/// Writes each deceptive character as `\uXXXX`; such characters are parts of strings only.
fn write_escaped(out: &mut impl fmt::Write, json: &str) -> fmt::Result {
    let mut rest = json;
    while let Some(at) = rest.find(innkeeper_host::is_deceptive_char) {
        let (before, from) = rest.split_at(at);
        out.write_str(before)?;
        let mut characters = from.chars();
        for unit in characters.next().into_iter().flat_map(|c| c.encode_utf16(&mut [0; 2]).to_vec())
        {
            write!(out, "\\u{unit:04x}")?;
        }
        rest = characters.as_str();
    }
    out.write_str(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn indent_json(text: &str) -> String {
        IndentedJson(text).to_string()
    }

    #[test]
    fn json_is_indented_and_numbers_keep_their_digits() {
        let text = r#"{"big":123456789012345678901,"list":[1.50,null,true],"empty":{}}"#;
        let expected = "{\n  \"big\": 123456789012345678901,\n  \"list\": [\n    1.50,\n    null,\n    \
                        true\n  ],\n  \"empty\": {}\n}";
        assert_eq!(indent_json(text), expected);
        assert_eq!(indent_json("{no"), "{no");
    }

    proptest! {
        #[test]
        fn a_value_is_indented_as_serde_json_does(value in json_value()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(&indent_json(&value.to_string()), &pretty);
            prop_assert_eq!(indent_json(&pretty), pretty);
        }
    }

    fn json_value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(serde_json::Value::from),
            any::<bool>().prop_map(serde_json::Value::from),
            "[a-z\"\\\\ ]{0,6}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
                prop::collection::vec(("[a-z\"]{0,3}", inner), 0..5).prop_map(|members| members
                    .into_iter()
                    .collect::<serde_json::Map<_, _>>()
                    .into()),
            ]
        })
    }

    /// Attack: terminal | an object has two members with one name | both members are printed |
    /// Lossless
    #[test]
    fn members_with_the_same_name_are_all_shown() {
        assert_eq!(indent_json(r#"{"a":1,"a":2}"#), "{\n  \"a\": 1,\n  \"a\": 2\n}");
    }

    /// Attack: terminal | JSON contains direction marks and control characters | the output
    /// contains JSON escapes of the same value | Foreign text stays text
    #[test]
    fn deceptive_characters_are_escaped_and_the_value_is_the_same() {
        let value = serde_json::json!({"a\u{202e}": "\u{9b}2J\u{7f}\u{e0041} é\n"});
        let text = indent_json(&value.to_string());
        assert!(!text.replace('\n', "").contains(innkeeper_host::is_deceptive_char), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}

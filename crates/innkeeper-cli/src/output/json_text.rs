//! JSON as indented text for a terminal, with all digits of its numbers.

use innkeeper_toolcall::{Json, parse_strict};
use serde::ser::{Error as _, Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::value::RawValue;

/// Returns indented JSON. Deceptive characters are escaped, which does not change the value. Text
/// that cannot be parsed within the limits is not indented.
pub(crate) fn indent_json(text: &str) -> String {
    let indented =
        parse_strict(text).ok().and_then(|json| serde_json::to_string_pretty(&Raw(&json)).ok());
    escape_deceptive(indented.as_deref().unwrap_or(text))
}

/// Writes each deceptive character as `\uXXXX`; such characters are parts of strings only.
fn escape_deceptive(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if innkeeper_host::is_deceptive_char(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Serializes a value member by member, so that the serializer can indent the members.
struct Raw<'j>(&'j Json);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Number(digits) => RawValue::from_string(digits.clone())
                .map_err(S::Error::custom)?
                .serialize(serializer),
            Json::String(text) => serializer.serialize_str(text),
            Json::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Raw(item))?;
                }
                list.end()
            }
            Json::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(key, &Raw(value))?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_numbers_keep_their_digits() {
        let text = r#"{"big":123456789012345678901,"list":[1.50,null,true],"empty":{}}"#;
        let expected = "{\n  \"big\": 123456789012345678901,\n  \"list\": [\n    1.50,\n    null,\n    \
                        true\n  ],\n  \"empty\": {}\n}";
        assert_eq!(indent_json(text), expected);
        assert_eq!(indent_json("{no"), "{no");
    }

    #[test]
    fn deceptive_characters_are_escaped_and_the_value_is_the_same() {
        let value = serde_json::json!({"a\u{202e}": "\u{9b}2J\u{7f}\u{e0041} é\n"});
        let text = indent_json(&value.to_string());
        assert!(!text.replace('\n', "").contains(innkeeper_host::is_deceptive_char), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}

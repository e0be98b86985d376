//! A JSON value that preserves numbers as text.

use std::fmt;

use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A lossless JSON value: numbers are stored as text, and members keep their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number in JSON syntax, with the digits that the model wrote.
    Number(String),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Self>),
    /// An object. The creator of the value must ensure that no key occurs twice.
    Object(Vec<(String, Self)>),
}

impl Json {
    /// Returns the member `key` of an object.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => {
                members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => None,
        }
    }

    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// Returns the value as compact JSON with sorted members, so that values that differ only in the
    /// order of their members have the same text.
    pub fn to_canonical_string(&self) -> String {
        self.sorted().to_string()
    }

    fn sorted(&self) -> Self {
        match self {
            Self::Array(items) => Self::Array(items.iter().map(Self::sorted).collect()),
            Self::Object(members) => {
                let sorted = members.iter().map(|(key, value)| (key.clone(), value.sorted()));
                let mut members: Vec<_> = sorted.collect();
                members.sort_by(|(left, _), (right, _)| left.cmp(right));
                Self::Object(members)
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => self.clone(),
        }
    }

    /// Whether more than `depth` arrays and objects are nested.
    pub(crate) fn exceeds_depth(&self, depth: usize) -> bool {
        let mut open = vec![(self, 0)];
        while let Some((json, around)) = open.pop() {
            match json {
                Self::Array(_) | Self::Object(_) if around == depth => return true,
                Self::Array(items) => open.extend(items.iter().map(|item| (item, around + 1))),
                Self::Object(members) => {
                    open.extend(members.iter().map(|(_, value)| (value, around + 1)));
                }
                Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => {}
            }
        }
        false
    }
}

/// The conversion is lossless, except that parsing may already have rounded the numbers of the
/// `Value`.
impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(boolean) => Self::Bool(*boolean),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(text) => Self::String(text.clone()),
            Value::Array(items) => Self::Array(items.iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(
                members.iter().map(|(key, value)| (key.clone(), value.into())).collect(),
            ),
        }
    }
}

/// Formats the value as compact JSON.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(boolean) => write!(f, "{boolean}"),
            Self::Number(text) => f.write_str(text),
            Self::String(text) => write_quoted(text, f),
            Self::Array(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (at, (key, value)) in members.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { "," })?;
                    write_quoted(key, f)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Supports JSON serializers only. Each number is written unchanged.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(self.to_string()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Writes a string with quotes and escapes.
fn write_quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_written_as_compact_json_with_its_numbers_untouched() {
        let value = Json::Object(vec![
            ("big".to_owned(), Json::Number("123456789012345678901".to_owned())),
            (
                "list".to_owned(),
                Json::Array(vec![Json::Null, Json::Bool(true), Json::Number("1e400".to_owned())]),
            ),
            ("say \"hi\"\n".to_owned(), Json::String("é\u{1}".to_owned())),
        ]);
        assert_eq!(
            value.to_string(),
            r#"{"big":123456789012345678901,"list":[null,true,1e400],"say \"hi\"\n":"é\u0001"}"#
        );
    }

    #[test]
    fn canonical_text_has_sorted_members_at_each_level() {
        let value = json!({"b": [{"d": 1, "c": 2}, "x"], "a": {"z": null, "y": {"n": 1, "m": 2}}});
        assert_eq!(
            Json::from(&value).to_canonical_string(),
            r#"{"a":{"y":{"m":2,"n":1},"z":null},"b":[{"c":2,"d":1},"x"]}"#
        );
    }

    #[test]
    fn a_library_value_becomes_the_same_text() {
        let value = json!({"b": [1, -2.5, "x"], "a": {"n": null, "t": true}});
        assert_eq!(Json::from(&value).to_string(), value.to_string());
    }
}

//! Request ids of JSON-RPC.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Limit for integers written as floats. Larger floats cannot represent every integer.
const MAX_EXACT_FLOAT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// The id of a request.
///
/// An integer and the string of the same digits are different ids. Only [`RequestId::as_client_id`]
/// treats them as equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// An integer.
    Integer(i64),
    /// A string.
    String(Box<str>),
}

impl RequestId {
    /// Reads an id from raw JSON.
    ///
    /// A float with an integer value counts as that integer (`3.0` is `3`). Returns `None` for
    /// `null`, booleans, fractions, containers, numbers outside the range of `i64`, and strings
    /// that are not valid Unicode (lone surrogates), because decoding could make two such strings
    /// equal.
    pub fn from_raw(raw: &str) -> Option<Self> {
        let raw = raw.trim_matches([' ', '\t', '\r', '\n']);
        match raw.as_bytes().first()? {
            b'"' => serde_json::from_str::<Box<str>>(raw).ok().map(Self::String),
            b'-' | b'0'..=b'9' => parse_integer(raw).map(Self::Integer),
            _ => None,
        }
    }

    /// Returns the number of the client request to which this id belongs.
    ///
    /// Accepts an integer or the exact decimal form of an integer as a string: `"3"`, not `"03"`.
    pub fn as_client_id(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::String(text) => {
                let canonical = text.as_bytes().first().is_some_and(u8::is_ascii_digit)
                    && (text.len() == 1 || !text.starts_with('0'));
                if canonical { text.parse().ok() } else { None }
            }
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::String(text) => write!(f, "{text:?}"),
        }
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl<'de> Deserialize<'de> for RequestId {
    /// Reads what [`RequestId::from_raw`] reads.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Self::from_raw(&value.to_string())
            .ok_or_else(|| D::Error::custom("an id must be a string or an integer"))
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

fn parse_integer(raw: &str) -> Option<i64> {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        return raw.parse().ok();
    }
    let float: f64 = raw.parse().ok()?;
    let is_integer = float.fract() == 0.0 && float.abs() < MAX_EXACT_FLOAT_INTEGER;
    is_integer.then_some(float as i64)
}

#[cfg(test)]
mod tests {
    use super::RequestId;

    fn string_id(text: &str) -> RequestId {
        RequestId::String(text.into())
    }

    /// Proves: TR3.1
    #[test]
    fn integers_strings_and_whole_floats_are_ids() {
        let cases = [
            ("3", RequestId::Integer(3)),
            (" -7\n", RequestId::Integer(-7)),
            ("0", RequestId::Integer(0)),
            ("3.0", RequestId::Integer(3)),
            ("-3.0e2", RequestId::Integer(-300)),
            ("9223372036854775807", RequestId::Integer(i64::MAX)),
            ("-9223372036854775808", RequestId::Integer(i64::MIN)),
            ("9007199254740991.0", RequestId::Integer(9_007_199_254_740_991)),
            (r#""""#, string_id("")),
            (r#""a\u0062\n""#, string_id("ab\n")),
        ];
        for (raw, id) in cases {
            assert_eq!(RequestId::from_raw(raw), Some(id), "{raw}");
        }
    }

    /// Proves: TR3.1
    #[test]
    fn nothing_else_is_an_id() {
        let cases = [
            "",
            "null",
            "true",
            "3.5",
            "1e-1",
            "{}",
            "[3]",
            "-",
            "03",
            "3x",
            "\"",
            "\"a",
            "3 4",
            "9223372036854775808",
            "9007199254740992.0",
            "1e999",
            r#""\ud83d""#,
        ];
        for raw in cases {
            assert_eq!(RequestId::from_raw(raw), None, "{raw}");
        }
    }

    #[test]
    fn only_an_exact_decimal_matches_a_client_id() {
        assert_eq!(RequestId::Integer(3).as_client_id(), Some(3));
        assert_eq!(RequestId::Integer(-3).as_client_id(), None);
        assert_eq!(string_id("3").as_client_id(), Some(3));
        assert_eq!(string_id("0").as_client_id(), Some(0));
        assert_eq!(string_id("18446744073709551615").as_client_id(), Some(u64::MAX));
        for odd in ["03", "+3", "-3", " 3", "3 ", "3.0", "", "x", "18446744073709551616"] {
            assert_eq!(string_id(odd).as_client_id(), None, "{odd:?}");
        }
    }

    #[test]
    fn an_id_is_shown_so_that_a_string_cannot_be_taken_for_a_number() {
        assert_eq!(RequestId::Integer(3).to_string(), "3");
        assert_eq!(string_id("3\u{1b}").to_string(), r#""3\u{1b}""#);
    }
}

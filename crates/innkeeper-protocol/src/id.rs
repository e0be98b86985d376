//! Request ids: what JSON-RPC allows, and which of them can be an answer to us.

use std::fmt;

use serde::{Serialize, Serializer};

/// Integers beyond this cannot be told apart once they were written as a float.
const EXACT_FLOAT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// The id of a request.
///
/// An integer and the string of its digits are different ids; [`RequestId::as_ours`] is the one
/// place that forgives the confusion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// A whole number.
    Integer(i64),
    /// Any text.
    String(Box<str>),
}

impl RequestId {
    /// Reads an id from the raw JSON of its value.
    ///
    /// A float that is a whole number counts as that number (`3.0` is `3`). `None` for `null`,
    /// booleans, fractions, containers, numbers that an `i64` cannot hold, and strings that are
    /// not Unicode (lone surrogates), because two of those could not be told apart.
    pub fn from_raw(raw: &str) -> Option<Self> {
        let raw = raw.trim_matches([' ', '\t', '\r', '\n']);
        match raw.as_bytes().first()? {
            b'"' => serde_json::from_str::<Box<str>>(raw).ok().map(Self::String),
            b'-' | b'0'..=b'9' => integer(raw).map(Self::Integer),
            _ => None,
        }
    }

    /// The number of the request of ours that this id answers.
    ///
    /// An integer, or a string that is exactly an integer's decimal form: `"3"`, not `"03"`.
    pub fn as_ours(&self) -> Option<u64> {
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

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

fn integer(raw: &str) -> Option<i64> {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        return raw.parse().ok();
    }
    let float: f64 = raw.parse().ok()?;
    let whole = float.fract() == 0.0 && float.abs() < EXACT_FLOAT_INTEGER;
    whole.then_some(float as i64)
}

#[cfg(test)]
mod tests {
    use super::RequestId;

    fn text(text: &str) -> RequestId {
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
            (r#""""#, text("")),
            (r#""a\u0062\n""#, text("ab\n")),
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
    fn only_an_exact_decimal_answers_a_number_of_ours() {
        assert_eq!(RequestId::Integer(3).as_ours(), Some(3));
        assert_eq!(RequestId::Integer(-3).as_ours(), None);
        assert_eq!(text("3").as_ours(), Some(3));
        assert_eq!(text("0").as_ours(), Some(0));
        assert_eq!(text("18446744073709551615").as_ours(), Some(u64::MAX));
        for odd in ["03", "+3", "-3", " 3", "3 ", "3.0", "", "x", "18446744073709551616"] {
            assert_eq!(text(odd).as_ours(), None, "{odd:?}");
        }
    }

    #[test]
    fn an_id_is_shown_so_that_text_cannot_be_taken_for_a_number() {
        assert_eq!(RequestId::Integer(3).to_string(), "3");
        assert_eq!(text("3\u{1b}").to_string(), r#""3\u{1b}""#);
    }
}

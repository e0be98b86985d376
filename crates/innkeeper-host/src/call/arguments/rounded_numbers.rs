//! Numbers that a 64-bit float does not contain, which a check must not mistake for the float.

use innkeeper_schema::{MIN_ROUNDED_BYTES, parse_number};
use serde_json::Value;

use crate::error::Violation;

/// Whether JSON text with this value may contain a rounded number. Reads one byte in 18, because few
/// calls contain such a number.
pub(super) fn may_occur(text: &str, value: &Value) -> bool {
    let floats = Floats::from_value(value);
    floats.any && has_long_number(text.as_bytes())
        || floats.zero && ["e-", "E-"].iter().any(|exponent| text.contains(exponent))
}

fn has_long_number(bytes: &[u8]) -> bool {
    let mut positions = (MIN_ROUNDED_BYTES - 1..bytes.len()).step_by(MIN_ROUNDED_BYTES);
    positions.any(|at| {
        let before = bytes[..at].iter().rev().take_while(|byte| is_in_number(**byte));
        let after = bytes[at..].iter().take_while(|byte| is_in_number(**byte));
        before.take(MIN_ROUNDED_BYTES).count() + after.take(MIN_ROUNDED_BYTES).count()
            >= MIN_ROUNDED_BYTES
    })
}

/// Which floats occur in a value.
#[derive(Clone, Copy, Default)]
struct Floats {
    any: bool,
    zero: bool,
}

impl Floats {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Number(number) if number.is_f64() => {
                Self { any: true, zero: number.as_f64() == Some(0.0) }
            }
            Value::Array(items) => Self::from_values(items),
            Value::Object(members) => Self::from_values(members.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Self::default(),
        }
    }

    fn from_values<'v>(values: impl IntoIterator<Item = &'v Value>) -> Self {
        values.into_iter().map(Self::from_value).fold(Self::default(), |floats, other| Self {
            any: floats.any || other.any,
            zero: floats.zero || other.zero,
        })
    }
}

/// Replaces each number of `value`, the value of `text`, by the number to check.
///
/// # Errors
///
/// A number cannot be checked.
pub(super) fn replace(value: &mut Value, text: &str) -> Result<(), Violation> {
    replace_each(value, &mut NumberTexts(text)).map_err(|pointer| {
        let message = "cannot be checked: number outside a 64-bit float's range or precision";
        Violation::new(pointer, message.to_owned())
    })
}

/// Replaces the numbers in the order of the text; an error is the JSON pointer of a number.
fn replace_each(value: &mut Value, texts: &mut NumberTexts<'_>) -> Result<(), String> {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => {}
        Value::Number(number) => {
            *number = texts.next().and_then(parse_number).ok_or_else(String::new)?;
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                replace_each(item, texts).map_err(|pointer| format!("/{index}{pointer}"))?;
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                replace_each(member, texts).map_err(|pointer| {
                    format!("/{}{pointer}", name.replace('~', "~0").replace('/', "~1"))
                })?;
            }
        }
    }
    Ok(())
}

/// The numbers in the rest of a JSON text.
struct NumberTexts<'t>(&'t str);

impl<'t> Iterator for NumberTexts<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        loop {
            let start = self.0.find(|character: char| {
                character == '"' || character == '-' || character.is_ascii_digit()
            })?;
            let rest = &self.0[start..];
            if let Some(string) = rest.strip_prefix('"') {
                self.0 = &string[string_end(string)?..];
                continue;
            }
            let end = rest
                .find(|character| !u8::try_from(character).is_ok_and(is_in_number))
                .unwrap_or(rest.len());
            self.0 = &rest[end..];
            return Some(&rest[..end]);
        }
    }
}

/// Returns the position after the closing quote.
fn string_end(string: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = string.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })?;
    Some(end + 1)
}

fn is_in_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E')
}

#[cfg(test)]
mod tests {
    use super::super::{Arguments, parse_for_check};
    use super::{MIN_ROUNDED_BYTES, may_occur};
    use crate::error::Violation;
    use proptest::prelude::*;
    use serde_json::Value;
    use serde_json::value::RawValue;

    fn parse(text: &str) -> Result<Value, Violation> {
        parse_for_check(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn each_rounded_number_is_the_float_beside_wherever_it_stands() {
        for number in ["100.00000000000000000001", "99.99999999999999999", "1e-400"] {
            for indent in 0..20 {
                let space = " ".repeat(indent);
                let text =
                    format!(r#"{{"1\\\"2": ["-3", 4.5],{space}"a": [{{}}, {number}], "z":6}}"#);
                let value = parse(&text).unwrap();
                let float = value["a"][1].as_f64().unwrap();
                assert!(float.fract() != 0.0, "{text}: {float}");
                assert_eq!(value["1\\\"2"], serde_json::json!(["-3", 4.5]));
                assert_eq!(value["z"], 6);
            }
        }
    }

    #[test]
    fn a_number_of_the_minimum_length_and_a_float_that_is_zero_may_be_rounded() {
        let occurs = |text: &str| may_occur(text, &serde_json::from_str(text).unwrap());
        let number = format!("0.{}", "1".repeat(MIN_ROUNDED_BYTES - 2));
        for space in 0..=MIN_ROUNDED_BYTES {
            let space = " ".repeat(space);
            assert!(occurs(&format!("{space}{number}")));
            assert!(!occurs(&format!("{space}{}", &number[1..].replacen('.', "9", 1))));
            assert!(!occurs(&format!("{space}{}", &number[..MIN_ROUNDED_BYTES - 1])));
        }
        for (text, expected) in [
            ("1e-400", true),
            ("1E-400", true),
            ("[{\"a\": 1e-400}]", true),
            ("[1e-400, 2.5]", true),
            ("[2.5, 1e-400]", true),
            ("0.0", false),
            ("1e-4", false),
            ("[0, \"e-\"]", false),
            ("\"1e-400\"", false),
        ] {
            assert_eq!(occurs(text), expected, "{text}");
        }
    }

    #[test]
    fn a_fraction_that_no_float_has_is_rejected_with_its_pointer() {
        let violation = parse(r#"{"a": [1, {"b/c": 100000000000000000000000000000.5}]}"#);
        let violation = violation.unwrap_err();
        assert_eq!(violation.pointer, "/a/1/b~1c");
        assert!(violation.message.starts_with("cannot be checked"), "{violation}");
    }

    #[test]
    fn a_long_integer_and_a_float_are_as_they_were() {
        let text =
            r#"{"n": 123456789012345678901234567890, "f": 1.50, "s": "100.00000000000000000001"}"#;
        assert_eq!(parse(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        let arguments = Arguments::from(RawValue::from_string(text.to_owned()).unwrap());
        assert!(arguments.values().is_ok());
    }

    proptest! {
        #[test]
        fn every_number_of_a_text_has_its_own_check(
            strings in prop::collection::vec(".*", 0..4),
            float in -1e9_f64..1e9,
        ) {
            let text = serde_json::json!({"s": strings, "f": [float, 12], "o": {"x": -1}}).to_string();
            let long = text.replace("12]", "12.00000000000000000001]");
            let value = parse(&long).unwrap();
            prop_assert_eq!(value["f"][1].as_f64(), Some(12_f64.next_up()));
            prop_assert_eq!((&value["f"][0], &value["o"]["x"]), (&Value::from(float), &Value::from(-1)));
        }
    }
}

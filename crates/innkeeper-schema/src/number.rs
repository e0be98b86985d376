//! The value of a number's text for a check, which compares 64-bit numbers.

use std::cmp::Ordering;

use serde_json::Number;

/// Minimum length of a number that is not zero and that a 64-bit float may round to another integer:
/// 17 digits with a point, or 16 digits with an exponent.
pub const MIN_ROUNDED_BYTES: usize = 18;

/// Number of digits that a program writes so that a 64-bit float can be read back.
const MAX_FLOAT_DIGITS: usize = 17;

/// Returns the number to check in place of the JSON number `text`; `None` for a number outside the
/// range of a 64-bit float, and for a fraction of more than 2^52.
///
/// A number that a 64-bit float does not contain is the next float above or below, never the float
/// that a limit of a schema may be: `100.00000000000000000001` is no integer and above 100. A
/// fraction of up to 17 digits and an integer of more than 64 bits are the nearest float, so that a
/// limit of that size is checked with the precision of a float.
///
/// ```
/// use innkeeper_schema::parse_number;
///
/// let above = parse_number("100.00000000000000000001").and_then(|number| number.as_f64());
/// assert!(above.is_some_and(|number| number > 100.0));
/// assert_eq!(parse_number("1e400"), None);
/// ```
pub fn parse_number(text: &str) -> Option<Number> {
    let number: Number = text.parse().ok()?;
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float)
            if text.len() >= MIN_ROUNDED_BYTES
                || (float == 0.0 && text.contains(|digit: char| matches!(digit, '1'..='9'))) =>
        {
            parse_rounded(text, number, float)
        }
        Some(_) | None => Some(number),
    }
}

/// Returns the number to check in place of `text`, whose nearest float is `float`.
fn parse_rounded(text: &str, number: Number, float: f64) -> Option<Number> {
    let decimal = Decimal::parse(text);
    let nearest = format!("{float:e}");
    let order = decimal.cmp_magnitude(&Decimal::parse(&nearest));
    if order == Ordering::Equal {
        return Some(number);
    }
    if decimal.is_integer() {
        return Some(decimal.to_integer().unwrap_or(number));
    }
    if float.fract() != 0.0 && decimal.digits.len() <= MAX_FLOAT_DIGITS {
        return Some(number);
    }
    let is_above = (order == Ordering::Greater) != text.starts_with('-');
    let neighbor = if is_above { float.next_up() } else { float.next_down() };
    Number::from_f64(neighbor).filter(|_| neighbor.fract() != 0.0)
}

/// A decimal number, `0.DIGITS` times a power of ten.
struct Decimal {
    is_negative: bool,
    /// The digits without zeros at the start and the end; none for zero.
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Parses a JSON number.
    fn parse(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (is_negative, mantissa) =
            mantissa.strip_prefix('-').map_or((false, mantissa), |mantissa| (true, mantissa));
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{integer}{fraction}");
        let significant = digits.trim_start_matches('0');
        let leading_zeros = digits.len() - significant.len();
        // A float is zero if the exponent has more than 64 bits.
        let unparsed = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        let exponent = exponent
            .parse()
            .unwrap_or(unparsed)
            .saturating_add_unsigned(integer.len() as u64)
            .saturating_sub_unsigned(leading_zeros as u64);
        let significant = significant.trim_end_matches('0').to_owned();
        let exponent = if significant.is_empty() { 0 } else { exponent };
        Self { is_negative, digits: significant, exponent }
    }

    fn is_integer(&self) -> bool {
        i64::try_from(self.digits.len()).is_ok_and(|length| length <= self.exponent)
            || self.digits.is_empty()
    }

    /// Returns an integer of up to 64 bits.
    fn to_integer(&self) -> Option<Number> {
        let length = usize::try_from(self.exponent).ok().filter(|length| *length <= 20)?;
        let sign = if self.is_negative { "-" } else { "" };
        let number: Number = format!("{sign}{:0<length$}", self.digits).parse().ok()?;
        (!number.is_f64()).then_some(number)
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (false, false) => {
                self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits))
            }
            (self_is_zero, other_is_zero) => other_is_zero.cmp(&self_is_zero),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn is_valid(schema: &Value, text: &str) -> bool {
        let number = Value::Number(parse_number(text).unwrap());
        Schema::from_value(schema.clone()).violations(&number).unwrap().is_empty()
    }

    #[test]
    fn a_number_that_a_float_rounds_to_a_limit_is_not_the_limit() {
        for (schema, texts) in [
            (
                json!({"type": "integer", "maximum": 100}),
                &["100.00000000000000000001", "99.99999999999999999", "1e-400", "-1e-400"][..],
            ),
            (json!({"maximum": 100}), &["100.00000000000000000001"]),
            (json!({"minimum": -100}), &["-100.00000000000000000001"]),
            (json!({"maximum": 0}), &["1e-400", "1e-99999999999999999999"]),
            (json!({"minimum": 0}), &["-1e-400"]),
            (json!({"maximum": 0.3}), &["0.30000000000000000001", "30000000000000000001e-20"]),
            (json!({"minimum": 0.3}), &["0.29999999999999999999"]),
            (json!({"multipleOf": 0.1}), &["0.30000000000000000001"]),
            (json!({"enum": [0.3]}), &["0.30000000000000000001", "0.29999999999999999999"]),
            (json!({"maximum": 9_007_199_254_740_992_u64}), &["9007199254740993.0"]),
            (json!({"type": "integer"}), &["2251799813685248.1", "4503599627370495.9"]),
        ] {
            for text in texts {
                assert!(!is_valid(&schema, text), "{schema} {text}");
            }
        }
        assert!(is_valid(&json!({"exclusiveMaximum": 100}), "99.99999999999999999"));
        assert!(is_valid(&json!({"exclusiveMinimum": 0}), "1e-400"));
    }

    #[test]
    fn an_integer_of_any_length_and_a_written_float_are_accepted() {
        for text in ["100000000000000000000000000001", "-1.0e30", "1e2", "100.0000000000000000000"]
        {
            assert!(is_valid(&json!({"type": "integer"}), text), "{text}");
        }
        assert!(is_valid(&json!({"maximum": 0.1}), "0.10000000000000001"));
        assert!(is_valid(&json!({"const": 0}), "0e99999999999999999999"));
    }

    #[test]
    fn a_number_without_a_float_beside_is_rejected() {
        let fraction = "100000000000000000000000000000.5";
        for text in ["1e400", "-1e400", fraction, "9007199254740992.5"] {
            assert_eq!(parse_number(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_float_that_a_program_writes_is_unchanged(bits in any::<u64>()) {
            let float = f64::from_bits(bits);
            prop_assume!(float.is_finite());
            let shortest = json!(float).to_string();
            prop_assert_eq!(parse_number(&shortest), Some(shortest.parse().unwrap()));
            let longest = format!("{float:.16e}");
            let nearest: Number = longest.parse().unwrap();
            prop_assert!(float.fract() == 0.0 || parse_number(&longest) == Some(nearest));
        }
    }
}

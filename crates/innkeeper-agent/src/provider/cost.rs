//! The cost of responses, as a provider reports it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of decimal places of a cost: a token costs less than a millionth.
const DECIMAL_PLACES: usize = 12;

const ONE: u64 = 10_u64.pow(DECIMAL_PLACES as u32);

/// Maximum number of significant digits of a reported cost, which are exact in an integer.
const MAX_DIGITS: usize = 30;

/// The cost of responses in the provider's unit, such as credits or US dollars, exact to 12 decimal
/// places. JSON has the cost as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u64);

impl Cost {
    /// Parses the text of a JSON number. `None` for another text, a negative number, and a number
    /// above 18 million, which no response costs.
    pub fn from_json_number(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if whole.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Some(Self(0));
        }
        let number: u128 = digits.parse().ok().filter(|_| digits.len() <= MAX_DIGITS)?;
        let places = i32::try_from(DECIMAL_PLACES).ok()?.checked_add(exponent)?;
        let shift = places.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let power = 10_u128.checked_pow(shift.unsigned_abs());
        let rounded = match (shift >= 0, power) {
            (true, Some(power)) => number.checked_mul(power)?,
            (true, None) => return None,
            (false, Some(power)) => number.saturating_add(power / 2) / power,
            (false, None) => 0,
        };
        u64::try_from(rounded).ok().map(Self)
    }

    /// Adds the cost of another response.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Writes the decimal number without zeros at its end.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0 / ONE;
        let fraction = self.0 % ONE;
        let fraction = format!("{fraction:0DECIMAL_PLACES$}");
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            fraction => write!(f, "{whole}.{fraction}"),
        }
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / ONE as f64)
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        Self::from_json_number(&number.to_string())
            .ok_or_else(|| serde::de::Error::custom("a cost is a number from 0 to 18 million"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<String> {
        Cost::from_json_number(text).map(|cost| cost.to_string())
    }

    #[test]
    fn a_json_number_is_exact_to_twelve_decimal_places() {
        for (text, expected) in [
            ("0", "0"),
            ("0.95", "0.95"),
            ("19", "19"),
            ("1.25e-05", "0.0000125"),
            ("5E-7", "0.0000005"),
            ("12e3", "12000"),
            ("0.10000000000000000555", "0.1"),
            ("0.0000000000005", "0.000000000001"),
            ("0.0000000000004", "0"),
            ("1e-400", "0"),
            ("0e999", "0"),
            ("18000000.000000000001", "18000000.000000000001"),
        ] {
            assert_eq!(parsed(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_cost_is_none_and_not_zero() {
        let long = "1".repeat(40);
        for text in ["", "-1", "-0.1", "null", "\"1\"", "{}", ".5", "1e", "1e400", "1e99999999999"]
        {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!([parsed("19000000"), parsed(&long)], [None, None]);
    }

    #[test]
    fn a_sum_of_costs_has_no_rounding_error_and_is_bounded() {
        let tenth = Cost::from_json_number("0.1").unwrap();
        let sum = (0..10).fold(Cost::default(), |sum, _| sum.saturating_add(tenth));
        assert_eq!(sum.to_string(), "1");
        assert_eq!(Cost(u64::MAX).saturating_add(tenth), Cost(u64::MAX));
    }

    #[test]
    fn json_has_the_cost_as_a_number_and_reads_it_again() {
        for text in ["0.95", "0.0000125", "0.000000000001", "123.456789"] {
            let cost = Cost::from_json_number(text).unwrap();
            let json = serde_json::to_string(&cost).unwrap();
            assert_eq!(serde_json::from_str::<Cost>(&json).unwrap(), cost, "{json}");
        }
        assert_eq!(serde_json::to_string(&Cost(ONE / 20 * 19)).unwrap(), "0.95");
        assert!(serde_json::from_str::<Cost>("-1").is_err());
    }
}

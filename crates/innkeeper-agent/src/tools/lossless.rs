//! Converts arguments to JSON values without changing integers.

use innkeeper_toolcall::Json;
use serde_json::{Map, Number, Value};

const MAX_SHOWN_DIGITS: usize = 64;

/// Converts the arguments. Fractions are rounded to the nearest 64-bit float, as in any JSON
/// parser; integers are never rounded.
///
/// # Errors
///
/// The first characters of the first number that does not fit.
pub(crate) fn to_lossless(json: &Json) -> Result<Value, String> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(boolean) => Value::Bool(*boolean),
        Json::Number(text) => Value::Number(parse_number(text)?),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => {
            Value::Array(items.iter().map(to_lossless).collect::<Result<_, _>>()?)
        }
        Json::Object(members) => {
            let mut all = Map::new();
            for (key, value) in members {
                all.insert(key.clone(), to_lossless(value)?);
            }
            Value::Object(all)
        }
    })
}

fn parse_number(text: &str) -> Result<Number, String> {
    let is_integer = !text.contains(['.', 'e', 'E']);
    let number = text.parse::<Number>().ok().filter(|number| !is_integer || !number.is_f64());
    number.ok_or_else(|| text.chars().take(MAX_SHOWN_DIGITS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn convert(text: &str) -> Result<Value, String> {
        to_lossless(&Json::Array(vec![Json::Number(text.to_owned())]))
    }

    #[test]
    fn the_largest_whole_number_is_sent_as_it_is_and_one_more_is_refused() {
        assert_eq!(convert("18446744073709551615"), Ok(json!([u64::MAX])));
        assert_eq!(convert("18446744073709551616"), Err("18446744073709551616".to_owned()));
        assert_eq!(convert("-9223372036854775808"), Ok(json!([i64::MIN])));
        assert_eq!(convert("-9223372036854775809"), Err("-9223372036854775809".to_owned()));
    }

    #[test]
    fn a_fraction_is_rounded_and_one_beyond_all_floats_is_refused() {
        assert_eq!(convert("0.1"), Ok(json!([0.1])));
        assert_eq!(convert("1e400"), Err("1e400".to_owned()));
        assert_eq!(convert(&"9".repeat(100)), Err("9".repeat(MAX_SHOWN_DIGITS)));
    }
}

//! Arguments as they are sent: the values a model wrote, or an error where one would change.

use innkeeper_toolcall::Json;
use serde_json::{Map, Number, Value};

/// How much of a number is told.
const SHOWN: usize = 64;

/// The value of the arguments. A fraction is rounded to the nearest that 64 bits hold, as everybody
/// does; a whole number is never.
///
/// # Errors
///
/// The beginning of the first number that does not fit.
pub(crate) fn exact(json: &Json) -> Result<Value, String> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(it) => Value::Bool(*it),
        Json::Number(text) => Value::Number(number(text)?),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(exact).collect::<Result<_, _>>()?),
        Json::Object(members) => {
            let mut all = Map::new();
            for (key, value) in members {
                all.insert(key.clone(), exact(value)?);
            }
            Value::Object(all)
        }
    })
}

fn number(text: &str) -> Result<Number, String> {
    let whole = !text.contains(['.', 'e', 'E']);
    let number = text.parse::<Number>().ok().filter(|number| !whole || !number.is_f64());
    number.ok_or_else(|| text.chars().take(SHOWN).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(text: &str) -> Result<Value, String> {
        exact(&Json::Array(vec![Json::Number(text.to_owned())]))
    }

    #[test]
    fn the_largest_whole_number_is_sent_as_it_is_and_one_more_is_refused() {
        assert_eq!(of("18446744073709551615"), Ok(json!([u64::MAX])));
        assert_eq!(of("18446744073709551616"), Err("18446744073709551616".to_owned()));
        assert_eq!(of("-9223372036854775808"), Ok(json!([i64::MIN])));
        assert_eq!(of("-9223372036854775809"), Err("-9223372036854775809".to_owned()));
    }

    #[test]
    fn a_fraction_is_rounded_and_one_beyond_all_floats_is_refused() {
        assert_eq!(of("0.1"), Ok(json!([0.1])));
        assert_eq!(of("1e400"), Err("1e400".to_owned()));
        assert_eq!(of(&"9".repeat(100)), Err("9".repeat(SHOWN)));
    }
}

//! How large a JSON value is, found without trusting its depth.

use serde_json::Value;

use super::VALUES;

/// The deepest value looked into; what is deeper weighs too much.
const DEEPEST: usize = 128;

/// The number of values inside, itself included; above [`VALUES`] it is only known to be more.
pub(super) fn weight(value: &Value) -> usize {
    let mut left = VALUES + 1;
    count(value, DEEPEST, &mut left);
    VALUES + 1 - left
}

fn count(value: &Value, depth: usize, left: &mut usize) {
    *left = if depth == 0 { 0 } else { left.saturating_sub(1) };
    if *left == 0 {
        return;
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(items) => items.iter().for_each(|item| count(item, depth - 1, left)),
        Value::Object(members) => members.values().for_each(|item| count(item, depth - 1, left)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_counted_up_to_one_past_the_limit() {
        assert_eq!(weight(&json!({"a": [1, 2], "b": {}})), 5);
        assert_eq!(weight(&json!(vec![0; VALUES - 1])), VALUES);
        assert_eq!(weight(&json!(vec![0; VALUES])), VALUES + 1);
        assert_eq!(weight(&json!(vec![0; VALUES * 3])), VALUES + 1);
    }

    #[test]
    fn what_is_too_deep_weighs_too_much() {
        let nested = |depth| (0..depth).fold(json!(0), |inner, _| json!([inner]));
        assert_eq!(weight(&nested(DEEPEST - 1)), DEEPEST);
        assert_eq!(weight(&nested(DEEPEST)), VALUES + 1);
    }
}

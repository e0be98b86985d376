//! Size of a JSON value, computed with a depth limit.

use serde_json::Value;

use super::MAX_SCHEMA_VALUES;

/// Maximum depth of a value; a deeper value counts as too large.
const MAX_DEPTH: usize = 128;

/// Returns the number of values inside `value`, including itself. Above [`MAX_SCHEMA_VALUES`] the
/// number is not exact.
pub(super) fn count_values(value: &Value) -> usize {
    let mut remaining = MAX_SCHEMA_VALUES + 1;
    count_into(value, MAX_DEPTH, &mut remaining);
    MAX_SCHEMA_VALUES + 1 - remaining
}

fn count_into(value: &Value, depth: usize, remaining: &mut usize) {
    *remaining = if depth == 0 { 0 } else { remaining.saturating_sub(1) };
    if *remaining == 0 {
        return;
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(items) => items.iter().for_each(|item| count_into(item, depth - 1, remaining)),
        Value::Object(members) => {
            members.values().for_each(|item| count_into(item, depth - 1, remaining));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_counted_up_to_one_past_the_limit() {
        assert_eq!(count_values(&json!({"a": [1, 2], "b": {}})), 5);
        assert_eq!(count_values(&json!(vec![0; MAX_SCHEMA_VALUES - 1])), MAX_SCHEMA_VALUES);
        assert_eq!(count_values(&json!(vec![0; MAX_SCHEMA_VALUES])), MAX_SCHEMA_VALUES + 1);
        assert_eq!(count_values(&json!(vec![0; MAX_SCHEMA_VALUES * 3])), MAX_SCHEMA_VALUES + 1);
    }

    #[test]
    fn a_value_that_is_too_deep_counts_as_past_the_limit() {
        let nested = |depth| (0..depth).fold(json!(0), |inner, _| json!([inner]));
        assert_eq!(count_values(&nested(MAX_DEPTH - 1)), MAX_DEPTH);
        assert_eq!(count_values(&nested(MAX_DEPTH)), MAX_SCHEMA_VALUES + 1);
    }
}

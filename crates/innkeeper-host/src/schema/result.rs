//! The schema of a tool's structured result: whether a result is what its tool promised.

use innkeeper_protocol::skim;
use serde_json::value::RawValue;

use super::{ArgumentSchema, whole};
use crate::error::ArgumentProblem;

/// The longest structured content that is checked, in bytes, as long as the longest schema: the
/// caller waits for the check, and it reads everything as values.
const CHECKED: usize = 256 << 10;

/// The JSON Schema of what one tool answers, compiled at the first answer and once.
#[derive(Debug)]
pub(crate) struct ResultSchema(ArgumentSchema);

impl ResultSchema {
    /// Checks a schema without compiling it, as one of arguments; it may describe any value.
    ///
    /// # Errors
    ///
    /// Why results cannot be checked against it.
    pub(crate) fn new(raw: &RawValue) -> Result<Self, String> {
        ArgumentSchema::bounded(raw, |_| true).map(Self)
    }

    /// The first part of a result's structured content that does not fit. `None` if all fits, and
    /// where that cannot be found out: with more than 256 KiB, too costly a schema, or an invalid
    /// one.
    pub(crate) fn check(&self, result: &RawValue) -> Option<ArgumentProblem> {
        let Some(content) = skim::member(result.get(), "structuredContent") else {
            return whole("`structuredContent` is missing").pop();
        };
        if content.len() > CHECKED {
            return None;
        }
        self.0.first(&serde_json::from_str(content).ok()?).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn check(schema: &serde_json::Value, result: &serde_json::Value) -> Option<String> {
        let schema = ResultSchema::new(&to_raw_value(schema).unwrap()).unwrap();
        let problem = schema.check(&to_raw_value(result).unwrap())?;
        Some(format!("{} {}", problem.pointer, problem.message))
    }

    #[test]
    fn what_does_not_fit_or_is_missing_is_told_and_what_fits_is_not() {
        let schema = json!({"type": "object", "properties": {"sum": {"type": "number"}}});
        let told = |content| check(&schema, &json!({"content": [], "structuredContent": content}));
        assert_eq!(told(json!({"sum": 3})), None);
        assert_eq!(told(json!({"sum": "three"})).unwrap(), "/sum expected number, found string");
        assert!(told(json!([])).is_some());
        assert_eq!(check(&schema, &json!({})).unwrap(), " `structuredContent` is missing");
    }

    #[test]
    fn results_may_be_any_value_where_the_schema_says_so() {
        let list = json!({"type": "array", "items": {"type": "integer"}});
        assert_eq!(check(&list, &json!({"structuredContent": [1, 2]})), None);
        assert!(check(&list, &json!({"structuredContent": [1, "2"]})).is_some());
    }

    #[test]
    fn content_at_the_limit_is_checked_and_content_past_it_is_not() {
        let schema = json!({"type": "integer"});
        let text = |bytes: usize| json!({"structuredContent": "x".repeat(bytes - 2)});
        assert!(check(&schema, &text(CHECKED)).is_some());
        assert_eq!(check(&schema, &text(CHECKED + 1)), None);
    }

    #[test]
    fn of_many_misfits_below_a_long_name_one_is_made() {
        let list = json!({"type": "array", "items": {"type": "string"}});
        let schema = json!({"additionalProperties": list});
        let content = json!({"x".repeat(100_000): vec![1; 50_000]});
        let told = check(&schema, &json!({ "structuredContent": content })).unwrap();
        assert!(told.len() < 2_000, "{}", told.len());
    }

    #[test]
    fn a_schema_that_cannot_be_compiled_or_would_cost_too_much_flags_nothing() {
        assert_eq!(check(&json!({"type": "nothing"}), &json!({"structuredContent": 1})), None);
        let mut doubling = json!({});
        for level in 0..40 {
            let below = format!("#/$defs/{}", level + 1);
            doubling[level.to_string()] = json!({"allOf": [{"$ref": below}, {"$ref": below}]});
        }
        doubling["40"] = json!({});
        let bomb = to_raw_value(&json!({"$ref": "#/$defs/0", "$defs": doubling})).unwrap();
        assert!(ResultSchema::new(&bomb).is_err());
    }
}

//! Validates a tool's structured result against its output schema.

use innkeeper_protocol::skim;
use innkeeper_schema::{Schema, Violation};
use serde_json::value::RawValue;

use super::schema_within_limits;

/// Maximum size of checked structured content in bytes, equal to the maximum schema size: the
/// caller waits for the check, which parses everything.
const MAX_CHECKED_BYTES: usize = 256 << 10;

/// The output schema of one tool, compiled once at the first result.
#[derive(Debug)]
pub(crate) struct ResultSchema(Schema);

impl ResultSchema {
    /// Checks a schema without compiling it; the schema may describe any value.
    ///
    /// # Errors
    ///
    /// Returns why results cannot be checked with the schema.
    pub(crate) fn new(raw: &RawValue) -> Result<Self, String> {
        schema_within_limits(raw).map(Self)
    }

    /// Returns the first problem of a result's structured content: a violation of the schema, or
    /// two members with the same name. Returns `None` if the content matches, or if it cannot be checked: content above 256 KiB, a too costly schema, or an
    /// invalid schema.
    pub(crate) fn check(&self, result: &RawValue) -> Option<Violation> {
        let mut contents = skim::members(result.get())
            .filter(|(key, _)| skim::decode_key(key) == "structuredContent");
        let Some((_, content)) = contents.next() else {
            let message = "`structuredContent` is missing".to_owned();
            return Some(Violation::of_whole_value(message));
        };
        // The check reads one member of each name, and the application may read another.
        if contents.next().is_some() {
            let message = "`structuredContent` occurs twice".to_owned();
            return Some(Violation::of_whole_value(message));
        }
        if content.len() > MAX_CHECKED_BYTES {
            return None;
        }
        if skim::has_duplicate_key(content) {
            let message = "two members of one object have the same name".to_owned();
            return Some(Violation::of_whole_value(message));
        }
        self.0.first_violation(&serde_json::from_str(content).ok()?).unwrap_or_default()
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
    fn violations_and_missing_content_are_reported() {
        let schema = json!({"type": "object", "properties": {"sum": {"type": "number"}}});
        let problem =
            |content| check(&schema, &json!({"content": [], "structuredContent": content}));
        assert_eq!(problem(json!({"sum": 3})), None);
        assert_eq!(problem(json!({"sum": "three"})).unwrap(), "/sum expected number, found string");
        assert!(problem(json!([])).is_some());
        assert_eq!(check(&schema, &json!({})).unwrap(), " `structuredContent` is missing");
    }

    #[test]
    fn results_may_be_any_value_where_the_schema_says_so() {
        let list = json!({"type": "array", "items": {"type": "integer"}});
        assert_eq!(check(&list, &json!({"structuredContent": [1, 2]})), None);
        assert!(check(&list, &json!({"structuredContent": [1, "2"]})).is_some());
    }

    /// Attack: data | structured content has two members with one name, one of them valid | the
    /// check of the schema reports the duplicate | Complete checks
    #[test]
    fn two_members_with_the_same_name_are_reported_since_the_schema_is_checked_for_one() {
        let schema = json!({"type": "object", "properties": {"sum": {"type": "number"}}});
        let schema = ResultSchema::new(&to_raw_value(&schema).unwrap()).unwrap();
        let problem = |result: &str| {
            schema.check(&RawValue::from_string(result.to_owned()).unwrap()).map(|it| it.message)
        };
        let twice = "two members of one object have the same name";
        assert_eq!(
            problem(r#"{"structuredContent":{"sum":"three","s\u0075m":3}}"#).as_deref(),
            Some(twice)
        );
        assert_eq!(
            problem(r#"{"structuredContent":{"sum":"three"},"structuredContent":{"sum":3}}"#)
                .as_deref(),
            Some("`structuredContent` occurs twice")
        );
        assert_eq!(problem(r#"{"a":{"b":1,"b":1},"structuredContent":{"sum":3}}"#), None);
    }

    #[test]
    fn content_at_the_limit_is_checked_and_content_past_it_is_not() {
        let schema = json!({"type": "integer"});
        let text = |bytes: usize| json!({"structuredContent": "x".repeat(bytes - 2)});
        assert!(check(&schema, &text(MAX_CHECKED_BYTES)).is_some());
        assert_eq!(check(&schema, &text(MAX_CHECKED_BYTES + 1)), None);
    }

    /// Attack: data | 50,000 violations below a name of 100,000 characters | the host creates one
    /// short violation | No unbounded memory
    #[test]
    fn of_many_misfits_below_a_long_name_one_is_made() {
        let list = json!({"type": "array", "items": {"type": "string"}});
        let schema = json!({"additionalProperties": list});
        let content = json!({"x".repeat(100_000): vec![1; 50_000]});
        let problem = check(&schema, &json!({ "structuredContent": content })).unwrap();
        assert!(problem.len() < 2_000, "{}", problem.len());
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

//! Schemas of a tool's arguments and results, with the limits of `innkeeper-schema`.

mod result_schema;

use innkeeper_protocol::skim;
use innkeeper_schema::{Schema, Violation};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use self::result_schema::ResultSchema;

/// The JSON Schema of a tool's arguments, compiled once at the first use.
#[derive(Debug)]
pub(crate) struct ArgumentSchema(Schema);

impl ArgumentSchema {
    /// Checks a schema without compiling the schema; an empty schema accepts any object.
    ///
    /// # Errors
    ///
    /// Returns why the tool cannot be listed: the schema describes no object, or exceeds a limit of
    /// [`Schema::check_limits`].
    pub(crate) fn new(raw: &RawValue) -> Result<Self, String> {
        let reason = if describes_objects(raw) {
            match schema_within_limits(raw) {
                Ok(schema) => return Ok(Self(schema)),
                Err(reason) => reason,
            }
        } else {
            "does not describe an object".to_owned()
        };
        Err(format!("unusable input schema: {reason}"))
    }

    /// Returns the parts of `arguments` that do not match, sorted by pointer, at most 32; empty if
    /// all match.
    ///
    /// Arguments that are too large or too deep for this schema, and a schema that fails to
    /// compile, are one violation of the whole object.
    pub(crate) fn check(&self, arguments: &Value) -> Vec<Violation> {
        let whole = |error: innkeeper_schema::CheckError| {
            vec![Violation::of_whole_value(error.to_string())]
        };
        self.0.violations(arguments).unwrap_or_else(whole)
    }
}

/// Some servers write `null` for a schema without restrictions.
fn schema_within_limits(raw: &RawValue) -> Result<Schema, String> {
    let raw = if raw.get() == "null" { RawValue::TRUE } else { raw };
    let schema = Schema::from_text(raw.to_owned());
    schema.check_limits().map_err(|error| error.to_string())?;
    Ok(schema)
}

/// Returns whether the schema allows an object, as far as `type` at its root says.
fn describes_objects(schema: &RawValue) -> bool {
    let text = schema.get();
    if !text.starts_with('{') {
        return matches!(text, "true" | "null");
    }
    let declared = skim::member(text, "type").and_then(|kind| serde_json::from_str(kind).ok());
    match declared {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn read(schema: &Value) -> Result<ArgumentSchema, String> {
        ArgumentSchema::new(&to_raw_value(schema).unwrap())
    }

    #[test]
    fn a_schema_that_describes_no_object_is_refused() {
        for schema in
            [json!(false), json!("object"), json!([]), json!({"type": ["string", "null"]})]
        {
            let reason = read(&schema).unwrap_err();
            assert_eq!(reason, "unusable input schema: does not describe an object", "{schema}");
        }
        assert!(read(&json!({"type": ["object", "null"]})).is_ok());
    }

    #[test]
    fn an_empty_or_missing_schema_accepts_any_object() {
        for schema in [json!({}), json!(true), json!(null), json!({"type": "object"})] {
            assert_eq!(read(&schema).unwrap().check(&json!({"any": [1, {}]})), [], "{schema}");
        }
    }

    #[test]
    fn an_unusable_schema_is_refused_with_its_reason_or_is_one_violation() {
        let outside = json!({"$ref": "https://example.com/a"});
        let reason = read(&outside).unwrap_err();
        assert!(reason.starts_with("unusable input schema: reference `https:"), "{reason}");
        let broken = read(&json!({"properties": {"a": {"type": "text"}}})).unwrap();
        let message = "the schema is unusable: invalid at `/properties/a/type`".to_owned();
        assert_eq!(broken.check(&json!({})), [Violation::of_whole_value(message)]);
    }
}

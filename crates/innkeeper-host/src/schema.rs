//! Schemas of a tool's arguments and results, with the limits of `innkeeper-schema`.

mod result_schema;

use std::sync::atomic::{AtomicBool, Ordering};

use innkeeper_protocol::skim;
use innkeeper_schema::{ANY_TYPE, CheckError, Schema, Violation, standard_type_name};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use self::result_schema::ResultSchema;

/// The JSON Schema of a tool's arguments, compiled once at the first use.
#[derive(Debug)]
pub(crate) struct ArgumentSchema {
    schema: Schema,
    /// Whether the log has the reason why the schema is unusable.
    is_reported: AtomicBool,
}

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
                Ok(schema) => return Ok(Self { schema, is_reported: AtomicBool::new(false) }),
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
    /// Arguments that are too large or too deep for this schema are one violation of the whole
    /// object. A schema that fails to compile checks nothing: the server decides, because a tool
    /// with a mistake in its schema usually works.
    pub(crate) fn check(&self, arguments: &Value) -> Vec<Violation> {
        match self.schema.violations(arguments) {
            Ok(violations) => violations,
            Err(CheckError::UnusableSchema(_)) => Vec::new(),
            Err(error @ (CheckError::TooDeep | CheckError::TooLarge | CheckError::Failed)) => {
                vec![Violation::of_whole_value(error.to_string())]
            }
        }
    }

    /// Returns why arguments are not checked, if the schema fails to compile.
    pub(crate) fn unusable_reason(&self) -> Option<String> {
        let reason = self.schema.unusable_reason()?;
        Some(format!("the arguments are not checked, because the input schema is {reason}"))
    }

    /// Returns the reason once, for the log.
    pub(crate) fn first_unusable_reason(&self) -> Option<String> {
        let reason = self.unusable_reason()?;
        (!self.is_reported.swap(true, Ordering::Relaxed)).then_some(reason)
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
        None | Some(Value::Null) => true,
        Some(Value::Array(kinds)) => kinds.is_empty() || kinds.iter().any(includes_objects),
        Some(kind) => includes_objects(&kind),
    }
}

fn includes_objects(kind: &Value) -> bool {
    matches!(kind.as_str().and_then(standard_type_name), Some("object" | ANY_TYPE))
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
    fn a_schema_outside_the_limits_is_refused_with_its_reason() {
        let outside = json!({"$ref": "https://example.com/a"});
        let reason = read(&outside).unwrap_err();
        assert!(reason.starts_with("unusable input schema: reference `https:"), "{reason}");
    }

    #[test]
    fn a_schema_that_does_not_compile_checks_nothing_and_says_why() {
        for (schema, place) in [
            (json!({"properties": {"a": {"type": "text"}}}), "invalid at `/properties/a/type`"),
            (json!({"properties": {"a": {"pattern": "["}}}), "pattern `[` is invalid"),
        ] {
            let broken = read(&schema).unwrap();
            assert_eq!(broken.check(&json!({"a": "x"})), [], "{schema}");
            let reason = broken.unusable_reason().unwrap();
            assert!(reason.contains(place), "{reason}");
        }
        assert_eq!(read(&json!({"required": null})).unwrap().unusable_reason(), None);
    }

    #[test]
    fn the_root_is_an_object_in_any_spelling_of_the_type() {
        for kind in
            [json!("OBJECT"), json!("dict"), json!("any"), json!(""), json!(null), json!([])]
        {
            assert!(read(&json!({ "type": kind })).is_ok(), "{kind}");
        }
    }
}

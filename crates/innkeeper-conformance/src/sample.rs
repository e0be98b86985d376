//! Sample arguments that match a schema.

use serde_json::{Map, Value, json};

/// Returns an object with all required properties and nothing else.
pub(crate) fn sample_arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let members = required.iter().filter_map(Value::as_str).map(|name| {
        let property = &schema["properties"][name];
        (name.to_owned(), sample_value(property))
    });
    Value::Object(members.collect::<Map<_, _>>())
}

pub(crate) fn sample_value(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(3),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => sample_arguments(schema),
        _ => json!("text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_what_is_required_and_nothing_else() {
        let schema = json!({
            "properties": {
                "a": {"type": "number"},
                "b": {"enum": ["x", "y"]},
                "c": {"type": "object", "properties": {"d": {}}, "required": ["d"]},
                "e": {"type": "string"},
            },
            "required": ["a", "b", "c"],
        });
        assert_eq!(sample_arguments(&schema), json!({"a": 3, "b": "x", "c": {"d": "text"}}));
    }
}

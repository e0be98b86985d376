//! Arguments that fit a schema, for tools that only have to be called.

use serde_json::{Map, Value, json};

/// An object with everything that is required, and nothing else.
pub(crate) fn arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let given = required.iter().filter_map(Value::as_str).map(|name| {
        let property = &schema["properties"][name];
        (name.to_owned(), value(property))
    });
    Value::Object(given.collect::<Map<_, _>>())
}

/// Some value of a type.
pub(crate) fn value(schema: &Value) -> Value {
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
        Some("object") => arguments(schema),
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
        assert_eq!(arguments(&schema), json!({"a": 3, "b": "x", "c": {"d": "text"}}));
    }
}

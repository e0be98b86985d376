//! Whether a value fits a schema beyond doubt, so that nobody need be asked about it.
//!
//! Compiling a schema takes the library some milliseconds and megabytes, once a process. Most files
//! are right, and the schemas are our own: the few keywords they use are looked at here. What this
//! room is not sure of goes to the library, which also finds the words for what is wrong.

use serde_json::Value;

/// Whether `value` certainly fits; `false` says nothing.
pub(super) fn fits(schema: &Value, value: &Value) -> bool {
    part(schema, schema, value)
}

fn part(root: &Value, schema: &Value, value: &Value) -> bool {
    let Some(keywords) = schema.as_object() else { return *schema == Value::Bool(true) };
    keywords.iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "$defs" | "title" | "description" | "default" | "deprecated" => true,
        "$ref" => {
            let place = rule.as_str().and_then(|reference| reference.strip_prefix('#'));
            place.and_then(|place| root.pointer(place)).is_some_and(|to| part(root, to, value))
        }
        "type" => match rule {
            Value::Array(kinds) => kinds.iter().any(|kind| is_a(kind, value)),
            kind => is_a(kind, value),
        },
        "enum" => rule.as_array().is_some_and(|options| options.contains(value)),
        "const" => rule == value,
        "minimum" => bounded(value, rule, |value, least| value >= least),
        "maximum" => bounded(value, rule, |value, most| value <= most),
        "pattern" => !value.is_string(),
        "properties" => value.as_object().is_none_or(|members| {
            let rule_of = |key: &str| rule.get(key).unwrap_or(&Value::Bool(true));
            members.iter().all(|(key, value)| part(root, rule_of(key), value))
        }),
        "additionalProperties" => value.as_object().is_none_or(|members| {
            let named = keywords.get("properties");
            let mut others = members
                .iter()
                .filter(|(key, _)| named.is_none_or(|named| named.get(key.as_str()).is_none()));
            others.all(|(_, value)| part(root, rule, value))
        }),
        "required" => value.as_object().is_none_or(|members| {
            let has = |key: &Value| key.as_str().is_some_and(|key| members.contains_key(key));
            rule.as_array().is_some_and(|keys| keys.iter().all(has))
        }),
        "items" => value
            .as_array()
            .is_none_or(|elements| elements.iter().all(|element| part(root, rule, element))),
        "anyOf" => rule
            .as_array()
            .is_some_and(|branches| branches.iter().any(|branch| part(root, branch, value))),
        _ => false,
    })
}

fn bounded(value: &Value, limit: &Value, holds: impl Fn(f64, f64) -> bool) -> bool {
    let both = value.as_f64().zip(limit.as_f64());
    !value.is_number() || both.is_some_and(|(value, limit)| holds(value, limit))
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    }
}

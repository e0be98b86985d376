//! Fast check of a value against our own schemas.
//!
//! Compiling a schema with the library takes milliseconds and megabytes once per process. Most
//! files are valid, and our schemas use few keywords, which this module evaluates. The library
//! checks the values that this module does not accept, and also provides the error messages.

use serde_json::Value;

/// Returns whether `value` certainly matches; `false` means unknown.
pub(crate) fn matches_schema(schema: &Value, value: &Value) -> bool {
    matches_subschema(schema, schema, value)
}

fn matches_subschema(root: &Value, schema: &Value, value: &Value) -> bool {
    let Some(keywords) = schema.as_object() else { return *schema == Value::Bool(true) };
    keywords.iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "$defs" | "title" | "description" | "default" | "deprecated" => true,
        "$ref" => {
            let fragment = rule.as_str().and_then(|reference| reference.strip_prefix('#'));
            fragment
                .and_then(|fragment| root.pointer(fragment))
                .is_some_and(|to| matches_subschema(root, to, value))
        }
        "type" => match rule {
            Value::Array(kinds) => kinds.iter().any(|kind| is_type(kind, value)),
            kind => is_type(kind, value),
        },
        "enum" => rule.as_array().is_some_and(|options| options.contains(value)),
        "const" => rule == value,
        "minimum" => satisfies_bound(value, rule, |value, least| value >= least),
        "maximum" => satisfies_bound(value, rule, |value, bound| value <= bound),
        "pattern" => !value.is_string(),
        "properties" => value.as_object().is_none_or(|members| {
            members.iter().all(|(key, value)| {
                rule.get(key).is_none_or(|rule| matches_subschema(root, rule, value))
            })
        }),
        "additionalProperties" => value.as_object().is_none_or(|members| {
            let declared = keywords.get("properties");
            let mut others = members.iter().filter(|(key, _)| {
                declared.is_none_or(|declared| declared.get(key.as_str()).is_none())
            });
            others.all(|(_, value)| matches_subschema(root, rule, value))
        }),
        "required" => value.as_object().is_none_or(|members| {
            rule.as_array().is_some_and(|keys| {
                keys.iter().all(|key| key.as_str().is_some_and(|key| members.contains_key(key)))
            })
        }),
        "items" => value.as_array().is_none_or(|elements| {
            elements.iter().all(|element| matches_subschema(root, rule, element))
        }),
        "anyOf" => rule.as_array().is_some_and(|branches| {
            branches.iter().any(|branch| matches_subschema(root, branch, value))
        }),
        _ => false,
    })
}

fn satisfies_bound(value: &Value, limit: &Value, holds: impl Fn(f64, f64) -> bool) -> bool {
    let both = value.as_f64().zip(limit.as_f64());
    !value.is_number() || both.is_some_and(|(value, limit)| holds(value, limit))
}

fn is_type(kind: &Value, value: &Value) -> bool {
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

//! Schemas that refer to, or are made of, other schemas.

use serde_json::{Map, Value};

use super::ANNOTATIONS;

/// The pointer of a reference into the same schema, `#` or `#/…`; others lead elsewhere.
pub(super) fn pointer(reference: &str) -> Option<&str> {
    let pointer = reference.strip_prefix('#')?;
    (pointer.is_empty() || pointer.starts_with('/')).then_some(pointer)
}

/// A pointer one step deeper.
pub(super) fn deeper(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}

/// Whether anything but this keyword says which values are right.
pub(super) fn says_more(schema: &Map<String, Value>, keyword: &str) -> bool {
    schema.keys().any(|key| key != keyword && !ANNOTATIONS.contains(&key.as_str()))
}

/// Both schemas at once, as one. Keywords that both have and that differ come back as conflicts;
/// the first schema's is kept.
pub(super) fn merged(
    first: &Map<String, Value>,
    second: &Map<String, Value>,
) -> (Map<String, Value>, Vec<String>) {
    let mut all = first.clone();
    let mut conflicts = Vec::new();
    if closes(first, second) || closes(second, first) {
        conflicts.push("additionalProperties".to_owned());
    }
    for (key, value) in second {
        match (key.as_str(), all.get_mut(key), value) {
            (_, None, _) => {
                all.insert(key.clone(), value.clone());
            }
            (_, Some(there), _) if *there == *value => {}
            ("properties", Some(Value::Object(there)), Value::Object(more)) => {
                for (name, schema) in more {
                    let kept = there.entry(name).or_insert_with(|| schema.clone());
                    if kept != schema {
                        conflicts.push(deeper("properties", name));
                    }
                }
            }
            ("required", Some(Value::Array(there)), Value::Array(more)) => {
                for name in more {
                    if !there.contains(name) {
                        there.push(name.clone());
                    }
                }
            }
            (key, Some(_), _) if ANNOTATIONS.contains(&key) => {}
            (key, Some(_), _) => conflicts.push(key.to_owned()),
        }
    }
    (all, conflicts)
}

/// Whether one schema says something of properties that it does not list and the other does.
fn closes(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let listed = |name: &String| {
        one.get("properties").and_then(Value::as_object).is_some_and(|it| it.contains_key(name))
    };
    let says = one.get("additionalProperties").is_some_and(|it| *it != Value::Bool(true));
    let others = other.get("properties").and_then(Value::as_object);
    says && others.is_some_and(|it| !it.keys().all(listed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: &Value) -> &Map<String, Value> {
        value.as_object().unwrap()
    }

    #[test]
    fn properties_and_required_add_up_and_conflicts_are_named() {
        let first = json!({"title": "A", "type": "object", "properties": {"a": {}, "c": {}}, "required": ["a"]});
        let second = json!({"title": "B", "type": "array", "properties": {"b": {}, "c": true}, "required": ["a", "b"]});
        let (both, conflicts) = merged(map(&first), map(&second));
        assert_eq!(
            Value::Object(both),
            json!({"title": "A", "type": "object", "properties": {"a": {}, "c": {}, "b": {}}, "required": ["a", "b"]})
        );
        assert_eq!(conflicts, ["type", "properties/c"]);
    }

    #[test]
    fn a_schema_that_allows_no_others_conflicts_with_one_that_lists_others() {
        let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
        let open = json!({"properties": {"b": {}}});
        assert_eq!(merged(map(&closed), map(&open)).1, ["additionalProperties"]);
        assert_eq!(merged(map(&open), map(&closed)).1, ["additionalProperties"]);
        assert!(merged(map(&closed), map(&closed)).1.is_empty());
    }

    #[test]
    fn only_references_into_the_same_schema_have_a_pointer() {
        assert_eq!(pointer("#"), Some(""));
        assert_eq!(pointer("#/$defs/a"), Some("/$defs/a"));
        assert_eq!(pointer("#anchor"), None);
        assert_eq!(pointer("other.json#/a"), None);
    }
}

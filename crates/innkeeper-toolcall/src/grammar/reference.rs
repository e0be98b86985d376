//! References between schemas and merges of schemas.

use serde_json::{Map, Value};

use super::ANNOTATIONS;

/// Returns the pointer of a reference inside the same schema (`#` or `#/…`).
pub(super) fn local_pointer(reference: &str) -> Option<&str> {
    let pointer = reference.strip_prefix('#')?;
    (pointer.is_empty() || pointer.starts_with('/')).then_some(pointer)
}

pub(super) fn join_pointer(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// Whether a keyword other than `keyword` restricts values.
pub(super) fn has_other_constraints(schema: &Map<String, Value>, keyword: &str) -> bool {
    schema.keys().any(|key| key != keyword && !ANNOTATIONS.contains(&key.as_str()))
}

/// Merges both schemas. Returns conflicting keywords; the first schema's value is used.
pub(super) fn merge(
    first: &Map<String, Value>,
    second: &Map<String, Value>,
) -> (Map<String, Value>, Vec<String>) {
    let mut all = first.clone();
    let mut conflicts = Vec::new();
    if constrains_unlisted(first, second) || constrains_unlisted(second, first) {
        conflicts.push("additionalProperties".to_owned());
    }
    for (key, value) in second {
        match (key.as_str(), all.get_mut(key), value) {
            (_, None, _) => {
                all.insert(key.clone(), value.clone());
            }
            (_, Some(existing), _) if *existing == *value => {}
            ("properties", Some(Value::Object(existing)), Value::Object(more)) => {
                for (name, schema) in more {
                    let existing_schema = existing.entry(name).or_insert_with(|| schema.clone());
                    if existing_schema != schema {
                        conflicts.push(join_pointer("properties", name));
                    }
                }
            }
            ("required", Some(Value::Array(existing)), Value::Array(more)) => {
                for name in more {
                    if !existing.contains(name) {
                        existing.push(name.clone());
                    }
                }
            }
            (key, Some(_), _) if ANNOTATIONS.contains(&key) => {}
            (key, Some(_), _) => conflicts.push(key.to_owned()),
        }
    }
    (all, conflicts)
}

/// Whether one schema restricts properties that only the other schema lists.
fn constrains_unlisted(schema: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let constrains = schema
        .get("additionalProperties")
        .is_some_and(|additional| *additional != Value::Bool(true));
    let others = other.get("properties").and_then(Value::as_object);
    constrains
        && others.is_some_and(|properties| {
            !properties.keys().all(|name| {
                schema
                    .get("properties")
                    .and_then(Value::as_object)
                    .is_some_and(|properties| properties.contains_key(name))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn as_map(value: &Value) -> &Map<String, Value> {
        value.as_object().unwrap()
    }

    #[test]
    fn properties_and_required_add_up_and_conflicts_are_named() {
        let first = json!({"title": "A", "type": "object", "properties": {"a": {}, "c": {}}, "required": ["a"]});
        let second = json!({"title": "B", "type": "array", "properties": {"b": {}, "c": true}, "required": ["a", "b"]});
        let (both, conflicts) = merge(as_map(&first), as_map(&second));
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
        assert_eq!(merge(as_map(&closed), as_map(&open)).1, ["additionalProperties"]);
        assert_eq!(merge(as_map(&open), as_map(&closed)).1, ["additionalProperties"]);
        assert!(merge(as_map(&closed), as_map(&closed)).1.is_empty());
    }

    #[test]
    fn only_references_into_the_same_schema_have_a_pointer() {
        assert_eq!(local_pointer("#"), Some(""));
        assert_eq!(local_pointer("#/$defs/a"), Some("/$defs/a"));
        assert_eq!(local_pointer("#anchor"), None);
        assert_eq!(local_pointer("other.json#/a"), None);
    }
}

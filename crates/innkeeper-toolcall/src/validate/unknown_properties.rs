//! Misspelled argument names: a different case or different separators.

use std::collections::HashMap;

use innkeeper_schema::{Violation, quote};
use serde_json::Value;

/// Keywords that explicitly allow or restrict additional properties.
const EXTENSION_KEYWORDS: [&str; 3] =
    ["additionalProperties", "patternProperties", "unevaluatedProperties"];

/// Reports each unknown argument whose name matches a missing property. Schemas that explicitly
/// define additional properties are exempt.
pub(super) fn violations(schema: &Value, arguments: &Value) -> Vec<Violation> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties =
        properties.filter(|_| EXTENSION_KEYWORDS.iter().all(|key| schema.get(key).is_none()));
    let (Some(properties), Some(members)) = (properties, arguments.as_object()) else {
        return Vec::new();
    };
    if members.keys().all(|name| properties.contains_key(name)) {
        return Vec::new();
    }
    let missing = properties.keys().filter(|property| !members.contains_key(*property));
    let missing_by_name: HashMap<String, &String> = missing
        .map(|property| (normalize_name(property), property))
        .filter(|(normalized, _)| !normalized.is_empty())
        .collect();
    let unknown = members.keys().filter(|name| !properties.contains_key(*name));
    let misspelt =
        unknown.filter_map(|name| Some((name, missing_by_name.get(&normalize_name(name))?)));
    misspelt
        .map(|(name, suggestion)| {
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            Violation::new(
                pointer,
                format!("unknown property; did you mean {}?", quote(suggestion)),
            )
        })
        .collect()
}

/// Removes case and separators from a name.
fn normalize_name(name: &str) -> String {
    name.chars()
        .filter(|character| character.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

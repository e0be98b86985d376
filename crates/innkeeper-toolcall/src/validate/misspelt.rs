//! Arguments that nobody named so: a property's name in another case or with other separators.

use std::collections::HashMap;

use serde_json::Value;

use super::Violation;
use super::words::shortened;
use crate::repair::quoted;

/// What a schema says where it says which arguments there may be beside its properties.
const OTHERS: [&str; 3] = ["additionalProperties", "patternProperties", "unevaluatedProperties"];

/// Each argument of a name that is none of the schema's, where one that is left out may be meant. A
/// schema that says which others there may be is taken at its word.
pub(super) fn violations(schema: &Value, arguments: &Value) -> Vec<Violation> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.filter(|_| OTHERS.iter().all(|key| schema.get(key).is_none()));
    let (Some(properties), Some(given)) = (properties, arguments.as_object()) else {
        return Vec::new();
    };
    if given.keys().all(|name| properties.contains_key(name)) {
        return Vec::new();
    }
    let left_out = properties.keys().filter(|known| !given.contains_key(*known));
    let left_out: HashMap<String, &String> =
        left_out.map(|known| (letters(known), known)).filter(|(it, _)| !it.is_empty()).collect();
    let unknown = given.keys().filter(|name| !properties.contains_key(*name));
    let misspelt = unknown.filter_map(|name| Some((name, left_out.get(&letters(name))?)));
    misspelt
        .map(|(name, meant)| {
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            let message = format!("there is no such argument; did you mean {}?", quoted(meant));
            Violation { pointer: shortened(pointer), message }
        })
        .collect()
}

/// What of a name is left without case and separators.
fn letters(name: &str) -> String {
    name.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

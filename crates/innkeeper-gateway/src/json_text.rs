//! Changes of single members of JSON objects, with all other bytes as they were.

use innkeeper_protocol::skim;
use serde_json::Value;

/// Replaces the member `name` of a definition.
pub(crate) fn replace_name(definition: &str, name: &str) -> String {
    skim::replace_member(definition, "name", &Value::from(name).to_string())
}

/// Adds a member to an object if the object does not have it.
pub(crate) fn with_default(object: String, key: &str, value: &str) -> String {
    let has_member = skim::member(&object, key).is_some();
    if has_member { object } else { skim::replace_member(&object, key, value) }
}

/// Returns parameters whose `_meta` has the members of `meta`, each in place of an earlier one.
pub(crate) fn with_meta_member(
    params: Option<&str>,
    key: &str,
    meta: &Value,
) -> Box<serde_json::value::RawValue> {
    let params = params.unwrap_or("{}");
    let old = skim::member(params, "_meta").unwrap_or("{}");
    let member = meta.get(key).map(Value::to_string).unwrap_or_default();
    let meta = skim::replace_member(old, key, &member);
    let text = skim::replace_member(params, "_meta", &meta);
    serde_json::value::RawValue::from_string(text).unwrap_or_default()
}

//! Changes single members of a JSON object.

use innkeeper_protocol::skim;

/// Replaces every member `key`; adds it if the object has none.
pub(crate) fn replace_member(object: &str, key: &str, value: &str) -> String {
    let mut text = String::with_capacity(object.len() + key.len() + value.len() + 8);
    let (mut last, mut found) = (0, false);
    for (name, old) in skim::members(object) {
        if skim::decode_key(name) != key {
            continue;
        }
        found = true;
        let start = old.as_ptr() as usize - object.as_ptr() as usize;
        text.push_str(&object[last..start]);
        text.push_str(value);
        last = start + old.len();
    }
    if found {
        text.push_str(&object[last..]);
        return text;
    }
    let trimmed = object.trim_end();
    let body = trimmed.strip_suffix('}').unwrap_or(trimmed);
    text.push_str(body);
    if skim::members(object).next().is_some() {
        text.push(',');
    }
    text.push_str(&serde_json::Value::from(key).to_string());
    text.push(':');
    text.push_str(value);
    text.push('}');
    text
}

/// Removes every member `key`.
pub(crate) fn remove_member(object: &str, key: &str) -> String {
    if skim::member(object, key).is_none() {
        return object.to_owned();
    }
    let kept = skim::members(object).filter(|(name, _)| skim::decode_key(name) != key);
    let kept: Vec<String> = kept.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", kept.join(","))
}

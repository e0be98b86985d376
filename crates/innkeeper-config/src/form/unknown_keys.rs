//! Warnings about unknown keys, with suggestions.

use serde_json::{Map, Value};

use crate::form::dialect;
use crate::text::key_path::KeyPath;
use crate::text::source_text::Diagnostics;
use crate::text::tree::{JsonMember, JsonNode, NodeKind};

/// Returns the candidate closest to `name`, if it is similar enough.
pub(crate) fn similar<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    // A longer key cannot be a misspelled known key, and the comparison would cost too much.
    if name.len() > crate::name::MAX_NAME_CHARS {
        return None;
    }
    let mut exact = candidates.clone();
    exact
        .find(|candidate| candidate.eq_ignore_ascii_case(name))
        .or_else(|| crate::name::closest(name, candidates))
}

/// Warns about one unknown key.
pub(crate) fn report_unknown_key(
    member: &JsonMember,
    key_path: &KeyPath<'_>,
    known_keys: &[impl AsRef<str>],
    report: &mut Diagnostics,
) {
    if member.key == "sandboxEnabled" && matches!(member.value.kind, NodeKind::Bool(true)) {
        report.error(member.at, key_path, "this host has another sandbox");
        report.hint("remove the key, or write `sandbox` with `read`, `write` and `network`");
        return;
    }
    if dialect::IGNORED_KEYS.contains(&member.key.as_str()) {
        report.warning(member.at, key_path, "not supported by this host; ignored");
        return;
    }
    if dialect::is_restriction(&member.key) {
        // Without the restriction, the server could do more than its file allows.
        report.error(member.at, key_path, "unknown key");
        report.hint("restrict the tools with `tools.allow` and `tools.deny`");
        return;
    }
    report.warning(member.at, key_path, "unknown key");
    if report.is_full() {
        return;
    }
    let known_keys = known_keys.iter().map(AsRef::as_ref);
    let synonym = dialect::key_synonym(&member.key);
    let synonym = synonym.filter(|synonym| known_keys.clone().any(|key| key == *synonym));
    if let Some(suggestion) = synonym.or_else(|| similar(&member.key, known_keys)) {
        report.hint(format!("did you mean `{suggestion}`?"));
    }
}

/// Removes unknown top-level keys from an entry and warns about unknown keys at every level.
pub(crate) fn remove_unknown_keys(
    node: &mut JsonNode,
    schema: &Value,
    path: &str,
    report: &mut Diagnostics,
) -> Vec<JsonMember> {
    report_nested(node, schema, schema, &KeyPath::from_prefix(path), report);
    let known_keys = properties(schema, schema);
    let NodeKind::Object(members) = &mut node.kind else {
        return Vec::new();
    };
    let (known_members, unknown): (Vec<_>, Vec<_>) =
        std::mem::take(members).into_iter().partition(|member| {
            known_keys.is_none_or(|known_keys| known_keys.contains_key(&member.key))
        });
    *members = known_members;
    unknown
}

fn report_nested(
    node: &JsonNode,
    schema: &Value,
    root: &Value,
    key_path: &KeyPath<'_>,
    report: &mut Diagnostics,
) {
    let Some(known_keys) = properties(schema, root) else {
        return;
    };
    let names: Vec<&String> = known_keys.keys().collect();
    for member in node.members() {
        let key_path = member.key_path(key_path);
        match known_keys.get(&member.key) {
            Some(schema) => report_nested(&member.value, schema, root, &key_path, report),
            None => report_unknown_key(member, &key_path, &names, report),
        }
    }
}

/// Returns the properties of an object schema; `None` for a map with arbitrary names.
fn properties<'s>(schema: &'s Value, root: &'s Value) -> Option<&'s Map<String, Value>> {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = root.pointer(name.strip_prefix('#')?)?;
        return schema["properties"].as_object();
    }
    schema["properties"].as_object()
}

//! Rewrites a server entry from other hosts' spelling to ours and keeps positions.

use std::collections::HashSet;

use crate::form::dialect::{self, KeyMapping};
use crate::form::document::ServerEntry;
use crate::text::key_path::{KeyPath, escape_for_message};
use crate::text::source_text::Diagnostics;
use crate::text::tree::{JsonMember, JsonNode, NodeKind, SourceKey};

/// Rewrites the entry to the keys, units and shapes of the schema.
pub(crate) fn normalise(entry: &mut ServerEntry, report: &mut Diagnostics) {
    let path = std::mem::take(&mut entry.path);
    let foreign = entry.foreign;
    if let NodeKind::Object(members) = &mut entry.node.kind {
        let milliseconds = entry.milliseconds
            || members
                .iter()
                .any(|member| dialect::MILLISECOND_KEYS.contains(&member.key.as_str()));
        let key_path = KeyPath::from_prefix(&path);
        flatten_transport(members);
        normalize_timeout(members, &key_path, TimeoutUnits { foreign, milliseconds }, report);
        rename_foreign_keys(members, &key_path, report);
        for member in members {
            reshape(member, &key_path, report);
        }
    }
    entry.path = path;
}

/// Moves the keys of a nested `transport` into the entry.
fn flatten_transport(members: &mut Vec<JsonMember>) {
    let nested =
        members.iter().position(|member| member.key == "transport" && member.value.is_object());
    if let Some(index) = nested
        && let NodeKind::Object(inner) = members.remove(index).value.kind
    {
        members.splice(index..index, inner);
    }
}

#[derive(Clone, Copy)]
struct TimeoutUnits {
    /// Whether the entry is under `mcpServers`.
    foreign: bool,
    /// Whether the entry has a key, or is in a file, of a host that uses milliseconds.
    milliseconds: bool,
}

/// Converts a `timeout` in milliseconds to seconds, with a warning.
fn normalize_timeout(
    members: &mut [JsonMember],
    key_path: &KeyPath<'_>,
    units: TimeoutUnits,
    report: &mut Diagnostics,
) {
    let Some(member) = members.iter_mut().find(|member| member.key == "timeout") else {
        return;
    };
    let Some(number) = member.value.as_f64() else {
        return;
    };
    let from_host = units.milliseconds && number >= dialect::MIN_TIMEOUT_MILLISECONDS;
    let from_size = units.foreign && number > dialect::MAX_TIMEOUT_SECONDS;
    if from_host || from_size {
        let seconds = number / 1000.0;
        report.warning(
            member.value.at,
            key_path.key("timeout"),
            format!("`{number}` is read as milliseconds, as in other hosts"),
        );
        report.hint(format!("write `{seconds}` (seconds)"));
        member.value.kind = NodeKind::Number(seconds.to_string());
    }
}

fn rename_foreign_keys(
    members: &mut Vec<JsonMember>,
    key_path: &KeyPath<'_>,
    report: &mut Diagnostics,
) {
    let (mut foreign, mut canonical): (Vec<_>, Vec<_>) = std::mem::take(members)
        .into_iter()
        .partition(|member| dialect::key_mapping(&member.key).is_some());
    // Names of whole objects come first, so that the other keys add to the objects.
    foreign.sort_by_key(|member| {
        !matches!(dialect::key_mapping(&member.key), Some(KeyMapping::Alias(_)))
    });
    for member in canonical.iter_mut().filter(|member| member.key == "tools") {
        wrap_tool_list(member);
    }
    let mut implied: Option<JsonMember> = None;
    for member in foreign {
        let at = member.at;
        match dialect::key_mapping(&member.key) {
            None => canonical.push(member),
            Some(KeyMapping::Alias(key)) => {
                insert_member(&mut canonical, "", with_key(member, key), key_path, report);
            }
            Some(KeyMapping::AliasWithTransport(key, transport)) => {
                let value = JsonNode { at, kind: NodeKind::String(transport.to_owned()) };
                implied = Some(with_key(JsonMember { value, ..member.clone() }, "type"));
                insert_member(&mut canonical, "", with_key(member, key), key_path, report);
            }
            Some(KeyMapping::Negated(key)) => {
                insert_member(
                    &mut canonical,
                    "",
                    with_key(opposite(member), key),
                    key_path,
                    report,
                );
            }
            Some(KeyMapping::Nested(outer, key)) => {
                insert_nested(&mut canonical, outer, with_key(member, key), key_path, report);
            }
            Some(KeyMapping::Milliseconds(key)) => {
                let member = with_key(in_seconds(member), key);
                insert_member(&mut canonical, "", member, key_path, report);
            }
            Some(KeyMapping::BearerVariable) => {
                let header =
                    variable_member(&member, "Authorization", |name| format!("Bearer ${{{name}}}"));
                insert_nested(&mut canonical, "headers", header, key_path, report);
            }
            Some(KeyMapping::HeaderVariables) => {
                if !member.value.is_object() {
                    report.error(at, member.key_path(key_path), "expected object");
                }
                for header in member.value.members() {
                    let header = variable_member(header, &header.key, reference);
                    insert_nested(&mut canonical, "headers", header, key_path, report);
                }
            }
            Some(KeyMapping::InheritedVariables) => {
                inherit_variables(&mut canonical, &member, key_path, report);
            }
        }
    }
    if canonical.iter().all(|member| member.key != "type") {
        canonical.extend(implied);
    }
    *members = canonical;
}

fn reference(variable: &str) -> String {
    format!("${{{variable}}}")
}

/// Returns a member with a text that contains the variable that `member` names. The schema rejects
/// another value than a name.
fn variable_member(member: &JsonMember, key: &str, text: impl Fn(&str) -> String) -> JsonMember {
    let mut renamed = with_key(member.clone(), key);
    if let NodeKind::String(variable) = &member.value.kind {
        renamed.value.kind = NodeKind::String(text(variable));
    }
    renamed
}

/// Adds the variables that a server inherits to `env`. An item is a name, or an object with the
/// name and the machine that has the variable. A value in `env` takes precedence.
fn inherit_variables(
    members: &mut Vec<JsonMember>,
    member: &JsonMember,
    key_path: &KeyPath<'_>,
    report: &mut Diagnostics,
) {
    if !matches!(member.value.kind, NodeKind::Array(_)) {
        report.error(member.at, member.key_path(key_path), "expected array");
    }
    for item in member.value.items() {
        let source = item.get("source").map(|source| source.value.as_str());
        let named =
            item.get("name").filter(|_| source.is_none_or(|source| source == Some("local")));
        let name = item.as_str().or_else(|| named.and_then(|name| name.value.as_str()));
        let Some(name) = name else {
            let message = "not the name of a local variable; ignored";
            report.warning(item.at, member.key_path(key_path), message);
            continue;
        };
        let env = members.iter().find(|existing| existing.key == "env");
        if env.is_some_and(|env| env.value.get(name).is_some()) {
            continue;
        }
        let value = JsonNode { at: item.at, kind: NodeKind::String(reference(name)) };
        let variable = with_key(JsonMember { value, ..member.clone() }, name);
        insert_nested(members, "env", variable, key_path, report);
    }
}

fn in_seconds(mut member: JsonMember) -> JsonMember {
    if let Some(milliseconds) = member.value.as_f64() {
        member.value.kind = NodeKind::Number((milliseconds / 1000.0).to_string());
    }
    member
}

fn opposite(mut member: JsonMember) -> JsonMember {
    if let NodeKind::Bool(value) = &mut member.value.kind {
        *value = !*value;
    }
    member
}

/// Moves a member into a nested object, and creates the object if it is missing.
fn insert_nested(
    members: &mut Vec<JsonMember>,
    outer: &str,
    member: JsonMember,
    key_path: &KeyPath<'_>,
    report: &mut Diagnostics,
) {
    // The schema rejects a value that is not an object.
    if let Some(existing) = members.iter_mut().find(|existing| existing.key == outer) {
        let path = existing.key_path(&KeyPath::root()).to_string();
        if let NodeKind::Object(inside) = &mut existing.value.kind {
            insert_member(inside, &path, member, key_path, report);
        }
        return;
    }
    let at = member.at;
    let key = outer.to_owned();
    let value = JsonNode { at, kind: NodeKind::Object(vec![member]) };
    members.push(JsonMember { key, source_key: SourceKey::Absent, at, value });
}

fn with_key(member: JsonMember, key: &str) -> JsonMember {
    JsonMember { key: key.to_owned(), source_key: SourceKey::Alias(member.key), ..member }
}

/// Adds a member unless the entry already has another spelling of the same key. `path` leads from
/// the entry to these members.
fn insert_member(
    members: &mut Vec<JsonMember>,
    path: &str,
    member: JsonMember,
    key_path: &KeyPath<'_>,
    report: &mut Diagnostics,
) {
    match members.iter().find(|other| other.key == member.key) {
        None => members.push(member),
        Some(other) => {
            let other = other.key_path(&KeyPath::from_prefix(path)).to_string();
            let message = format!("means the same as `{other}`; remove one of the two keys");
            report.error(member.at, member.key_path(key_path), message);
        }
    }
}

fn reshape(member: &mut JsonMember, key_path: &KeyPath<'_>, report: &mut Diagnostics) {
    match member.key.as_str() {
        "type" => {
            if let NodeKind::String(text) = &mut member.value.kind
                && let Some(canonical) = dialect::canonical_transport(text)
            {
                canonical.clone_into(text);
            }
        }
        "sandbox" if is_vscode_sandbox(&member.value) => {
            let key = std::mem::replace(&mut member.key, dialect::VSCODE_SANDBOX.to_owned());
            member.source_key = SourceKey::Alias(key);
        }
        "env" => stringify_scalars(&mut member.value),
        "headers" => {
            let path = member.key_path(key_path).to_string();
            parse_header_lines(&mut member.value, &KeyPath::from_prefix(&path), report);
            stringify_scalars(&mut member.value);
        }
        _ => {}
    }
}

/// Rewrites `"tools": ["a"]` to an `allow` list.
fn wrap_tool_list(member: &mut JsonMember) {
    if let NodeKind::Array(_) = &member.value.kind {
        let at = member.value.at;
        let list = JsonNode { at, kind: std::mem::replace(&mut member.value.kind, NodeKind::Null) };
        let key = "allow".to_owned();
        let allow = JsonMember { key, source_key: SourceKey::Absent, at, value: list };
        member.value.kind = NodeKind::Object(vec![allow]);
    }
}

/// Returns whether this is VS Code's `sandbox`: VS Code's has only objects inside, ours has none.
fn is_vscode_sandbox(node: &JsonNode) -> bool {
    ["filesystem", "network"]
        .iter()
        .any(|key| node.get(key).is_some_and(|member| member.value.is_object()))
}

/// Converts numbers and booleans to strings as written in the file.
fn stringify_scalars(node: &mut JsonNode) {
    if let NodeKind::Object(members) = &mut node.kind {
        for member in members {
            match &member.value.kind {
                NodeKind::Number(literal) => member.value.kind = NodeKind::String(literal.clone()),
                NodeKind::Bool(value) => member.value.kind = NodeKind::String(value.to_string()),
                NodeKind::Null | NodeKind::String(_) | NodeKind::Array(_) | NodeKind::Object(_) => {
                }
            }
        }
    }
}

/// Converts `["Name: value"]` to an object.
fn parse_header_lines(node: &mut JsonNode, key_path: &KeyPath<'_>, report: &mut Diagnostics) {
    let NodeKind::Array(lines) = &node.kind else {
        return;
    };
    let mut headers: Vec<JsonMember> = Vec::with_capacity(lines.len());
    let mut seen = HashSet::new();
    for (index, line) in lines.iter().enumerate() {
        let key_path = key_path.index(index);
        match line.as_str().and_then(|text| text.split_once(':')) {
            Some((name, value)) if seen.insert(name.trim()) => {
                headers.push(JsonMember {
                    key: name.trim().to_owned(),
                    source_key: SourceKey::Element(index),
                    at: line.at,
                    value: JsonNode {
                        at: line.at,
                        kind: NodeKind::String(value.trim().to_owned()),
                    },
                });
            }
            Some((name, _)) => {
                report.error(
                    line.at,
                    key_path,
                    format!("duplicate header `{}`", escape_for_message(name.trim())),
                );
            }
            None => report.error(line.at, key_path, "expected `Name: value`"),
        }
    }
    node.kind = NodeKind::Object(headers);
}

//! Compares two locks: servers, their identities and their tools.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use super::change::{ChangeClass, ChangeCollector, PinChange};
use super::text_changes::{ToolNames, equal_ignoring_whitespace, new_warning};
use super::{Lock, PinnedServer, PinnedTool, definition};
use crate::text::model_visible_text;

/// Returns the changes from `pinned` to `current`.
pub(super) fn compare_locks(pinned: &Lock, current: &Lock) -> Vec<PinChange> {
    let names = ToolNames::from_lock(current);
    let all: BTreeSet<&String> = pinned.servers.keys().chain(current.servers.keys()).collect();
    all.into_iter()
        .flat_map(|name| match (pinned.servers.get(name), current.servers.get(name)) {
            (Some(before), Some(after)) => compare_servers(&names, name, before, after),
            (Some(before), None) => removed_server(name, before),
            (None, Some(after)) => added_server(&names, name, after),
            (None, None) => Vec::new(),
        })
        .collect()
}

fn removed_server(name: &str, before: &PinnedServer) -> Vec<PinChange> {
    let mut changes = ChangeCollector { server: name, tool: None, list: Vec::new() };
    changes.add(ChangeClass::Breaking, "server removed", to_json(&before.launch), None);
    changes.list
}

fn added_server(names: &ToolNames<'_>, name: &str, after: &PinnedServer) -> Vec<PinChange> {
    let mut changes = ChangeCollector { server: name, tool: None, list: Vec::new() };
    changes.add(ChangeClass::Compatible, "server added", None, to_json(&after.launch));
    if let Some(text) = &after.instructions
        && let Some(reason) = new_warning(names, name, "", &text.text)
    {
        let description = format!("instructions: {reason}");
        changes.add(ChangeClass::Suspicious, description, None, Some(json!(text.text)));
    }
    let mut all = changes.into_sorted();
    // One change for a new server, and one for each suspicious tool.
    let tools = after.tools.iter().flat_map(|(tool, pin)| added_tool(names, name, tool, pin));
    all.extend(tools.filter(|change| change.class == ChangeClass::Suspicious));
    all
}

fn compare_servers(
    names: &ToolNames<'_>,
    name: &str,
    before: &PinnedServer,
    after: &PinnedServer,
) -> Vec<PinChange> {
    let mut changes = ChangeCollector { server: name, tool: None, list: Vec::new() };
    compare_identity(&mut changes, before, after);
    compare_instructions(names, &mut changes, before, after);
    let mut all = changes.into_sorted();
    let tools: BTreeSet<&String> = before.tools.keys().chain(after.tools.keys()).collect();
    for tool in tools {
        match (before.tools.get(tool), after.tools.get(tool)) {
            (Some(before), Some(after)) if before.hash != after.hash => {
                all.extend(definition::compare_definitions(names, name, tool, before, after));
            }
            (Some(before), None) => {
                let mut changes =
                    ChangeCollector { server: name, tool: Some(tool), list: Vec::new() };
                let before = definition::parse_definition(&before.definition);
                changes.add(ChangeClass::Breaking, "tool removed", before, None);
                all.extend(changes.list);
            }
            (None, Some(after)) => all.extend(added_tool(names, name, tool, after)),
            (Some(_) | None, Some(_) | None) => {}
        }
    }
    all
}

/// Compares launch, package and reported identity.
fn compare_identity(
    changes: &mut ChangeCollector<'_>,
    before: &PinnedServer,
    after: &PinnedServer,
) {
    if before.launch != after.launch {
        let old = to_json(&before.launch);
        let new = to_json(&after.launch);
        changes.add(ChangeClass::Suspicious, "launch changed", old, new);
    } else if before.package != after.package {
        let old = to_json(&before.package);
        let new = to_json(&after.package);
        changes.add(ChangeClass::Suspicious, "package changed", old, new);
    }
    if before.server_info == after.server_info {
        return;
    }
    let [old_name, new_name] =
        [before, after].map(|server| server.server_info.as_ref().and_then(|it| it.name.as_ref()));
    // A package with an unchanged exact version and a new identity is suspicious.
    let exact = after.package.as_ref().is_some_and(|package| package.version.is_some());
    let suspicious = old_name != new_name || exact && before.launch == after.launch;
    let change_class = if suspicious { ChangeClass::Suspicious } else { ChangeClass::Compatible };
    let old = to_json(&before.server_info);
    let new = to_json(&after.server_info);
    changes.add(change_class, "serverInfo changed", old, new);
}

fn compare_instructions(
    names: &ToolNames<'_>,
    changes: &mut ChangeCollector<'_>,
    before: &PinnedServer,
    after: &PinnedServer,
) {
    if before.instructions == after.instructions {
        return;
    }
    let [old, new] = [before, after].map(|server| server.instructions.as_ref().map(|it| &*it.text));
    let (change_class, reason) = classify_text_change(names, changes.server, old, new);
    changes.add(
        change_class,
        format!("instructions: {reason}"),
        old.map(Value::from),
        new.map(Value::from),
    );
}

/// Classifies a change of text for models; returns the class and the description.
pub(super) fn classify_text_change(
    names: &ToolNames<'_>,
    server: &str,
    before: Option<&str>,
    after: Option<&str>,
) -> (ChangeClass, &'static str) {
    let Some(after) = after else { return (ChangeClass::Compatible, "removed") };
    let old = before.unwrap_or_default();
    match new_warning(names, server, old, after) {
        Some(reason) => (ChangeClass::Suspicious, reason),
        None if equal_ignoring_whitespace(old, after) => {
            (ChangeClass::Compatible, "whitespace changed")
        }
        None if before.is_none() => (ChangeClass::Suspicious, "added"),
        None => (ChangeClass::Suspicious, "text changed"),
    }
}

fn added_tool(names: &ToolNames<'_>, server: &str, tool: &str, pin: &PinnedTool) -> Vec<PinChange> {
    let mut changes = ChangeCollector { server, tool: Some(tool), list: Vec::new() };
    let definition = definition::parse_definition(&pin.definition);
    let text = model_visible_text(pin.definition.get());
    let (change_class, description) =
        match (names.find_look_alike(server, tool), new_warning(names, server, "", &text)) {
            (Some(other), _) => {
                (ChangeClass::Suspicious, format!("tool added: its name looks like `{other}`"))
            }
            (None, Some(reason)) => (ChangeClass::Suspicious, format!("tool added: {reason}")),
            (None, None) if definition::has_ambiguous_members(pin) => {
                (ChangeClass::Suspicious, format!("tool added: {}", definition::AMBIGUOUS))
            }
            (None, None) => (ChangeClass::Compatible, "tool added".to_owned()),
        };
    changes.add(change_class, description, None, definition);
    changes.list
}

fn to_json(item: &impl Serialize) -> Option<Value> {
    serde_json::to_value(item).ok().filter(|value| !value.is_null())
}

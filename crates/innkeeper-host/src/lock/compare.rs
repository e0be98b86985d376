//! What differs between two locks: servers, who they are, and which tools they have.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use super::change::{Change, ChangeClass, Changes};
use super::text::{Names, alarm, same_words};
use super::{Lock, PinnedServer, PinnedTool, definition};
use crate::text::said;

/// What differs in `found` from `pinned`.
pub(super) fn locks(pinned: &Lock, found: &Lock) -> Vec<Change> {
    let names = Names::of(found);
    let all: BTreeSet<&String> = pinned.servers.keys().chain(found.servers.keys()).collect();
    let of_one = |name: &String| match (pinned.servers.get(name), found.servers.get(name)) {
        (Some(before), Some(after)) => both(&names, name, before, after),
        (Some(before), None) => gone(name, before),
        (None, Some(after)) => new(&names, name, after),
        (None, None) => Vec::new(),
    };
    all.into_iter().flat_map(of_one).collect()
}

fn gone(name: &str, before: &PinnedServer) -> Vec<Change> {
    let mut changes = Changes { server: name, tool: None, list: Vec::new() };
    changes.tell(ChangeClass::Breaking, "server removed", value(&before.launch), None);
    changes.list
}

fn new(names: &Names<'_>, name: &str, after: &PinnedServer) -> Vec<Change> {
    let mut changes = Changes { server: name, tool: None, list: Vec::new() };
    changes.tell(ChangeClass::Compatible, "server added", None, value(&after.launch));
    if let Some(text) = &after.instructions
        && let Some(why) = alarm(names, name, "", &text.text)
    {
        let what = format!("instructions: {why}");
        changes.tell(ChangeClass::Suspicious, what, None, Some(json!(text.text)));
    }
    let mut all = changes.sorted();
    // One line for a new server, and one for each of its tools that should be looked at.
    let tools = after.tools.iter().flat_map(|(tool, pin)| added(names, name, tool, pin));
    all.extend(tools.filter(|change| change.class == ChangeClass::Suspicious));
    all
}

fn both(names: &Names<'_>, name: &str, before: &PinnedServer, after: &PinnedServer) -> Vec<Change> {
    let mut changes = Changes { server: name, tool: None, list: Vec::new() };
    identity(&mut changes, before, after);
    instructions(names, &mut changes, before, after);
    let mut all = changes.sorted();
    let tools: BTreeSet<&String> = before.tools.keys().chain(after.tools.keys()).collect();
    for tool in tools {
        match (before.tools.get(tool), after.tools.get(tool)) {
            (Some(before), Some(after)) if before.hash != after.hash => {
                all.extend(definition::changes(names, (name, tool), before, after));
            }
            (Some(before), None) => {
                let mut changes = Changes { server: name, tool: Some(tool), list: Vec::new() };
                let before = definition::read(&before.definition);
                changes.tell(ChangeClass::Breaking, "tool removed", before, None);
                all.extend(changes.list);
            }
            (None, Some(after)) => all.extend(added(names, name, tool, after)),
            (Some(_) | None, Some(_) | None) => {}
        }
    }
    all
}

/// What is started and who answers.
fn identity(changes: &mut Changes<'_>, before: &PinnedServer, after: &PinnedServer) {
    if before.launch != after.launch {
        let (old, new) = (value(&before.launch), value(&after.launch));
        changes.tell(ChangeClass::Suspicious, "launch changed", old, new);
    } else if before.package != after.package {
        let (old, new) = (value(&before.package), value(&after.package));
        changes.tell(ChangeClass::Suspicious, "package changed", old, new);
    }
    if before.server_info == after.server_info {
        return;
    }
    let name = |server: &PinnedServer| server.server_info.as_ref().and_then(|it| it.name.clone());
    // The same exact version of a package that calls itself another one is not the same.
    let exact = after.package.as_ref().is_some_and(|package| package.version.is_some());
    let doubtful = name(before) != name(after) || exact && before.launch == after.launch;
    let class = if doubtful { ChangeClass::Suspicious } else { ChangeClass::Compatible };
    let (old, new) = (value(&before.server_info), value(&after.server_info));
    changes.tell(class, "serverInfo changed", old, new);
}

fn instructions(
    names: &Names<'_>,
    changes: &mut Changes<'_>,
    before: &PinnedServer,
    after: &PinnedServer,
) {
    if before.instructions == after.instructions {
        return;
    }
    let text = |server: &PinnedServer| server.instructions.as_ref().map(|it| it.text.clone());
    let (old, new) = (text(before), text(after));
    let (class, why) = wording(names, changes.server, old.as_deref(), new.as_deref());
    changes.tell(class, format!("instructions: {why}"), old.map(Value::from), new.map(Value::from));
}

/// How bad it is that a text for models changed, and the words for it.
pub(super) fn wording(
    names: &Names<'_>,
    server: &str,
    before: Option<&str>,
    after: Option<&str>,
) -> (ChangeClass, &'static str) {
    let Some(after) = after else { return (ChangeClass::Compatible, "removed") };
    let old = before.unwrap_or_default();
    match alarm(names, server, old, after) {
        Some(why) => (ChangeClass::Suspicious, why),
        None if same_words(old, after) => (ChangeClass::Compatible, "white space changed"),
        None if before.is_none() => (ChangeClass::Suspicious, "added"),
        None => (ChangeClass::Suspicious, "words changed"),
    }
}

fn added(names: &Names<'_>, server: &str, tool: &str, pin: &PinnedTool) -> Vec<Change> {
    let mut changes = Changes { server, tool: Some(tool), list: Vec::new() };
    let definition = definition::read(&pin.definition);
    let text = definition.as_ref().map_or_else(|| pin.definition.get().to_owned(), said);
    let (class, what) = match (names.look_alike(server, tool), alarm(names, server, "", &text)) {
        (Some(other), _) => {
            (ChangeClass::Suspicious, format!("tool added: its name looks like `{other}`"))
        }
        (None, Some(why)) => (ChangeClass::Suspicious, format!("tool added: {why}")),
        (None, None) => (ChangeClass::Compatible, "tool added".to_owned()),
    };
    changes.tell(class, what, None, definition);
    changes.list
}

fn value(of: &impl Serialize) -> Option<Value> {
    serde_json::to_value(of).ok().filter(|value| !value.is_null())
}

//! Claude Code (`.mcp.json`, `~/.claude.json`) and Claude Desktop.

use serde_json::{Map, Value};

use super::collect::{Group, servers_under, unread};
use super::entry::Entry;
use super::place::{File, Part, Places};
use super::{ImportError, reach, variables};

pub(super) fn group(file: &File, document: &Value, places: &Places) -> Result<Group, ImportError> {
    let nothing = Value::Object(Map::new());
    let cwd = places.cwd.to_string_lossy();
    let project = document.get("projects").and_then(|projects| projects.get(&*cwd));
    let holder = match file.part {
        Part::ClaudeLocal => project.unwrap_or(&nothing),
        _ => document,
    };
    let mut servers = servers_under(file, holder, &["mcpServers"])?;
    if file.part == Part::ClaudeLocal || file.part == Part::ClaudeUser {
        let off = project.and_then(|project| project.get("disabledMcpServers"));
        switch_off(&mut servers, off);
    }
    if file.part == Part::ClaudeDesktop {
        servers.values_mut().for_each(variables::escape);
    }
    let whole = file.part == Part::ClaudeProject;
    let notes = if whole { unread(document, &["mcpServers", "$schema"]) } else { Vec::new() };
    Ok(Group { servers, notes })
}

/// Marks the servers that a list of names switches off.
fn switch_off(servers: &mut Map<String, Value>, names: Option<&Value>) {
    for name in names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if let Some(Value::Object(server)) = servers.get_mut(name) {
            server.insert("disabled".to_owned(), true.into());
        }
    }
}

pub(super) fn translate(part: Part, entry: &mut Entry) -> bool {
    let reachable = reach::carry(entry);
    entry.carry_switch();
    if part == Part::ClaudeDesktop {
        return reachable;
    }
    entry.carry_time("timeout", 1000, "timeout");
    entry.carry("oauth", "oauth");
    entry.leave(
        "headersHelper",
        "no shell is run to make headers; write the program and its arguments as a list",
    );
    entry.leave("alwaysLoad", "every server is loaded");
    reachable
}

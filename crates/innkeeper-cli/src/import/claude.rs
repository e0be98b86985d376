//! Claude Code (`.mcp.json`, `~/.claude.json`) and Claude Desktop.

use serde_json::{Map, Value};

use super::collect::{ParsedServers, note_unknown_keys, servers_under};
use super::entry::ServerEntry;
use super::source_file::{BaseDirectories, ConfigScope, SourceFile};
use super::{ImportError, variables};

pub(super) fn parse_servers(
    file: &SourceFile,
    document: &Value,
    directories: &BaseDirectories,
) -> Result<ParsedServers, ImportError> {
    let nothing = Value::Object(Map::new());
    let cwd = directories.cwd.to_string_lossy();
    let project = document.get("projects").and_then(|projects| projects.get(&*cwd));
    let holder = match file.scope {
        ConfigScope::ClaudeLocal => project.unwrap_or(&nothing),
        _ => document,
    };
    let mut servers = servers_under(file, holder, &["mcpServers"])?;
    if file.scope == ConfigScope::ClaudeLocal || file.scope == ConfigScope::ClaudeUser {
        let off = project.and_then(|project| project.get("disabledMcpServers"));
        disable_servers(&mut servers, off);
    }
    if file.scope == ConfigScope::ClaudeDesktop {
        servers.values_mut().for_each(variables::escape);
    }
    let is_project = file.scope == ConfigScope::ClaudeProject;
    let notes = if is_project {
        note_unknown_keys(document, &["mcpServers", "$schema"])
    } else {
        Vec::new()
    };
    Ok(ParsedServers { servers, notes })
}

fn disable_servers(servers: &mut Map<String, Value>, names: Option<&Value>) {
    for name in names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if let Some(Value::Object(server)) = servers.get_mut(name) {
            server.insert("disabled".to_owned(), true.into());
        }
    }
}

pub(super) fn translate(scope: ConfigScope, entry: &mut ServerEntry) {
    if scope == ConfigScope::ClaudeDesktop {
        return;
    }
    split_helper(entry);
    entry.skip("alwaysLoad", "all servers are always loaded");
}

/// Converts a helper for headers, which the host gives to a shell. Innkeeper starts programs without
/// a shell.
fn split_helper(entry: &mut ServerEntry) {
    let Some(line) = entry.take_string("headersHelper") else { return };
    let needs_shell = line.contains(['$', '`', '|', '&', ';', '<', '>', '*', '?', '(', '~']);
    match shlex::split(&line).filter(|words| !needs_shell && !words.is_empty()) {
        Some(words) => entry.put_back("headersHelper", words.into()),
        None => entry.add_note(
            "`headersHelper` is not imported: it needs a shell; write the program and its \
             arguments as a list",
        ),
    }
}

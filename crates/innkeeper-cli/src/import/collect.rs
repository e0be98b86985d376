//! Adds the servers of a file to the import result under unique names.

use innkeeper_host::config::name;
use serde_json::{Map, Value};

use super::entry::ServerEntry;
use super::source_file::{BaseDirectories, ConfigScope, SourceFile};
use super::{
    ImportError, ImportNote, ImportResult, claude, codex, cursor, gemini, opencode, other,
    transport, vscode, windsurf, zed,
};

pub(super) struct ParsedServers {
    /// Server definitions in the file's format.
    pub(super) servers: Map<String, Value>,
    /// Notes on the whole file.
    pub(super) notes: Vec<String>,
}

/// Imports every server of a file and adds notes on losses.
pub(super) fn collect_file(
    file: &SourceFile,
    document: &Value,
    directories: &BaseDirectories,
    imported: &mut ImportResult,
) -> Result<(), ImportError> {
    let group = match file.scope {
        ConfigScope::ClaudeLocal
        | ConfigScope::ClaudeProject
        | ConfigScope::ClaudeUser
        | ConfigScope::ClaudeDesktop => claude::parse_servers(file, document, directories),
        ConfigScope::Vscode => vscode::parse_servers(file, document),
        ConfigScope::Cursor => cursor::parse_servers(file, document),
        ConfigScope::Gemini => gemini::parse_servers(file, document),
        ConfigScope::Codex => codex::parse_servers(file, document),
        ConfigScope::Windsurf => windsurf::parse_servers(file, document),
        ConfigScope::Opencode => opencode::parse_servers(file, document),
        ConfigScope::Zed => zed::parse_servers(file, document),
        ConfigScope::Other => other::parse_servers(file, document),
    }?;
    let say = |server: Option<&str>, text: String| ImportNote {
        file: file.display_path.clone(),
        server: server.map(str::to_owned),
        text,
    };
    imported.notes.extend(group.notes.into_iter().map(|text| say(None, text)));
    let before = imported.servers.len();
    for (name, definition) in group.servers {
        let texts = collect_server(file, &name, definition, imported);
        imported.notes.extend(texts.into_iter().map(|text| say(Some(&name), text)));
    }
    let mut added = imported.servers.values().skip(before);
    if inherits_environment(file.scope) && added.any(|server| server["type"] == "stdio") {
        let text = "the host passes all environment variables to servers, but innkeeper passes \
                    only a few; add the missing variables to `env`, or set `inheritEnv`";
        imported.notes.push(say(None, text.to_owned()));
    }
    Ok(())
}

/// Whether the host passes its whole environment to servers.
fn inherits_environment(scope: ConfigScope) -> bool {
    match scope {
        ConfigScope::ClaudeLocal | ConfigScope::ClaudeProject | ConfigScope::ClaudeUser => true,
        ConfigScope::Vscode | ConfigScope::Cursor | ConfigScope::Other => true,
        ConfigScope::Opencode | ConfigScope::Zed => true,
        ConfigScope::ClaudeDesktop
        | ConfigScope::Gemini
        | ConfigScope::Codex
        | ConfigScope::Windsurf => false,
    }
}

fn collect_server(
    file: &SourceFile,
    name: &str,
    definition: Value,
    imported: &mut ImportResult,
) -> Vec<String> {
    let origin = (file.program(), name.to_owned());
    if imported.origins.contains(&origin) {
        return vec!["not imported: an earlier file has a server of the same name".to_owned()];
    }
    let Value::Object(definition) = definition else {
        return vec!["not imported: the definition is not an object".to_owned()];
    };
    let (converted, mut notes) = match convert(file.scope, definition) {
        Ok(converted) => converted,
        Err(reason) => return vec![format!("not imported: {reason}")],
    };
    notes.extend(insert_unique(&mut imported.servers, name, converted.into(), file));
    imported.origins.push(origin);
    notes
}

/// Converts one server. Returns the definition with its notes, or why it cannot be imported.
fn convert(
    scope: ConfigScope,
    definition: Map<String, Value>,
) -> Result<(Map<String, Value>, Vec<String>), String> {
    let mut entry = ServerEntry::new(definition);
    translate(scope, &mut entry);
    if let Some(problem) = entry.rename_keys(uses_milliseconds(scope)).into_iter().next() {
        return Err(problem);
    }
    let reason = missing_transport(&entry);
    if !transport::convert_transport(&mut entry) {
        return Err(reason);
    }
    entry.note_disabled();
    entry.finish()
}

/// Returns why a definition has no transport.
fn missing_transport(entry: &ServerEntry) -> String {
    let command = entry.get("command");
    let url = entry.get("url");
    let stated = entry.get("type").and_then(Value::as_str);
    match (stated, command, url) {
        (_, Some(command), _) if !command.is_string() => "`command` is not a string".to_owned(),
        (_, _, Some(url)) if !url.is_string() => "`url` is not a string".to_owned(),
        (Some(kind), None, Some(_)) => {
            format!("the type is `{kind}`, but the definition has `url` and no `command`")
        }
        (Some(kind), Some(_), None) => {
            format!("the type is `{kind}`, but the definition has `command` and no `url`")
        }
        _ => "the definition has neither `command` nor `url`".to_owned(),
    }
}

/// Converts what only this host writes.
fn translate(scope: ConfigScope, entry: &mut ServerEntry) {
    match scope {
        ConfigScope::ClaudeLocal
        | ConfigScope::ClaudeProject
        | ConfigScope::ClaudeUser
        | ConfigScope::ClaudeDesktop => claude::translate(scope, entry),
        ConfigScope::Vscode => vscode::translate(entry),
        ConfigScope::Cursor => cursor::translate(entry),
        ConfigScope::Gemini => gemini::translate(entry),
        ConfigScope::Codex => codex::translate(entry),
        ConfigScope::Windsurf => windsurf::translate(entry),
        ConfigScope::Opencode => opencode::translate(entry),
        ConfigScope::Zed => zed::translate(entry),
        ConfigScope::Other => cursor::translate(entry),
    }
}

/// Whether the host writes `timeout` in milliseconds.
fn uses_milliseconds(scope: ConfigScope) -> bool {
    match scope {
        ConfigScope::ClaudeLocal
        | ConfigScope::ClaudeProject
        | ConfigScope::ClaudeUser
        | ConfigScope::Gemini => true,
        ConfigScope::ClaudeDesktop
        | ConfigScope::Vscode
        | ConfigScope::Cursor
        | ConfigScope::Codex
        | ConfigScope::Windsurf
        | ConfigScope::Opencode
        | ConfigScope::Zed
        | ConfigScope::Other => false,
    }
}

/// Adds a server under a valid name that is unique, ignoring case.
fn insert_unique(
    servers: &mut Map<String, Value>,
    name: &str,
    definition: Value,
    file: &SourceFile,
) -> Option<String> {
    let fit = sanitize_name(name);
    if servers.get(&fit) == Some(&definition) && fit == name {
        return Some("imported once: an earlier file has the same definition".to_owned());
    }
    let mut unique = fit.clone();
    let mut number = 1;
    while is_taken(servers, &unique) {
        let suffix = match number {
            1 => format!("-{}", file.host.as_str()),
            number => format!("-{}-{number}", file.host.as_str()),
        };
        let start: String = fit.chars().take(name::MAX_NAME_CHARS - suffix.len()).collect();
        unique = format!("{start}{suffix}");
        number += 1;
    }
    let text = match (unique == name, unique == fit) {
        (true, _) => None,
        (false, true) => {
            Some(format!("renamed to `{unique}`: the name is not valid in `mcp.json`"))
        }
        (false, false) => {
            Some(format!("renamed to `{unique}`: an earlier server has the same name"))
        }
    };
    servers.insert(unique, definition);
    text
}

fn is_taken(servers: &Map<String, Value>, name: &str) -> bool {
    servers.keys().any(|other| other.to_lowercase() == name.to_lowercase())
}

/// Returns a valid server name.
fn sanitize_name(name: &str) -> String {
    if name::server_name_problem(name).is_none() {
        return name.to_owned();
    }
    let visible = name.chars().filter(|c| name::server_name_problem(&format!("a{c}")).is_none());
    let sanitized: String = visible.take(name::MAX_NAME_CHARS).collect();
    if sanitized.trim().is_empty() { "server".to_owned() } else { sanitized }
}

/// Returns the servers under any of the given keys of a document.
pub(super) fn servers_under(
    file: &SourceFile,
    document: &Value,
    keys: &[&str],
) -> Result<Map<String, Value>, ImportError> {
    let not_an_object =
        |subject: String| ImportError::NotAnObject { file: file.display_path.clone(), subject };
    let document =
        document.as_object().ok_or_else(|| not_an_object("the top-level value".to_owned()))?;
    let mut servers = Map::new();
    for key in keys {
        match document.get(*key) {
            Some(Value::Object(entries)) => servers.extend(entries.clone()),
            Some(Value::Array(entries)) => {
                servers.extend(entries.iter().filter_map(named_definition));
            }
            Some(Value::Null) | None => {}
            Some(_) => return Err(not_an_object(format!("`{key}`"))),
        }
    }
    Ok(servers)
}

/// Returns the name and the definition of a server in a list of servers.
fn named_definition(entry: &Value) -> Option<(String, Value)> {
    let mut definition = entry.as_object()?.clone();
    let name = definition.shift_remove("name")?.as_str()?.to_owned();
    Some((name, definition.into()))
}

/// Returns notes on unknown keys of a file that only contains servers.
pub(super) fn note_unknown_keys(document: &Value, read: &[&str]) -> Vec<String> {
    let keys = document.as_object().into_iter().flat_map(Map::keys);
    keys.filter(|key| !read.contains(&key.as_str()))
        .map(|key| format!("`{key}` is unknown; not imported"))
        .collect()
}

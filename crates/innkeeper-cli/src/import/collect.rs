//! Adds the servers of a file to the import result under unique names.

use serde_json::{Map, Value};

use super::entry::ServerEntry;
use super::source_file::{BaseDirectories, ConfigScope, SourceFile};
use super::{
    ImportError, ImportNote, ImportResult, claude, codex, cursor, gemini, opencode, vscode,
    windsurf, zed,
};

/// The servers of a parsed file.
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
        ConfigScope::Vscode | ConfigScope::Cursor => true,
        ConfigScope::Opencode | ConfigScope::Zed => true,
        ConfigScope::ClaudeDesktop
        | ConfigScope::Gemini
        | ConfigScope::Codex
        | ConfigScope::Windsurf => false,
    }
}

/// Imports one server; returns notes on the server.
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
    let mut entry = ServerEntry::new(definition.clone());
    if !translate(file.scope, &mut entry) {
        return vec![format!("not imported: {}", missing_transport(&definition))];
    }
    let (converted, mut notes) = entry.finish();
    notes.extend(insert_unique(&mut imported.servers, name, converted.into(), file));
    imported.origins.push(origin);
    notes
}

/// Returns why a definition has no transport.
fn missing_transport(definition: &Map<String, Value>) -> String {
    let find =
        |keys: &[&'static str]| keys.iter().find_map(|key| Some((*key, definition.get(*key)?)));
    let (command, url) = (find(&["command"]), find(&["url", "httpUrl", "serverUrl"]));
    let wrong_type = command.iter().chain(&url).find(|(_, value)| !value.is_string());
    if let Some((key, _)) = wrong_type {
        return format!("`{key}` is not a string");
    }
    let stated = find(&["type", "transport"]).and_then(|(_, value)| value.as_str());
    match (stated, command, url) {
        (Some(kind), None, Some((key, _))) => {
            format!("the type is `{kind}`, but the definition has `{key}` and no `command`")
        }
        (Some(kind), Some(_), None) => {
            format!("the type is `{kind}`, but the definition has `command` and no `url`")
        }
        _ => "the definition has neither `command` nor `url`".to_owned(),
    }
}

/// Converts one server; returns false if the definition has no transport.
fn translate(scope: ConfigScope, entry: &mut ServerEntry) -> bool {
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
    }
}

/// Adds a server under a valid name that is unique, ignoring case.
fn insert_unique(
    servers: &mut Map<String, Value>,
    name: &str,
    definition: Value,
    file: &SourceFile,
) -> Option<String> {
    let is_taken = |servers: &Map<String, Value>, name: &str| {
        servers.keys().any(|other| other.to_lowercase() == name.to_lowercase())
    };
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
        // The name is ASCII, so a byte index is a character index.
        unique = format!("{}{suffix}", &fit[..fit.len().min(MAX_NAME_CHARS - suffix.len())]);
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

/// Maximum number of characters in a server name.
pub(super) const MAX_NAME_CHARS: usize = 128;

/// Returns a valid server name; replaces each invalid character with `-`.
fn sanitize_name(name: &str) -> String {
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' => letter,
        _ => '-',
    };
    let sanitized: String = name.chars().map(plain).take(MAX_NAME_CHARS).collect();
    if sanitized.is_empty() { "server".to_owned() } else { sanitized }
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
            Some(Value::Null) | None => {}
            Some(_) => return Err(not_an_object(format!("`{key}`"))),
        }
    }
    Ok(servers)
}

/// Returns notes on unknown keys of a file that only contains servers.
pub(super) fn note_unknown_keys(document: &Value, read: &[&str]) -> Vec<String> {
    let keys = document.as_object().into_iter().flat_map(Map::keys);
    keys.filter(|key| !read.contains(&key.as_str()))
        .map(|key| format!("`{key}` is unknown; not imported"))
        .collect()
}

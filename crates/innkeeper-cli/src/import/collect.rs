//! The servers of one file put beside those already collected, each under a name of its own.

use serde_json::{Map, Value};

use super::entry::Entry;
use super::place::{File, Part, Places};
use super::{ImportError, Imported, Note, claude, codex, cursor, gemini, vscode};

/// What a dialect knows of a file beyond its servers, and how it reads one of them.
pub(super) struct Group {
    /// The servers as the file has them.
    pub(super) servers: Map<String, Value>,
    /// What is to be said of the file as a whole.
    pub(super) notes: Vec<String>,
}

/// Takes every server of a file over, and notes what cannot be.
pub(super) fn file(
    file: &File,
    document: &Value,
    places: &Places,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let group = match file.part {
        Part::ClaudeLocal | Part::ClaudeProject | Part::ClaudeUser | Part::ClaudeDesktop => {
            claude::group(file, document, places)
        }
        Part::Vscode => vscode::group(file, document),
        Part::Cursor => cursor::group(file, document),
        Part::Gemini => gemini::group(file, document),
        Part::Codex => codex::group(file, document),
    }?;
    let say = |server: Option<&str>, text: String| Note {
        file: file.shown.clone(),
        server: server.map(str::to_owned),
        text,
    };
    imported.notes.extend(group.notes.into_iter().map(|text| say(None, text)));
    let before = imported.servers.len();
    for (name, definition) in group.servers {
        let texts = server(file, &name, definition, imported);
        imported.notes.extend(texts.into_iter().map(|text| say(Some(&name), text)));
    }
    let mut added = imported.servers.values().skip(before);
    if inherits(file.part) && added.any(|server| server["type"] == "stdio") {
        let text = "its servers had the whole environment there and have a short list of it here; \
                    one that misses a variable needs it in `env`, or `inheritEnv`";
        imported.notes.push(say(None, text.to_owned()));
    }
    Ok(())
}

/// Whether a host hands its own environment on to the servers it starts.
fn inherits(part: Part) -> bool {
    match part {
        Part::ClaudeLocal | Part::ClaudeProject | Part::ClaudeUser => true,
        Part::Vscode | Part::Cursor => true,
        Part::ClaudeDesktop | Part::Gemini | Part::Codex => false,
    }
}

/// Takes one server over; gives back what is to be said of it.
fn server(file: &File, name: &str, definition: Value, imported: &mut Imported) -> Vec<String> {
    let origin = (file.program(), name.to_owned());
    if imported.origins.contains(&origin) {
        return vec![
            "is hidden by one of the same name in an earlier file and left out".to_owned(),
        ];
    }
    let Value::Object(definition) = definition else {
        return vec!["is not an object and is left out".to_owned()];
    };
    let mut entry = Entry::new(definition);
    if !translate(file.part, &mut entry) {
        return vec!["says neither `command` nor `url` and is left out".to_owned()];
    }
    let (made, mut notes) = entry.finish();
    notes.extend(keep(&mut imported.servers, name, made.into(), file));
    imported.origins.push(origin);
    notes
}

/// Reads one server; false where it does not say how it is reached.
fn translate(part: Part, entry: &mut Entry) -> bool {
    match part {
        Part::ClaudeLocal | Part::ClaudeProject | Part::ClaudeUser | Part::ClaudeDesktop => {
            claude::translate(part, entry)
        }
        Part::Vscode => vscode::translate(entry),
        Part::Cursor => cursor::translate(entry),
        Part::Gemini => gemini::translate(entry),
        Part::Codex => codex::translate(entry),
    }
}

/// Keeps a server under a name that can be one here and that no other has, whatever the case of its
/// letters.
fn keep(servers: &mut Map<String, Value>, name: &str, made: Value, file: &File) -> Option<String> {
    let taken = |servers: &Map<String, Value>, name: &str| {
        servers.keys().any(|other| other.to_lowercase() == name.to_lowercase())
    };
    let fit = fitted(name);
    if servers.get(&fit) == Some(&made) && fit == name {
        return Some("is the same in an earlier file and is kept once".to_owned());
    }
    let mut own = fit.clone();
    let mut number = 1;
    while taken(servers, &own) {
        let end = match number {
            1 => format!("-{}", file.dialect.word()),
            number => format!("-{}-{number}", file.dialect.word()),
        };
        // All of it is ASCII.
        own = format!("{}{end}", &fit[..fit.len().min(NAME_LIMIT - end.len())]);
        number += 1;
    }
    let text = match (own == name, own == fit) {
        (true, _) => None,
        (false, true) => Some(format!("no server can have this name here; it is called `{own}`")),
        (false, false) => {
            Some(format!("an earlier server has this name too; it is called `{own}` here"))
        }
    };
    servers.insert(own, made);
    text
}

/// The longest name a server can have, in characters.
pub(super) const NAME_LIMIT: usize = 128;

/// A name as servers can have it: what cannot stand in one becomes `-`.
fn fitted(name: &str) -> String {
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' => letter,
        _ => '-',
    };
    let fitted: String = name.chars().map(plain).take(NAME_LIMIT).collect();
    if fitted.is_empty() { "server".to_owned() } else { fitted }
}

/// The servers under one of several keys of a document.
pub(super) fn servers_under(
    file: &File,
    document: &Value,
    keys: &[&str],
) -> Result<Map<String, Value>, ImportError> {
    let not_an_object =
        |key: &str| ImportError::NotAnObject { file: file.shown.clone(), key: key.to_owned() };
    let document = document.as_object().ok_or_else(|| not_an_object("the file"))?;
    let mut servers = Map::new();
    for key in keys {
        match document.get(*key) {
            Some(Value::Object(found)) => servers.extend(found.clone()),
            Some(Value::Null) | None => {}
            Some(_) => return Err(not_an_object(key)),
        }
    }
    Ok(servers)
}

/// Notes for the keys of a file that is all about servers and that nobody reads.
pub(super) fn unread(document: &Value, read: &[&str]) -> Vec<String> {
    let keys = document.as_object().into_iter().flat_map(Map::keys);
    keys.filter(|key| !read.contains(&key.as_str()))
        .map(|key| format!("`{key}` has no meaning here and is not carried over"))
        .collect()
}

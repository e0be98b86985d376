//! What all hosts say in nearly the same words: how a server is started or reached.

use serde_json::{Map, Value};

use super::entry::Entry;

/// Carries everything over that says how the server is reached; false where nothing does.
pub(super) fn carry(entry: &mut Entry) -> bool {
    let stated = entry.take_any(&["type", "transport"]);
    let kind = stated.as_ref().and_then(|value| kind(value.as_str()?));
    if let (Some(stated), None) = (&stated, kind) {
        entry.note(format!("transport {stated} is not known; taken from the other keys instead"));
    }
    let has_url = ["url", "httpUrl", "serverUrl"].iter().any(|key| entry.has(key));
    match kind {
        Some("stdio") => start(entry),
        Some(kind) => connect(entry, Some(kind)),
        None if entry.has("command") => start(entry),
        None if has_url => connect(entry, None),
        None => false,
    }
}

fn kind(word: &str) -> Option<&'static str> {
    Some(match word {
        "stdio" | "local" => "stdio",
        "http" | "streamable-http" | "streamableHttp" | "streamable_http" | "remote" => "http",
        "sse" => "sse",
        "ws" | "websocket" => "websocket",
        _ => return None,
    })
}

fn start(entry: &mut Entry) -> bool {
    let Some(command) = entry.take_text("command") else { return false };
    entry.put("type", "stdio");
    entry.put("command", command);
    match entry.take("args").map(texts) {
        Some(Some(args)) => entry.put("args", args),
        Some(None) => entry.note("`args` is not a list of strings and is not carried over"),
        None => {}
    }
    entry.carry("cwd", "cwd");
    if let Some(env) = entry.take("env") {
        variables(entry, env);
    }
    entry.carry("envFile", "envFile");
    true
}

/// A list of strings; numbers and booleans in it become text.
fn texts(value: Value) -> Option<Value> {
    let Value::Array(items) = value else { return None };
    items.into_iter().map(text).map(|item| item.filter(Value::is_string)).collect()
}

/// A string, number or boolean as text, and null as it is.
fn text(value: Value) -> Option<Value> {
    match value {
        Value::String(_) | Value::Null => Some(value),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(truth) => Some(truth.to_string().into()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn variables(entry: &mut Entry, env: Value) {
    let Value::Object(env) = env else {
        return entry.note("`env` is not an object and is not carried over");
    };
    let mut made = Map::new();
    for (name, value) in env {
        match text(value) {
            Some(value) => drop(made.insert(name, value)),
            None => entry.note(format!("`env.{name}` is not text and is not carried over")),
        }
    }
    entry.put("env", made);
}

fn connect(entry: &mut Entry, kind: Option<&str>) -> bool {
    let Some(url) = ["url", "httpUrl", "serverUrl"].iter().find_map(|key| entry.take_text(key))
    else {
        return false;
    };
    let kind = kind.unwrap_or_else(|| implied(&url));
    if url.starts_with("unix:") || url.starts_with("pipe:") {
        entry.note("its address is a local socket, which cannot be reached from here");
    }
    entry.put("type", kind);
    entry.put("url", url);
    if let Some(value) = entry.take("headers") {
        match headers(value) {
            Some(made) => entry.put("headers", made),
            None => entry.note("`headers` is not a set of headers and is not carried over"),
        }
    }
    true
}

fn implied(url: &str) -> &'static str {
    let socket = url.starts_with("ws://") || url.starts_with("wss://");
    if socket { "websocket" } else { "http" }
}

/// Headers as an object, or as a list of `Name: value`.
fn headers(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(headers) => {
            headers.into_iter().map(|(name, value)| Some((name, text(value)?))).collect()
        }
        Value::Array(lines) => lines
            .into_iter()
            .map(|line| {
                let (name, value) = line.as_str()?.split_once(':')?;
                Some((name.trim().to_owned(), value.trim().into()))
            })
            .collect(),
        _ => None,
    }
}

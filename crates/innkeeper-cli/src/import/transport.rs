//! Converts the transport keys, which all hosts spell nearly the same way.

use serde_json::{Map, Value};

use super::entry::ServerEntry;

/// Converts all transport keys, which have the names of `mcp.json`; returns false if there is no
/// transport.
pub(super) fn convert_transport(entry: &mut ServerEntry) -> bool {
    let stated = entry.take("type");
    let kind = stated.as_ref().and_then(|value| transport_type(value.as_str()?));
    if let (Some(stated), None) = (&stated, kind) {
        entry.add_note(format!(
            "unknown transport {stated}; the other keys determine the transport"
        ));
    }
    match kind {
        Some("stdio") => convert_stdio(entry),
        Some(kind) => convert_remote(entry, Some(kind)),
        None if entry.has("command") => convert_stdio(entry),
        None if entry.has("url") => convert_remote(entry, None),
        None => false,
    }
}

fn transport_type(name: &str) -> Option<&'static str> {
    ["stdio", "http", "sse", "websocket"].into_iter().find(|kind| *kind == name)
}

fn convert_stdio(entry: &mut ServerEntry) -> bool {
    let Some(command) = entry.take_string("command") else { return false };
    let (command, mut args) = split_command(command);
    if !args.is_empty() {
        entry.add_note("`command` contains arguments, which became elements of `args`");
    }
    entry.set("type", "stdio");
    entry.set("command", command);
    match entry.take("args").map(to_strings) {
        Some(Some(more)) => args.extend(more),
        Some(None) => entry.add_note("`args` is not a list of strings; not imported"),
        None => {}
    }
    if !args.is_empty() {
        entry.set("args", args);
    }
    if let Some(env) = entry.take("env") {
        convert_env(entry, env);
    }
    true
}

/// Splits a command line into the program and its arguments. A path may contain white space.
fn split_command(command: String) -> (String, Vec<Value>) {
    let program = command.split_whitespace().next().unwrap_or_default();
    if program.len() == command.len() || program.contains(['/', '\\']) {
        return (command, Vec::new());
    }
    match shlex::split(&command).map(|words| words.into_iter()) {
        Some(mut words) => {
            let program = words.next().unwrap_or_default();
            (program, words.map(Value::from).collect())
        }
        None => (command, Vec::new()),
    }
}

/// Converts numbers and booleans in a list to strings.
fn to_strings(value: Value) -> Option<Vec<Value>> {
    let Value::Array(items) = value else { return None };
    items.into_iter().map(to_string_value).map(|item| item.filter(Value::is_string)).collect()
}

/// Converts a string, number or boolean to a string; keeps null.
fn to_string_value(value: Value) -> Option<Value> {
    match value {
        Value::String(_) | Value::Null => Some(value),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(truth) => Some(truth.to_string().into()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn convert_env(entry: &mut ServerEntry, env: Value) {
    let Value::Object(env) = env else {
        return entry.add_note("`env` is not an object; not imported");
    };
    let mut converted = Map::new();
    for (name, value) in env {
        match to_string_value(value) {
            Some(value) => drop(converted.insert(name, value)),
            None => entry.add_note(format!("`env.{name}` is not a string; not imported")),
        }
    }
    entry.set("env", converted);
}

fn convert_remote(entry: &mut ServerEntry, kind: Option<&str>) -> bool {
    let Some(url) = entry.take_string("url") else { return false };
    let kind = kind.unwrap_or_else(|| infer_transport_type(&url));
    if url.starts_with("pipe:") {
        entry.add_note("`url` is a named pipe; innkeeper does not support named pipes");
    }
    entry.set("type", kind);
    entry.set("url", url);
    true
}

fn infer_transport_type(url: &str) -> &'static str {
    let socket = url.starts_with("ws://") || url.starts_with("wss://");
    if socket { "websocket" } else { "http" }
}

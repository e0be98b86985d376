//! Gemini CLI: `mcpServers` and `mcp` of its `settings.json`.

use serde_json::{Map, Value};

use super::collect::{Group, servers_under};
use super::entry::Entry;
use super::place::File;
use super::{ImportError, reach};

pub(super) fn group(file: &File, document: &Value) -> Result<Group, ImportError> {
    let mut servers = servers_under(file, document, &["mcpServers"])?;
    let names = |key: &str| {
        let listed = document.get("mcp").and_then(|mcp| mcp.get(key))?.as_array()?;
        Some(listed.iter().filter_map(Value::as_str).collect::<Vec<_>>())
    };
    let (allowed, excluded) = (names("allowed"), names("excluded").unwrap_or_default());
    for (name, definition) in &mut servers {
        braces(definition);
        let off = excluded.contains(&name.as_str())
            || allowed.as_ref().is_some_and(|allowed| !allowed.contains(&name.as_str()));
        if let (true, Value::Object(definition)) = (off, definition) {
            definition.insert("disabled".to_owned(), true.into());
        }
    }
    Ok(Group { servers, notes: Vec::new() })
}

pub(super) fn translate(entry: &mut Entry) -> bool {
    let streams = entry.has("httpUrl");
    if streams {
        entry.leave("url", "`httpUrl` wins over it");
    }
    let stated = entry.has("type") || entry.has("transport") || entry.has("command");
    let reachable = reach::carry(entry);
    let over_http = entry.made("type").is_some_and(|kind| kind == "http");
    if over_http && !streams && !stated {
        // A bare `url` is an event stream there, whatever it would be here.
        entry.put("type", "sse");
    }
    entry.carry_switch();
    entry.carry_time("timeout", 1000, "timeout");
    entry.carry_tools("includeTools", "allow");
    entry.carry_tools("excludeTools", "deny");
    if let Some(oauth) = entry.take("oauth") {
        sign_in(entry, oauth);
    }
    entry.leave("trust", "the application decides which calls are confirmed");
    entry.leave("description", "servers describe themselves");
    entry.leave("authProviderType", "sign-in through that provider is not done from here");
    reachable
}

fn sign_in(entry: &mut Entry, oauth: Value) {
    let Value::Object(oauth) = oauth else {
        return entry.note("`oauth` is not an object and is not carried over");
    };
    let mut made = Map::new();
    for (key, value) in oauth {
        match key.as_str() {
            "clientId" | "clientSecret" | "scopes" => drop(made.insert(key, value)),
            "enabled" => {}
            _ => entry.note(format!("`oauth.{key}` has no meaning here and is not carried over")),
        }
    }
    entry.put("oauth", made);
}

/// Writes the `$NAME` of every string as `${NAME}`.
fn braces(value: &mut Value) {
    match value {
        Value::String(text) => *text = braced(text),
        Value::Array(items) => items.iter_mut().for_each(braces),
        Value::Object(members) => members.values_mut().for_each(braces),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn braced(text: &str) -> String {
    let mut made = String::with_capacity(text.len() + 2);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        made.push_str(before);
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = after.find(|c| !is_part(c)).unwrap_or(after.len());
        let (name, after_name) = after.split_at(length);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            made.push('$');
            rest = after;
        } else {
            made.extend(["${", name, "}"]);
            rest = after_name;
        }
    }
    made.push_str(rest);
    made
}

#[cfg(test)]
mod tests {
    use super::braced;

    #[test]
    fn bare_variables_get_braces_and_nothing_else_changes() {
        assert_eq!(braced("$A-${B}$C_1"), "${A}-${B}${C_1}");
        assert_eq!(braced("5$ $1 $$ ${X:-y} $"), "5$ $1 $$ ${X:-y} $");
    }
}

//! opencode: `mcp` in `opencode.json` and `opencode.jsonc`, in the forms of both versions.

use serde_json::{Map, Value};

use super::collect::{ParsedServers, servers_under};
use super::entry::ServerEntry;
use super::source_file::SourceFile;
use super::variables::VariableRewrite;
use super::{ImportError, variables};

/// Keys of a server; the map of servers of the second version has none of these keys.
const SERVER_KEYS: [&str; 4] = ["type", "command", "url", "enabled"];

pub(super) fn parse_servers(
    file: &SourceFile,
    document: &Value,
) -> Result<ParsedServers, ImportError> {
    let nested = document.get("mcp").filter(|mcp| has_server_map(mcp));
    let mut servers = match nested {
        Some(mcp) => servers_under(file, mcp, &["servers"])?,
        None => servers_under(file, document, &["mcp"])?,
    };
    let mut notes = Vec::new();
    for definition in servers.values_mut() {
        // The form of VS Code stands in many files, although opencode does not read it.
        variables::rewrite(definition, &mut |inside| match inside.strip_prefix("env:") {
            Some(name) => VariableRewrite::Replace(format!("{{env:{name}}}")),
            None => VariableRewrite::Keep,
        });
        variables::escape(definition);
        rewrite_references(definition, &mut notes);
    }
    Ok(ParsedServers { servers, notes })
}

/// Whether `mcp` has a map of servers, as in the second version.
fn has_server_map(mcp: &Value) -> bool {
    let servers = mcp.get("servers").and_then(Value::as_object);
    servers.is_some_and(|servers| {
        !SERVER_KEYS.iter().any(|key| servers.get(*key).is_some_and(|value| !value.is_object()))
    })
}

pub(super) fn translate(entry: &mut ServerEntry) {
    split_command_list(entry);
    if let Some(environment) = entry.take("environment") {
        entry.put_back("env", environment);
    }
    convert_timeout(entry);
    match entry.take("oauth") {
        Some(Value::Object(oauth)) => convert_oauth(entry, oauth),
        // `false` turns the discovery off; a server that needs no sign-in is never asked for one.
        Some(Value::Bool(_)) | None => {}
        Some(_) => entry.add_note("`oauth` is not an object; not imported"),
    }
}

/// Converts `command`, a list of the program and its arguments.
fn split_command_list(entry: &mut ServerEntry) {
    match entry.take("command") {
        Some(Value::Array(words)) => {
            let mut words = words.into_iter();
            if let Some(program) = words.next() {
                entry.put_back("command", program);
                let args: Vec<Value> = words.collect();
                if !args.is_empty() {
                    entry.put_back("args", args.into());
                }
            }
        }
        Some(other) => entry.put_back("command", other),
        None => {}
    }
}

/// Converts milliseconds, or an object with the timeouts of the start and of a request.
fn convert_timeout(entry: &mut ServerEntry) {
    match entry.take("timeout") {
        Some(Value::Object(mut timeouts)) => {
            let request = timeouts.remove("request").or_else(|| timeouts.remove("execution"));
            for (key, value) in [("timeout", request), ("initTimeout", timeouts.remove("startup"))]
            {
                if let Some(value) = value {
                    entry.put_back(key, value);
                    entry.convert_duration(key, 1000, key);
                }
            }
        }
        Some(other) => {
            entry.put_back("timeout", other);
            entry.convert_duration("timeout", 1000, "timeout");
        }
        None => {}
    }
}

fn convert_oauth(entry: &mut ServerEntry, oauth: Map<String, Value>) {
    let mut converted = Map::new();
    for (key, value) in oauth {
        match (key.as_str(), value) {
            ("clientId" | "client_id", value) => drop(converted.insert("clientId".into(), value)),
            ("clientSecret" | "client_secret", value) => {
                let _ = converted.insert("clientSecret".into(), value);
            }
            ("redirectUri" | "redirect_uri", value) => {
                let _ = converted.insert("redirectUri".into(), value);
            }
            ("scope", Value::String(scopes)) => {
                let scopes: Vec<&str> = scopes.split_whitespace().collect();
                converted.insert("scopes".to_owned(), scopes.into());
            }
            _ => entry.add_note(format!("`oauth.{key}` is unknown; not imported")),
        }
    }
    entry.set("oauth", converted);
}

/// Rewrites `{env:NAME}` in every string to `${NAME}`.
fn rewrite_references(value: &mut Value, notes: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            if text.contains("{file:") {
                let note = "`{file:…}` is not supported and stays unchanged".to_owned();
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            *text = rewrite_text(text);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite_references(item, notes)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| rewrite_references(member, notes));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn rewrite_text(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{env:") {
        output.push_str(before);
        match after.split_once('}') {
            Some((name, after)) => {
                output.extend(["${", name.trim(), "}"]);
                rest = after;
            }
            None => {
                output.push_str("{env:");
                rest = after;
            }
        }
    }
    output.push_str(rest);
    output
}

#[cfg(test)]
mod tests {
    use super::rewrite_text;

    #[test]
    fn references_to_variables_get_the_form_of_this_host() {
        assert_eq!(rewrite_text("Bearer {env:TOKEN}{env: A }"), "Bearer ${TOKEN}${A}");
        assert_eq!(rewrite_text("{env:open {x}"), "${open {x}");
        assert_eq!(rewrite_text("{env:never"), "{env:never");
        assert_eq!(rewrite_text("{\"a\": 1}"), "{\"a\": 1}");
    }
}

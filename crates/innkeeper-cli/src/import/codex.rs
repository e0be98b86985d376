//! Codex CLI: `[mcp_servers.*]` in `config.toml`.

use serde_json::{Map, Value};

use super::collect::{ParsedServers, servers_under};
use super::entry::ServerEntry;
use super::source_file::SourceFile;
use super::{ImportError, transport, variables};

pub(super) fn parse_servers(
    file: &SourceFile,
    document: &Value,
) -> Result<ParsedServers, ImportError> {
    let mut servers = servers_under(file, document, &["mcp_servers"])?;
    servers.values_mut().for_each(variables::escape);
    Ok(ParsedServers { servers, notes: Vec::new() })
}

pub(super) fn translate(entry: &mut ServerEntry) -> bool {
    let reachable = transport::convert_transport(entry);
    convert_env_vars(entry);
    convert_headers(entry);
    entry.convert_disabled();
    entry.convert("required", "required");
    entry.convert_duration("startup_timeout_ms", 1000, "initTimeout");
    entry.convert_duration("startup_timeout_sec", 1, "initTimeout");
    entry.convert_duration("tool_timeout_sec", 1, "timeout");
    entry.convert_tools("enabled_tools", "allow");
    entry.convert_tools("disabled_tools", "deny");
    if let Some(scopes) = entry.take("scopes") {
        entry.set_member("oauth", "scopes", scopes);
    }
    for key in ["default_tools_approval_mode", "tools"] {
        entry.skip(key, "the application decides which calls need an approval");
    }
    reachable
}

/// Converts `env_vars`: names of variables that the server gets from the environment.
fn convert_env_vars(entry: &mut ServerEntry) {
    let Some(names) = entry.take("env_vars") else { return };
    let Value::Array(names) = names else {
        return entry.add_note("`env_vars` is not a list; not imported");
    };
    for variable in names {
        let local = |table: &Value| table.get("source").is_none_or(|source| source == "local");
        let name = match &variable {
            Value::String(name) => Some(name.as_str()),
            table if local(table) => table.get("name").and_then(Value::as_str),
            _ => None,
        };
        match name {
            Some(name) => {
                let is_set = entry.converted("env").is_some_and(|env| env.get(name).is_some());
                if !is_set {
                    entry.set_member("env", name, variable_reference(name));
                }
            }
            None => {
                entry.add_note("an item of `env_vars` is not a local variable name; not imported");
            }
        }
    }
}

/// Converts headers by value, headers by variable, and the bearer token variable.
fn convert_headers(entry: &mut ServerEntry) {
    match entry.take("http_headers") {
        Some(Value::Object(headers)) => {
            for (name, value) in headers {
                entry.set_member("headers", &name, value);
            }
        }
        Some(_) => entry.add_note("`http_headers` is not a table; not imported"),
        None => {}
    }
    let by_variable = entry.take("env_http_headers");
    for (name, variable) in by_variable.as_ref().and_then(Value::as_object).unwrap_or(&Map::new()) {
        match variable.as_str() {
            Some(variable) => entry.set_member("headers", name, variable_reference(variable)),
            None => entry.add_note(format!(
                "`env_http_headers.{name}` is not a variable name; not imported"
            )),
        }
    }
    if let Some(variable) = entry.take_string("bearer_token_env_var") {
        entry.set_member("headers", "Authorization", format!("Bearer ${{{variable}}}").into());
    }
}

fn variable_reference(variable: &str) -> Value {
    format!("${{{variable}}}").into()
}

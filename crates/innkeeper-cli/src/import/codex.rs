//! Codex CLI: `[mcp_servers.*]` of its `config.toml`.

use serde_json::{Map, Value};

use super::collect::{Group, servers_under};
use super::entry::Entry;
use super::place::File;
use super::{ImportError, reach, variables};

pub(super) fn group(file: &File, document: &Value) -> Result<Group, ImportError> {
    let mut servers = servers_under(file, document, &["mcp_servers"])?;
    servers.values_mut().for_each(variables::escape);
    Ok(Group { servers, notes: Vec::new() })
}

pub(super) fn translate(entry: &mut Entry) -> bool {
    let reachable = reach::carry(entry);
    pass_variables(entry);
    headers(entry);
    entry.carry_switch();
    entry.carry("required", "required");
    entry.carry_time("startup_timeout_ms", 1000, "initTimeout");
    entry.carry_time("startup_timeout_sec", 1, "initTimeout");
    entry.carry_time("tool_timeout_sec", 1, "timeout");
    entry.carry_tools("enabled_tools", "allow");
    entry.carry_tools("disabled_tools", "deny");
    if let Some(scopes) = entry.take("scopes") {
        entry.put_in("oauth", "scopes", scopes);
    }
    for key in ["default_tools_approval_mode", "tools"] {
        entry.leave(key, "the application decides which calls are confirmed");
    }
    reachable
}

/// `env_vars`: names of variables that the server gets from the environment.
fn pass_variables(entry: &mut Entry) {
    let Some(listed) = entry.take("env_vars") else { return };
    let Value::Array(listed) = listed else {
        return entry.note("`env_vars` is not a list and is not carried over");
    };
    for variable in listed {
        let local = |table: &Value| table.get("source").is_none_or(|source| source == "local");
        let name = match &variable {
            Value::String(name) => Some(name.as_str()),
            table if local(table) => table.get("name").and_then(Value::as_str),
            _ => None,
        };
        match name {
            Some(name) => {
                let declared = entry.made("env").is_some_and(|env| env.get(name).is_some());
                if !declared {
                    entry.put_in("env", name, reference(name));
                }
            }
            None => entry.note("an item of `env_vars` is not a local name and is not carried over"),
        }
    }
}

/// Headers by value, by variable, and the bearer token that is named apart.
fn headers(entry: &mut Entry) {
    match entry.take("http_headers") {
        Some(Value::Object(headers)) => {
            for (name, value) in headers {
                entry.put_in("headers", &name, value);
            }
        }
        Some(_) => entry.note("`http_headers` is not a table and is not carried over"),
        None => {}
    }
    let by_variable = entry.take("env_http_headers");
    for (name, variable) in by_variable.as_ref().and_then(Value::as_object).unwrap_or(&Map::new()) {
        match variable.as_str() {
            Some(variable) => entry.put_in("headers", name, reference(variable)),
            None => entry.note(format!("`env_http_headers.{name}` is not a name and is left out")),
        }
    }
    if let Some(variable) = entry.take_text("bearer_token_env_var") {
        entry.put_in("headers", "Authorization", format!("Bearer ${{{variable}}}").into());
    }
}

fn reference(variable: &str) -> Value {
    format!("${{{variable}}}").into()
}

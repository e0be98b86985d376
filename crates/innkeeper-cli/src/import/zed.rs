//! Zed: `context_servers` in `settings.json`.

use serde_json::{Map, Value};

use super::collect::{ParsedServers, servers_under};
use super::entry::ServerEntry;
use super::source_file::SourceFile;
use super::{ImportError, variables};

pub(super) fn parse_servers(
    file: &SourceFile,
    document: &Value,
) -> Result<ParsedServers, ImportError> {
    let mut servers = servers_under(file, document, &["context_servers"])?;
    servers.values_mut().for_each(variables::escape);
    Ok(ParsedServers { servers, notes: Vec::new() })
}

pub(super) fn translate(entry: &mut ServerEntry) {
    flatten_command(entry);
    // `source` says who added the server.
    let _ = entry.take("source");
    if entry.has("settings") {
        entry.skip("settings", "an extension of Zed defines the command of the server");
    }
    if entry.take("remote") == Some(Value::Bool(true)) {
        entry.add_note("`remote` is not imported: innkeeper runs servers on this machine");
    }
    match entry.take("oauth") {
        Some(Value::Object(oauth)) => convert_oauth(entry, oauth),
        Some(_) => entry.add_note("`oauth` is not an object; not imported"),
        None => {}
    }
}

/// Converts the earlier form of `command`: an object with `path`, `args` and `env`.
fn flatten_command(entry: &mut ServerEntry) {
    match entry.take("command") {
        Some(Value::Object(mut command)) => {
            for (from, to) in [("path", "command"), ("args", "args"), ("env", "env")] {
                match command.remove(from) {
                    Some(Value::Null) | None => {}
                    Some(value) => entry.put_back(to, value),
                }
            }
        }
        Some(other) => entry.put_back("command", other),
        None => {}
    }
}

fn convert_oauth(entry: &mut ServerEntry, oauth: Map<String, Value>) {
    let mut converted = Map::new();
    for (key, value) in oauth {
        match key.as_str() {
            "client_id" => drop(converted.insert("clientId".to_owned(), value)),
            "client_secret" => drop(converted.insert("clientSecret".to_owned(), value)),
            _ => entry.add_note(format!("`oauth.{key}` is unknown; not imported")),
        }
    }
    entry.set("oauth", converted);
}

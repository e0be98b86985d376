//! Cursor: `.cursor/mcp.json` of the project and of the user.

use serde_json::{Map, Value};

use super::collect::{ParsedServers, note_unknown_keys, servers_under};
use super::entry::ServerEntry;
use super::source_file::SourceFile;
use super::{ImportError, variables, vscode};

pub(super) fn parse_servers(
    file: &SourceFile,
    document: &Value,
) -> Result<ParsedServers, ImportError> {
    let mut servers = servers_under(file, document, &["mcpServers", "servers"])?;
    let mut notes = note_unknown_keys(document, &["mcpServers", "servers", "$schema"]);
    for definition in servers.values_mut() {
        variables::rewrite(definition, &mut |inside| {
            vscode::rewrite_editor_variable(inside, &mut notes)
        });
    }
    Ok(ParsedServers { servers, notes })
}

pub(super) fn translate(entry: &mut ServerEntry) {
    if let Some(auth) = entry.take("auth") {
        convert_oauth(entry, auth);
    }
    for key in ["autoApprove", "alwaysAllow"] {
        entry.skip(key, "the application decides which calls need an approval");
    }
}

fn convert_oauth(entry: &mut ServerEntry, auth: Value) {
    let Value::Object(auth) = auth else {
        return entry.add_note("`auth` is not an object; not imported");
    };
    let mut oauth = Map::new();
    for (key, value) in auth {
        match key.as_str() {
            "CLIENT_ID" => drop(oauth.insert("clientId".to_owned(), value)),
            "CLIENT_SECRET" => drop(oauth.insert("clientSecret".to_owned(), value)),
            "scopes" => drop(oauth.insert("scopes".to_owned(), value)),
            _ => entry.add_note(format!("`auth.{key}` is unknown; not imported")),
        }
    }
    entry.set("oauth", oauth);
}

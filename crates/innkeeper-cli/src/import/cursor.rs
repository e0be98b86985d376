//! Cursor: `.cursor/mcp.json` of a project and of the user.

use serde_json::{Map, Value};

use super::collect::{Group, servers_under, unread};
use super::entry::Entry;
use super::place::File;
use super::{ImportError, reach, variables, vscode};

pub(super) fn group(file: &File, document: &Value) -> Result<Group, ImportError> {
    let mut servers = servers_under(file, document, &["mcpServers", "servers"])?;
    let mut notes = unread(document, &["mcpServers", "servers", "$schema"]);
    for definition in servers.values_mut() {
        variables::rewrite(definition, &mut |inside| vscode::editor_variable(inside, &mut notes));
    }
    Ok(Group { servers, notes })
}

pub(super) fn translate(entry: &mut Entry) -> bool {
    let reachable = reach::carry(entry);
    entry.carry_switch();
    if let Some(auth) = entry.take("auth") {
        sign_in(entry, auth);
    }
    for key in ["autoApprove", "alwaysAllow"] {
        entry.leave(key, "the application decides which calls are confirmed");
    }
    reachable
}

fn sign_in(entry: &mut Entry, auth: Value) {
    let Value::Object(auth) = auth else {
        return entry.note("`auth` is not an object and is not carried over");
    };
    let mut oauth = Map::new();
    for (key, value) in auth {
        match key.as_str() {
            "CLIENT_ID" => drop(oauth.insert("clientId".to_owned(), value)),
            "CLIENT_SECRET" => drop(oauth.insert("clientSecret".to_owned(), value)),
            "scopes" => drop(oauth.insert("scopes".to_owned(), value)),
            _ => entry.note(format!("`auth.{key}` has no meaning here and is not carried over")),
        }
    }
    entry.put("oauth", oauth);
}

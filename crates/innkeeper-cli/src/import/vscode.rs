//! Visual Studio Code: `.vscode/mcp.json`, the profile's `mcp.json`, Copilot's.

use indexmap::IndexMap;
use serde_json::Value;

use super::collect::{Group, servers_under, unread};
use super::entry::Entry;
use super::place::File;
use super::variables::{self, Fate};
use super::{ImportError, reach};

pub(super) fn group(file: &File, document: &Value) -> Result<Group, ImportError> {
    let mut servers = servers_under(file, document, &["servers", "mcpServers"])?;
    let mut notes = unread(document, &["servers", "mcpServers", "inputs", "$schema"]);
    let inputs = Inputs::new(document.get("inputs"));
    let mut asked = IndexMap::new();
    for definition in servers.values_mut() {
        variables::rewrite(definition, &mut |inside| match inside.strip_prefix("input:") {
            Some(id) => {
                asked.insert(id.to_owned(), inputs.name(id));
                Fate::Becomes(inputs.reference(id))
            }
            None => editor_variable(inside, &mut notes),
        });
    }
    notes.extend(asked.iter().map(|(id, name)| inputs.note(id, name)));
    Ok(Group { servers, notes })
}

pub(super) fn translate(entry: &mut Entry) -> bool {
    let reachable = reach::carry(entry);
    entry.carry_switch();
    entry.carry("oauth", "oauth");
    entry.leave("sandbox", "write `sandbox` with `read`, `write` and `network`");
    entry.leave("sandboxEnabled", "write `sandbox` with `read`, `write` and `network`");
    entry.leave("dev", "servers are not watched or debugged from here");
    entry.carry_tools("tools", "allow");
    reachable
}

/// Variables that Visual Studio Code and Cursor share; most mean the same here.
pub(super) fn editor_variable(inside: &str, notes: &mut Vec<String>) -> Fate {
    if let Some(name) = inside.strip_prefix("env:") {
        return Fate::Becomes(format!("${{{name}}}"));
    }
    let text = match inside {
        "userHome" | "pathSeparator" | "/" | "cwd" => return Fate::Stays,
        "workspaceFolder" | "workspaceFolderBasename" => {
            format!("`${{{inside}}}` will mean the folder that the new file is put into")
        }
        _ => format!("`${{{inside}}}` is not known here and is left as it stands"),
    };
    if !notes.contains(&text) {
        notes.push(text);
    }
    Fate::Stays
}

/// The questions a file would have asked its user, as environment variables.
struct Inputs {
    /// By id: the variable's name and the declaration.
    known: IndexMap<String, (String, Value)>,
}

impl Inputs {
    fn new(declared: Option<&Value>) -> Self {
        let mut known: IndexMap<String, (String, Value)> = IndexMap::new();
        for input in declared.and_then(Value::as_array).into_iter().flatten() {
            let Some(id) = input.get("id").and_then(Value::as_str) else { continue };
            let mut name = variables::name_from(id);
            while known.values().any(|(taken, _)| *taken == name) {
                name.push('_');
            }
            known.insert(id.to_owned(), (name, input.clone()));
        }
        Self { known }
    }

    fn name(&self, id: &str) -> String {
        self.known.get(id).map_or_else(|| variables::name_from(id), |(name, _)| name.clone())
    }

    /// The variable, with the default that the question had.
    fn reference(&self, id: &str) -> String {
        let default = self.known.get(id).and_then(|(_, input)| input.get("default")?.as_str());
        match default.filter(|default| !default.is_empty() && !default.contains(['$', '}'])) {
            Some(default) => format!("${{{}:-{default}}}", self.name(id)),
            None => format!("${{{}}}", self.name(id)),
        }
    }

    fn note(&self, id: &str, name: &str) -> String {
        let asked = self.known.get(id).and_then(|(_, input)| input.get("description")?.as_str());
        let asked = asked.map(|asked| format!(" ({asked})")).unwrap_or_default();
        format!("`${{input:{id}}}` became `${{{name}}}`: set `{name}` in the environment{asked}")
    }
}

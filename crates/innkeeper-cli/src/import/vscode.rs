//! Visual Studio Code: `.vscode/mcp.json`, the `mcp.json` of the profile and of Copilot.

use indexmap::IndexMap;
use serde_json::Value;

use super::ImportError;
use super::collect::{ParsedServers, note_unknown_keys, servers_under};
use super::entry::ServerEntry;
use super::source_file::SourceFile;
use super::variables::{self, VariableRewrite};

pub(super) fn parse_servers(
    file: &SourceFile,
    document: &Value,
) -> Result<ParsedServers, ImportError> {
    let mut servers = servers_under(file, document, &["servers", "mcpServers"])?;
    let mut notes = note_unknown_keys(document, &["servers", "mcpServers", "inputs", "$schema"]);
    let inputs = InputVariables::new(document.get("inputs"));
    let mut used_inputs = IndexMap::new();
    for definition in servers.values_mut() {
        variables::rewrite(definition, &mut |inside| match inside.strip_prefix("input:") {
            Some(id) => {
                used_inputs.insert(id.to_owned(), inputs.variable_name(id));
                VariableRewrite::Replace(inputs.variable_reference(id))
            }
            None => rewrite_editor_variable(inside, &mut notes),
        });
    }
    notes.extend(used_inputs.iter().map(|(id, name)| inputs.note(id, name)));
    Ok(ParsedServers { servers, notes })
}

pub(super) fn translate(entry: &mut ServerEntry) {
    entry.skip("dev", "innkeeper does not watch or debug servers");
}

/// Rewrites the variables that Visual Studio Code and Cursor share; most have the same meaning
/// here.
pub(super) fn rewrite_editor_variable(inside: &str, notes: &mut Vec<String>) -> VariableRewrite {
    if let Some(name) = inside.strip_prefix("env:") {
        return VariableRewrite::Replace(format!("${{{name}}}"));
    }
    let text = match inside {
        "userHome" | "pathSeparator" | "/" | "cwd" => return VariableRewrite::Keep,
        "workspaceFolder" | "workspaceFolderBasename" => {
            format!("`${{{inside}}}` refers to the directory of the new file")
        }
        _ => format!("`${{{inside}}}` is unknown and stays unchanged"),
    };
    if !notes.contains(&text) {
        notes.push(text);
    }
    VariableRewrite::Keep
}

/// The input prompts of a file, converted to environment variables.
struct InputVariables {
    /// Variable name and declaration by input id.
    by_id: IndexMap<String, (String, Value)>,
}

impl InputVariables {
    fn new(inputs: Option<&Value>) -> Self {
        let mut by_id: IndexMap<String, (String, Value)> = IndexMap::new();
        for input in inputs.and_then(Value::as_array).into_iter().flatten() {
            let Some(id) = input.get("id").and_then(Value::as_str) else { continue };
            let mut name = variables::env_name(id);
            while by_id.values().any(|(used_name, _)| *used_name == name) {
                name.push('_');
            }
            by_id.insert(id.to_owned(), (name, input.clone()));
        }
        Self { by_id }
    }

    fn variable_name(&self, id: &str) -> String {
        self.by_id.get(id).map_or_else(|| variables::env_name(id), |(name, _)| name.clone())
    }

    /// Returns the variable reference, with the default of the input.
    fn variable_reference(&self, id: &str) -> String {
        let default = self.by_id.get(id).and_then(|(_, input)| input.get("default")?.as_str());
        match default.filter(|default| !default.is_empty() && !default.contains(['$', '}'])) {
            Some(default) => format!("${{{}:-{default}}}", self.variable_name(id)),
            None => format!("${{{}}}", self.variable_name(id)),
        }
    }

    fn note(&self, id: &str, name: &str) -> String {
        let description =
            self.by_id.get(id).and_then(|(_, input)| input.get("description")?.as_str());
        let description = description.map(|text| format!(" ({text})")).unwrap_or_default();
        format!(
            "`${{input:{id}}}` became `${{{name}}}`: set `{name}` in the environment{description}"
        )
    }
}

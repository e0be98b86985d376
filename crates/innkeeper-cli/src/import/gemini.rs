//! Gemini CLI: `mcpServers` and `mcp` in `settings.json`.

use serde_json::{Map, Value};

use super::ImportError;
use super::collect::{ParsedServers, servers_under};
use super::entry::ServerEntry;
use super::source_file::SourceFile;

pub(super) fn parse_servers(
    file: &SourceFile,
    document: &Value,
) -> Result<ParsedServers, ImportError> {
    let mut servers = servers_under(file, document, &["mcpServers"])?;
    let names = |key: &str| {
        let entries = document.get("mcp").and_then(|mcp| mcp.get(key))?.as_array()?;
        Some(entries.iter().filter_map(Value::as_str).collect::<Vec<_>>())
    };
    let allowed = names("allowed");
    let excluded = names("excluded").unwrap_or_default();
    for (name, definition) in &mut servers {
        add_braces(definition);
        let off = excluded.contains(&name.as_str())
            || allowed.as_ref().is_some_and(|allowed| !allowed.contains(&name.as_str()));
        if let (true, Value::Object(definition)) = (off, definition) {
            definition.insert("disabled".to_owned(), true.into());
        }
    }
    Ok(ParsedServers { servers, notes: Vec::new() })
}

pub(super) fn translate(entry: &mut ServerEntry) {
    if entry.has("httpUrl") {
        entry.skip("url", "`httpUrl` has precedence");
    } else if entry.has("url") && !["type", "transport", "command"].iter().any(|key| entry.has(key))
    {
        // Gemini CLI uses SSE for a `url` without a type; innkeeper would infer HTTP.
        entry.put_back("type", "sse".into());
    }
    if let Some(oauth) = entry.take("oauth") {
        convert_oauth(entry, oauth);
    }
    entry.skip("trust", "the application decides which calls need an approval");
    entry.skip("description", "innkeeper shows the server's own description");
    entry.skip("authProviderType", "innkeeper does not support this sign-in provider");
}

fn convert_oauth(entry: &mut ServerEntry, oauth: Value) {
    let Value::Object(oauth) = oauth else {
        return entry.add_note("`oauth` is not an object; not imported");
    };
    let mut converted = Map::new();
    for (key, value) in oauth {
        match key.as_str() {
            "clientId" | "clientSecret" | "scopes" => drop(converted.insert(key, value)),
            "enabled" => {}
            _ => entry.add_note(format!("`oauth.{key}` is unknown; not imported")),
        }
    }
    entry.set("oauth", converted);
}

/// Rewrites `$NAME` in every string to `${NAME}`.
fn add_braces(value: &mut Value) {
    match value {
        Value::String(text) => *text = with_braces(text),
        Value::Array(items) => items.iter_mut().for_each(add_braces),
        Value::Object(members) => members.values_mut().for_each(add_braces),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn with_braces(text: &str) -> String {
    let mut output = String::with_capacity(text.len() + 2);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        output.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let length = end.unwrap_or(after.len());
        let (name, after_name) = after.split_at(length);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            output.push('$');
            rest = after;
        } else {
            output.extend(["${", name, "}"]);
            rest = after_name;
        }
    }
    output.push_str(rest);
    output
}

#[cfg(test)]
mod tests {
    use super::with_braces;

    #[test]
    fn bare_variables_get_braces_and_nothing_else_changes() {
        assert_eq!(with_braces("$A-${B}$C_1"), "${A}-${B}${C_1}");
        assert_eq!(with_braces("5$ $1 $$ ${X:-y} $"), "5$ $1 $$ ${X:-y} $");
    }
}

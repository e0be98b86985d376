//! Detects which host wrote a configuration file, from its path and its content.

use std::path::Path;

use serde_json::Value;

use super::SourceHost;
use super::other;
use super::source_file::ConfigScope;

/// Returns the host and the parts of a file to import; empty if no host writes such a file.
pub(super) fn detect(path: &Path, document: &Value) -> Vec<(SourceHost, ConfigScope)> {
    if is_toml(path) {
        return vec![(SourceHost::Codex, ConfigScope::Codex)];
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name == ".claude.json" {
        let scopes = [ConfigScope::ClaudeLocal, ConfigScope::ClaudeUser];
        return scopes.map(|scope| (SourceHost::Claude, scope)).to_vec();
    }
    let found =
        from_keys(document).map(|from_content| from_path(path, name).unwrap_or(from_content));
    found.into_iter().collect()
}

/// Whether a file is TOML, by its name.
pub(super) fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

fn from_path(path: &Path, name: &str) -> Option<(SourceHost, ConfigScope)> {
    let directory = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    match (directory.unwrap_or_default(), name) {
        (_, "claude_desktop_config.json") => Some((SourceHost::Claude, ConfigScope::ClaudeDesktop)),
        (_, ".mcp.json") => Some((SourceHost::Claude, ConfigScope::ClaudeProject)),
        (_, "mcp_config.json") => Some((SourceHost::Windsurf, ConfigScope::Windsurf)),
        (_, "opencode.json" | "opencode.jsonc") => {
            Some((SourceHost::Opencode, ConfigScope::Opencode))
        }
        (_, "mcp-config.json") | (".vscode", _) => Some((SourceHost::Vscode, ConfigScope::Vscode)),
        (".cursor", _) => Some((SourceHost::Cursor, ConfigScope::Cursor)),
        (".gemini", _) => Some((SourceHost::Gemini, ConfigScope::Gemini)),
        (".zed", _) => Some((SourceHost::Zed, ConfigScope::Zed)),
        _ => None,
    }
}

/// Keys of a server that only Gemini CLI writes.
const GEMINI_KEYS: [&str; 4] = ["httpUrl", "trust", "includeTools", "excludeTools"];

fn from_keys(document: &Value) -> Option<(SourceHost, ConfigScope)> {
    let object = document.as_object()?;
    if object.contains_key("context_servers") {
        return Some((SourceHost::Zed, ConfigScope::Zed));
    }
    if let Some(servers) = object.get("mcpServers") {
        let mut entries = servers.as_object().into_iter().flat_map(|servers| servers.values());
        let is_gemini =
            entries.any(|server| GEMINI_KEYS.iter().any(|key| server.get(*key).is_some()));
        return Some(if is_gemini {
            (SourceHost::Gemini, ConfigScope::Gemini)
        } else if servers.to_string().contains("${env:") {
            (SourceHost::Cursor, ConfigScope::Cursor)
        } else {
            (SourceHost::Claude, ConfigScope::Other)
        });
    }
    if object.contains_key("amp.mcpServers")
        || document.pointer(other::DEVCONTAINER_SERVERS).is_some()
    {
        return Some((SourceHost::Vscode, ConfigScope::Other));
    }
    if object.contains_key("servers") {
        return Some((SourceHost::Vscode, ConfigScope::Vscode));
    }
    let has_mcp = object.get("mcp").is_some_and(Value::is_object);
    has_mcp.then_some((SourceHost::Opencode, ConfigScope::Opencode))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_path_and_the_keys_of_a_file_give_its_host() {
        let plain = json!({"mcpServers": {"a": {"command": "x"}}});
        for (path, document, expected) in [
            ("x.json", plain.clone(), &[ConfigScope::Other][..]),
            ("a/.cursor/mcp.json", plain.clone(), &[ConfigScope::Cursor]),
            ("a/mcp_config.json", plain.clone(), &[ConfigScope::Windsurf]),
            ("claude_desktop_config.json", plain.clone(), &[ConfigScope::ClaudeDesktop]),
            (".claude.json", plain, &[ConfigScope::ClaudeLocal, ConfigScope::ClaudeUser]),
            ("x.json", json!({"mcpServers": {"a": {"httpUrl": "u"}}}), &[ConfigScope::Gemini]),
            ("x.json", json!({"mcpServers": {"a": {"url": "${env:U}"}}}), &[ConfigScope::Cursor]),
            ("x.json", json!({"servers": {}}), &[ConfigScope::Vscode]),
            ("x.json", json!({"context_servers": {}}), &[ConfigScope::Zed]),
            ("x.json", json!({"mcp": {}}), &[ConfigScope::Opencode]),
            ("x.toml", json!({"mcp_servers": {}}), &[ConfigScope::Codex]),
            ("x.toml", json!({"a": 1}), &[ConfigScope::Codex]),
            ("x.json", json!({"amp.mcpServers": {}}), &[ConfigScope::Other]),
            (
                "devcontainer.json",
                json!({"customizations": {"vscode": {"mcp": {"servers": {}}}}}),
                &[ConfigScope::Other],
            ),
            ("a/.cursor/other.json", json!({"a": 1}), &[]),
            ("x.json", json!([]), &[]),
        ] {
            let found = detect(Path::new(path), &document);
            let scopes: Vec<_> = found.into_iter().map(|(_, scope)| scope).collect();
            assert_eq!(scopes, expected, "{path} {document}");
        }
    }
}

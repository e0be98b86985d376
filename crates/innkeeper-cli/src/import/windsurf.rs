//! Windsurf: `~/.codeium/windsurf/mcp_config.json`.

use serde_json::Value;

use super::collect::{ParsedServers, note_unknown_keys, servers_under};
use super::entry::ServerEntry;
use super::source_file::SourceFile;
use super::{ImportError, variables, vscode};

pub(super) fn parse_servers(
    file: &SourceFile,
    document: &Value,
) -> Result<ParsedServers, ImportError> {
    let mut servers = servers_under(file, document, &["mcpServers"])?;
    let mut notes = note_unknown_keys(document, &["mcpServers", "$schema"]);
    for definition in servers.values_mut() {
        variables::rewrite(definition, &mut |inside| {
            vscode::rewrite_editor_variable(inside, &mut notes)
        });
    }
    Ok(ParsedServers { servers, notes })
}

pub(super) fn translate(entry: &mut ServerEntry) {
    for key in ["autoApprove", "alwaysAllow"] {
        entry.skip(key, "the application decides which calls need an approval");
    }
}

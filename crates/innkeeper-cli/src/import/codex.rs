//! Codex CLI: `[mcp_servers.*]` in `config.toml`.

use serde_json::Value;

use super::collect::{ParsedServers, servers_under};
use super::entry::ServerEntry;
use super::source_file::SourceFile;
use super::{ImportError, variables};

pub(super) fn parse_servers(
    file: &SourceFile,
    document: &Value,
) -> Result<ParsedServers, ImportError> {
    let mut servers = servers_under(file, document, &["mcp_servers"])?;
    servers.values_mut().for_each(variables::escape);
    Ok(ParsedServers { servers, notes: Vec::new() })
}

pub(super) fn translate(entry: &mut ServerEntry) {
    if let Some(scopes) = entry.take("scopes") {
        entry.set_member("oauth", "scopes", scopes);
    }
    for key in ["default_tools_approval_mode", "tools"] {
        entry.skip(key, "the application decides which calls need an approval");
    }
}

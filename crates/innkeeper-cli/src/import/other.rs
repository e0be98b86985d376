//! Files of other programs with `mcpServers`, such as Cline, Roo Code, mcporter and Amp, and the
//! servers of a `devcontainer.json`.

use serde_json::Value;

use super::collect::{ParsedServers, servers_under};
use super::source_file::SourceFile;
use super::{ImportError, variables, vscode};

/// The pointer to the servers of a `devcontainer.json`.
pub(super) const DEVCONTAINER_SERVERS: &str = "/customizations/vscode/mcp";

pub(super) fn parse_servers(
    file: &SourceFile,
    document: &Value,
) -> Result<ParsedServers, ImportError> {
    let mut servers = servers_under(file, document, &["mcpServers", "amp.mcpServers"])?;
    if let Some(editor) = document.pointer(DEVCONTAINER_SERVERS) {
        servers.extend(servers_under(file, editor, &["servers"])?);
    }
    let mut notes = Vec::new();
    for definition in servers.values_mut() {
        variables::rewrite(definition, &mut |inside| {
            vscode::rewrite_editor_variable(inside, &mut notes)
        });
    }
    Ok(ParsedServers { servers, notes })
}

//! The catalog as JSON, with the definitions byte for byte as the servers sent them.

use indexmap::IndexMap;
use innkeeper_host::{CatalogServer, Host, SecurityWarning, ServerState, ServerStatus};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::secret_mask::SecretMask;

/// The members of a server, each as JSON text, so that numbers keep all digits.
type ServerJson = IndexMap<String, Box<RawValue>>;

/// Returns the servers of the configuration; an unavailable server has its state and empty lists.
/// With `only_tool`, the lists contain this tool only. Reasons of failures have a mask in place of
/// secrets; definitions stay as the servers sent them.
pub(super) fn catalog_json<'n>(
    host: &Host,
    transports: &'n [(String, Option<&'static str>)],
    only_tool: Option<&str>,
    mask: &SecretMask,
) -> serde_json::Result<IndexMap<&'n str, ServerJson>> {
    let catalog = host.catalog();
    let status = host.status();
    let mut findings = catalog.warnings();
    findings.extend(catalog.guard_findings());
    let mut servers = IndexMap::new();
    for (name, transport) in transports {
        let mut server_json = match catalog.server(name) {
            Some(server) => to_members(server)?,
            None => to_members(&unavailable_json(status.get(name.as_str()), *transport))?,
        };
        for key in ["reason", "missing"] {
            if let Some(member) = server_json.get_mut(key) {
                let mut value = serde_json::from_str(member.get())?;
                mask.apply_to_json(&mut value);
                *member = to_raw_value(&value)?;
            }
        }
        if let Some(tool) = only_tool {
            keep_tool(&mut server_json, catalog.server(name), tool)?;
        }
        let doubts: Vec<Value> = findings
            .iter()
            .filter(|finding| *finding.server == **name)
            .filter(|finding| only_tool.is_none_or(|tool| finding.tool.as_deref() == Some(tool)))
            .map(finding_json)
            .collect();
        if !doubts.is_empty() {
            server_json.insert("doubts".to_owned(), to_raw_value(&doubts)?);
        }
        servers.insert(name.as_str(), server_json);
    }
    Ok(servers)
}

fn to_members(server: &impl Serialize) -> serde_json::Result<ServerJson> {
    serde_json::from_str(to_raw_value(server)?.get())
}

fn unavailable_json(status: Option<&ServerStatus>, transport: Option<&str>) -> Value {
    json!({
        "state": status.map_or(ServerState::Unavailable, |status| status.state),
        "protocolVersion": null,
        "transport": transport,
        "serverInfo": null,
        "reason": status.and_then(|status| status.reason.clone()),
        "tools": [], "prompts": [], "resources": [], "resourceTemplates": [],
    })
}

fn finding_json(finding: &SecurityWarning) -> Value {
    let mut json = json!({ "tool": finding.tool, "reason": finding.reason });
    if let Some(item) = &finding.item {
        json["item"] = json!(item);
    }
    json
}

/// Removes all items but one tool.
fn keep_tool(
    server_json: &mut ServerJson,
    server: Option<&CatalogServer>,
    tool: &str,
) -> serde_json::Result<()> {
    let tools = server.and_then(CatalogServer::listing).map(|listing| &listing.tools);
    let kept: Vec<_> =
        tools.into_iter().flatten().filter(|listed| listed.view.name == tool).collect();
    server_json.insert("tools".to_owned(), to_raw_value(&kept)?);
    for list in ["prompts", "resources", "resourceTemplates"] {
        server_json.insert(list.to_owned(), to_raw_value(&json!([]))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_keeps_its_text() {
        let tool = r#"{"name":"a", "inputSchema":{"maximum":12345678901234567890123}}"#;
        let tools = [RawValue::from_string(tool.to_owned()).unwrap()];
        let members = to_members(&IndexMap::from([("tools", tools)])).unwrap();
        assert_eq!(members["tools"].get(), format!("[{tool}]"));
    }
}

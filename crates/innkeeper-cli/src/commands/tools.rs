//! `tools`: starts all servers and lists their tools, prompts and resources.

use innkeeper_host::{CatalogServer, Host, SecurityWarning, ServerState};
use serde_json::{Map, Value, json};

use super::CommandContext;
use crate::configuration::load_config;
use crate::exit::CliError;
use crate::hosting::with_host;
use crate::output::{Output, Table, escape_inline};

pub(super) async fn run(context: &mut CommandContext) -> Result<(), CliError> {
    let config = load_config(context)?;
    let transports: Vec<(String, &'static str)> = config
        .servers
        .iter()
        .map(|(name, server)| (name.clone(), server.transport.kind()))
        .collect();
    let operation = async |host: &Host, output: &mut Output| {
        if output.is_json() {
            Ok(output.print_json(&catalog_json(host, &transports)?)?)
        } else {
            Ok(print_catalog(host, output, &transports)?)
        }
    };
    with_host(context, config, operation).await.map(drop)
}

/// Returns all servers of the configuration; an unavailable server has its state and empty lists.
fn catalog_json(host: &Host, transports: &[(String, &'static str)]) -> Result<Value, CliError> {
    let catalog = host.catalog();
    let status = host.status();
    let mut servers = Map::new();
    for (name, transport) in transports {
        let entry = match catalog.server(name) {
            Some(server) => serde_json::to_value(server).map_err(|error| {
                CliError::failure("cannot serialize the catalog").with_source(error)
            })?,
            None => {
                let server_status = status.get(name.as_str());
                json!({
                    "state": server_status.map_or(ServerState::Unavailable, |away| away.state),
                    "protocolVersion": null,
                    "transport": transport,
                    "serverInfo": null,
                    "reason": server_status.and_then(|away| away.reason.clone()),
                    "tools": [], "prompts": [], "resources": [], "resourceTemplates": [],
                })
            }
        };
        servers.insert(name.clone(), entry);
    }
    for SecurityWarning { server, tool, item, reason, .. } in
        catalog.warnings().into_iter().chain(catalog.guard_findings())
    {
        let server_json = servers.get_mut(&*server).and_then(Value::as_object_mut);
        let list =
            server_json.map(|server_json| server_json.entry("doubts").or_insert_with(|| json!([])));
        if let Some(list) = list.and_then(Value::as_array_mut) {
            let mut finding = json!({ "tool": tool, "reason": reason });
            if let Some(item) = item {
                finding["item"] = json!(item);
            }
            list.push(finding);
        }
    }
    Ok(json!({ "servers": servers }))
}

fn print_catalog(
    host: &Host,
    output: &mut Output,
    transports: &[(String, &'static str)],
) -> std::io::Result<()> {
    let catalog = host.catalog();
    let mut findings = catalog.warnings();
    findings.extend(catalog.guard_findings());
    let status = host.status();
    for (name, _) in transports {
        match catalog.server(name) {
            Some(server) => {
                print_server(output, name, server)?;
                for finding in findings.iter().filter(|finding| *finding.server == **name) {
                    let subject = finding
                        .tool
                        .as_deref()
                        .or(finding.item.as_deref())
                        .unwrap_or("instructions");
                    output.print_data(&format!(
                        "  warning: {}: {}",
                        escape_inline(subject),
                        escape_inline(&finding.reason)
                    ))?;
                }
            }
            None => {
                let reason = status
                    .get(name.as_str())
                    .and_then(|server_status| server_status.reason.clone());
                let reason = reason.unwrap_or_default();
                output.print_data(&format!("{name}: unavailable: {}", escape_inline(&reason)))?;
            }
        }
    }
    Ok(())
}

fn print_server(output: &mut Output, name: &str, server: &CatalogServer) -> std::io::Result<()> {
    let revision = server.protocol_version().unwrap_or("?");
    output.print_data(&format!("{name}: ready, {revision}"))?;
    let Some(listing) = server.listing() else { return Ok(()) };
    let mut table = Table::new(["", "kind", "name", "description"]);
    let mut row = |kind: &str, item: &str, text: Option<&String>| {
        let first = text.and_then(|text| text.lines().next()).unwrap_or_default();
        let first: String = first.chars().take(80).collect();
        table.add_row(["", kind, item, &first]);
    };
    for tool in &listing.tools {
        row("tool", &format!("{name}.{}", tool.view.name), tool.view.description.as_ref());
    }
    for prompt in &listing.prompts {
        row("prompt", &format!("{name}.{}", prompt.view.name), prompt.view.description.as_ref());
    }
    for resource in &listing.resources {
        row("resource", &resource.view.uri, resource.view.description.as_ref());
    }
    for template in &listing.resource_templates {
        row("template", &template.view.uri_template, template.view.description.as_ref());
    }
    output.print_table(&table)
}

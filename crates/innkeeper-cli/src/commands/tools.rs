//! `tools`: starts all servers, prints what they offer, shuts down.

use innkeeper_host::{CatalogServer, Doubt, Host, ServerState};
use serde_json::{Map, Value, json};

use super::Context;
use crate::configuration::load;
use crate::exit::Failure;
use crate::hosting::with_host;
use crate::output::{Output, Table, inline};

pub(super) async fn run(context: &mut Context) -> Result<(), Failure> {
    let config = load(context)?;
    let transports: Vec<(String, &'static str)> = config
        .servers
        .iter()
        .map(|(name, server)| (name.clone(), server.transport.kind()))
        .collect();
    let work = async |host: &Host, output: &mut Output| {
        if output.is_json() {
            Ok(output.value(&everything(host, &transports)?)?)
        } else {
            Ok(print(host, output, &transports)?)
        }
    };
    with_host(context, config, work).await.map(drop)
}

/// All servers of the configuration, those that are not ready with their state and empty lists.
fn everything(host: &Host, transports: &[(String, &'static str)]) -> Result<Value, Failure> {
    let catalog = host.catalog();
    let status = host.status();
    let mut servers = Map::new();
    for (name, transport) in transports {
        let told = match catalog.server(name) {
            Some(server) => serde_json::to_value(server)
                .map_err(|error| Failure::failed("the catalog cannot be written").because(error))?,
            None => {
                let away = status.get(name.as_str());
                json!({
                    "state": away.map_or(ServerState::Unavailable, |away| away.state),
                    "protocolVersion": null,
                    "transport": transport,
                    "serverInfo": null,
                    "reason": away.and_then(|away| away.reason.clone()),
                    "tools": [], "prompts": [], "resources": [], "resourceTemplates": [],
                })
            }
        };
        servers.insert(name.clone(), told);
    }
    for Doubt { server, tool, item, reason, .. } in
        catalog.doubts().into_iter().chain(catalog.suspicions())
    {
        let told = servers.get_mut(&*server).and_then(Value::as_object_mut);
        let list = told.map(|told| told.entry("doubts").or_insert_with(|| json!([])));
        if let Some(list) = list.and_then(Value::as_array_mut) {
            let mut told = json!({ "tool": tool, "reason": reason });
            if let Some(item) = item {
                told["item"] = json!(item);
            }
            list.push(told);
        }
    }
    Ok(json!({ "servers": servers }))
}

fn print(
    host: &Host,
    output: &mut Output,
    transports: &[(String, &'static str)],
) -> std::io::Result<()> {
    let catalog = host.catalog();
    let mut doubts = catalog.doubts();
    doubts.extend(catalog.suspicions());
    let status = host.status();
    for (name, _) in transports {
        match catalog.server(name) {
            Some(server) => {
                print_server(output, name, server)?;
                for doubt in doubts.iter().filter(|doubt| *doubt.server == **name) {
                    let what =
                        doubt.tool.as_deref().or(doubt.item.as_deref()).unwrap_or("instructions");
                    output.data(&format!(
                        "  look at {}: {}",
                        inline(what),
                        inline(&doubt.reason)
                    ))?;
                }
            }
            None => {
                let reason = status.get(name.as_str()).and_then(|away| away.reason.clone());
                let reason = reason.unwrap_or_default();
                output.data(&format!("{name}: unavailable: {}", inline(&reason)))?;
            }
        }
    }
    Ok(())
}

fn print_server(output: &mut Output, name: &str, server: &CatalogServer) -> std::io::Result<()> {
    let revision = server.protocol_version().unwrap_or("?");
    output.data(&format!("{name}: ready, {revision}"))?;
    let Some(offer) = server.offer() else { return Ok(()) };
    let mut table = Table::new(["", "what", "name", "description"]);
    let mut row = |what: &str, item: &str, text: Option<&String>| {
        let first = text.and_then(|text| text.lines().next()).unwrap_or_default();
        let first: String = first.chars().take(80).collect();
        table.row(["", what, item, &first]);
    };
    for tool in &offer.tools {
        row("tool", &format!("{name}.{}", tool.view.name), tool.view.description.as_ref());
    }
    for prompt in &offer.prompts {
        row("prompt", &format!("{name}.{}", prompt.view.name), prompt.view.description.as_ref());
    }
    for resource in &offer.resources {
        row("resource", &resource.view.uri, resource.view.description.as_ref());
    }
    for template in &offer.resource_templates {
        row("template", &template.view.uri_template, template.view.description.as_ref());
    }
    output.table(&table)
}

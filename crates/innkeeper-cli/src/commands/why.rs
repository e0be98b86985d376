//! `why`: where a tool is defined, what rule hides or limits it, who serves it, what went wrong.

use innkeeper_host::{Config, Host, ServerStatus};
use serde_json::{Value, json};

use super::Context;
use super::call::owners;
use crate::args::WhyArgs;
use crate::configuration::{for_item, load};
use crate::exit::Failure;
use crate::hosting::with_host;
use crate::output::{Output, inline};

pub(super) async fn run(context: &mut Context, args: &WhyArgs) -> Result<(), Failure> {
    let config = load(context)?;
    let (mut config, server) = for_item(&config, &args.target)?;
    for asked in config.servers.values_mut() {
        // Its failure is the answer here, not the end.
        asked.required &= server.as_ref().is_some_and(|server| *server != asked.name);
    }
    let about = config.clone();
    let work = async |host: &Host, output: &mut Output| {
        let target = &args.target;
        let (server, tool) = match &server {
            Some(server) => (server.clone(), target.get(server.len() + 1..).unwrap_or_default()),
            None => (owner(host, target)?, &**target),
        };
        let told = explain(host, &about, &server, (target, tool));
        if output.is_json() {
            return Ok(output.value(&told)?);
        }
        let lines = told.as_object().into_iter().flatten();
        for (key, value) in lines.filter(|(_, value)| !value.is_null()) {
            let words = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            output.data(&format!("{key}: {}", inline(&words)))?;
        }
        Ok(())
    };
    with_host(context, config, work).await.map(drop)
}

/// Whose tool it is that is called by a bare name.
fn owner(host: &Host, tool: &str) -> Result<String, Failure> {
    let status = host.status();
    let hiding = status.iter().filter(|(_, status)| hidden(status, tool).is_some());
    let offering = owners(host, tool).into_iter().map(|(server, _)| server);
    let mut all: Vec<String> =
        offering.chain(hiding.map(|(server, _)| server.to_string())).collect();
    all.sort();
    all.dedup();
    match &all[..] {
        [only] => Ok(only.clone()),
        [] => Err(Failure::usage(format!("no server that is ready has a tool `{tool}`"))
            .hint("`innkeeper tools` lists what there is")),
        several => {
            let several: Vec<_> = several.iter().map(|name| format!("`{name}.{tool}`")).collect();
            Err(Failure::usage(format!("several servers have a tool `{tool}`"))
                .hint(format!("write one of {}", several.join(", "))))
        }
    }
}

fn explain(host: &Host, config: &Config, server: &str, (target, tool): (&str, &str)) -> Value {
    let entry = &config.servers[server];
    let status = host.status();
    let status = status.get(server);
    let catalog = host.catalog();
    let serving = catalog.server(server);
    let offered = serving
        .and_then(|serving| serving.offer())
        .and_then(|offer| offer.tools.iter().find(|offered| offered.view.name == tool));
    let hidden = status.and_then(|status| hidden(status, tool));
    let verdict = match (&offered, &hidden, status.and_then(|status| status.reason.as_ref())) {
        (Some(_), _, _) => "callable".to_owned(),
        (None, Some(rule), _) => format!("hidden: {rule}"),
        (None, None, Some(reason)) => format!("server unavailable: {reason}"),
        (None, None, None) => "the server does not offer it".to_owned(),
    };
    let mut doubts = catalog.doubts();
    doubts.extend(catalog.suspicions());
    doubts.retain(|doubt| *doubt.server == *server && doubt.tool.as_deref() == Some(tool));
    let doubts: Vec<String> = doubts.into_iter().map(|doubt| doubt.reason).collect();
    json!({
        "tool": target,
        "verdict": verdict,
        "server": server,
        "definedAt": entry.position.to_string(),
        "state": status.map(|status| status.state),
        "protocolVersion": serving.and_then(|serving| serving.protocol_version()),
        "transport": entry.transport.kind(),
        "serverInfo": serving.and_then(|serving| serving.server_info()),
        "timeoutSeconds": entry.timeout.as_secs_f64(),
        "maxConcurrent": entry.max_concurrent,
        "isolation": status.and_then(|status| status.isolation),
        "doubts": (!doubts.is_empty()).then_some(doubts),
        "definition": offered.map(|offered| &offered.raw),
        "lastFailure": status.and_then(|status| status.reason.clone()),
        "stderr": status.map(|status| status.stderr.clone()).filter(|text| !text.is_empty()),
    })
}

fn hidden(status: &ServerStatus, tool: &str) -> Option<String> {
    let found = status.hidden.iter().find(|(name, _)| **name == *tool);
    found.map(|(_, reason)| reason.clone())
}

//! `why`: explains where a tool is defined, its rules and its errors.

use innkeeper_host::{Config, Host, ServerStatus};
use serde_json::{Value, json};

use super::CommandContext;
use super::call::tool_owners;
use crate::cli::WhyArgs;
use crate::configuration::{config_for_item, load_config};
use crate::exit::CliError;
use crate::hosting::with_host;
use crate::output::{Output, escape_inline};

pub(super) async fn run(context: &mut CommandContext, args: &WhyArgs) -> Result<(), CliError> {
    let config = load_config(context)?;
    let (mut config, server) = config_for_item(&config, &args.target)?;
    for settings in config.servers.values_mut() {
        // This command reports the failure of the server instead of failing.
        settings.required &= server.as_ref().is_some_and(|server| *server != settings.name);
    }
    let config_copy = config.clone();
    let operation = async |host: &Host, output: &mut Output| {
        let target = &args.target;
        let (server, tool) = match &server {
            Some(server) => (server.clone(), target.get(server.len() + 1..).unwrap_or_default()),
            None => (find_owner(host, target)?, &**target),
        };
        let explanation = explain(host, &config_copy, &server, (target, tool));
        if output.is_json() {
            return Ok(output.print_json(&explanation)?);
        }
        let lines = explanation.as_object().into_iter().flatten();
        for (key, value) in lines.filter(|(_, value)| !value.is_null()) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            output.print_data(&format!("{key}: {}", escape_inline(&text)))?;
        }
        Ok(())
    };
    with_host(context, config, operation).await.map(drop)
}

/// Returns the server that has the tool with this bare name.
fn find_owner(host: &Host, tool: &str) -> Result<String, CliError> {
    let status = host.status();
    let hiding = status.iter().filter(|(_, status)| exclusion_reason(status, tool).is_some());
    let offering = tool_owners(host, tool).into_iter().map(|(server, _)| server);
    let mut all: Vec<String> =
        offering.chain(hiding.map(|(server, _)| server.to_string())).collect();
    all.sort();
    all.dedup();
    match &all[..] {
        [only] => Ok(only.clone()),
        [] => Err(CliError::usage(format!("no ready server has a tool `{tool}`"))
            .with_hint("run `innkeeper tools` to list all tools")),
        several => {
            let several: Vec<_> = several.iter().map(|name| format!("`{name}.{tool}`")).collect();
            Err(CliError::usage(format!("several servers have a tool `{tool}`"))
                .with_hint(format!("use one of {}", several.join(", "))))
        }
    }
}

fn explain(host: &Host, config: &Config, server: &str, (target, tool): (&str, &str)) -> Value {
    let entry = &config.servers[server];
    let status = host.status();
    let status = status.get(server);
    let catalog = host.catalog();
    let ready_server = catalog.server(server);
    let definition = ready_server
        .and_then(|ready| ready.listing())
        .and_then(|listing| listing.tools.iter().find(|listed_tool| listed_tool.view.name == tool));
    let exclusion = status.and_then(|status| exclusion_reason(status, tool));
    let verdict = match (&definition, &exclusion, status.and_then(|status| status.reason.as_ref()))
    {
        (Some(_), _, _) => "callable".to_owned(),
        (None, Some(rule), _) => format!("hidden: {rule}"),
        (None, None, Some(reason)) => format!("server unavailable: {reason}"),
        (None, None, None) => "the server has no such tool".to_owned(),
    };
    let mut findings = catalog.warnings();
    findings.extend(catalog.guard_findings());
    findings.retain(|finding| *finding.server == *server && finding.tool.as_deref() == Some(tool));
    let reasons: Vec<String> = findings.into_iter().map(|finding| finding.reason).collect();
    json!({
        "tool": target,
        "verdict": verdict,
        "server": server,
        "definedAt": entry.position.to_string(),
        "state": status.map(|status| status.state),
        "protocolVersion": ready_server.and_then(|serving| serving.protocol_version()),
        "transport": entry.transport.kind(),
        "serverInfo": ready_server.and_then(|serving| serving.server_info()),
        "timeoutSeconds": entry.timeout.as_secs_f64(),
        "maxConcurrent": entry.max_concurrent,
        "isolation": status.and_then(|status| status.isolation),
        "doubts": (!reasons.is_empty()).then_some(reasons),
        "definition": definition.map(|offered| &offered.raw),
        "lastFailure": status.and_then(|status| status.reason.clone()),
        "stderr": status.map(|status| status.stderr.clone()).filter(|text| !text.is_empty()),
    })
}

fn exclusion_reason(status: &ServerStatus, tool: &str) -> Option<String> {
    let excluded = status.excluded_tools.iter().find(|(name, _)| **name == *tool);
    excluded.map(|(_, reason)| reason.clone())
}

//! `why`: explains where a tool is defined, its rules and its errors.

use std::io;

use innkeeper_host::{CatalogServer, Config, Host, ServerStatus};
use serde::Serialize;
use serde_json::{Value, json};

use super::call::{reject_server_name, tool_owners};
use super::tools::{DefinitionWriter, program_text};
use crate::cli::WhyArgs;
use crate::configuration::{LoadedConfig, config_for_item, load_config};
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::hosting::with_host;
use crate::output::{Output, Style, Table, escape_block, escape_inline};

pub(super) async fn run(context: &mut CommandContext, args: &WhyArgs) -> Result<(), CliError> {
    let LoadedConfig { config, files } = load_config(context)?;
    let (mut config, server) = config_for_item(&config, &args.target, "tool")?;
    for settings in config.servers.values_mut() {
        // This command reports the failure of the server instead of failing.
        settings.required &= server.as_ref().is_some_and(|server| *server != settings.name);
    }
    let config_copy = config.clone();
    let program = program_text(context);
    with_host(context, LoadedConfig { config, files }, async |host, output| {
        let target = &args.target;
        let (server, tool) = match &server {
            Some(server) => (server.clone(), target.get(server.len() + 1..).unwrap_or_default()),
            None => {
                reject_server_name(host, target)?;
                (find_owner(host, target)?, &**target)
            }
        };
        let mut explanation = explain(host, &config_copy, &server, target, tool);
        for key in ["verdict", "missing", "lastFailure"] {
            output.secret_mask().apply_to_json(&mut explanation[key]);
        }
        let catalog = host.catalog();
        let listing = catalog.server(&server).and_then(CatalogServer::listing);
        let listed = listing.and_then(|listing| {
            listing.tools.iter().find(|tool_entry| tool_entry.view.name == tool)
        });
        if output.is_json() {
            let definition = listed.map(|tool| &tool.raw);
            return Ok(output.print_json(&ExplanationJson::new(&explanation, definition))?);
        }
        let writer = DefinitionWriter { output, program: &program, server: &server };
        let definition = listed.map(|tool| writer.tool(&tool.view));
        Ok(print_explanation(output, &explanation, definition.as_deref())?)
    })
    .await
    .map(drop)
}

/// The explanation with the definition as the server sent it: its numbers keep all digits.
#[derive(Debug, Serialize)]
struct ExplanationJson<'e, D> {
    #[serde(flatten)]
    facts: &'e Value,
    definition: Option<D>,
}

impl<'e, D> ExplanationJson<'e, D> {
    fn new(facts: &'e Value, definition: Option<D>) -> Self {
        Self { facts, definition }
    }
}

/// Prints the explanation for people: the verdict, the facts, the definition and stderr.
fn print_explanation(
    output: &mut Output,
    explanation: &Value,
    definition: Option<&str>,
) -> io::Result<()> {
    let text = |key: &str| explanation[key].as_str().map(escape_inline).unwrap_or_default();
    let tool = output.paint(Style::Strong, &text("tool"));
    output.print_message(&format!("{tool}: {}", text("verdict")))?;
    output.print_data("")?;
    let timeout = explanation["timeoutSeconds"].as_f64().unwrap_or_default();
    let mut facts = Table::without_headings()
        .with_column_styles([Some(Style::Dim), None])
        .with_wrapped_last_column();
    let info = &explanation["serverInfo"];
    let claimed = [&info["name"], &info["version"]].map(|part| part.as_str().unwrap_or_default());
    let server = [&explanation["server"], &explanation["state"]];
    facts.add_fact("server", &server.map(|part| part.as_str().unwrap_or_default()).join(", "));
    facts.add_fact("program", claimed.join(" ").trim());
    facts.add_fact("defined at", &text("definedAt"));
    facts.add_fact("protocol", &text("protocolVersion"));
    facts.add_fact("transport", &text("transport"));
    facts.add_fact("isolation", &text("isolation"));
    facts.add_fact("timeout", &format!("{timeout} s"));
    facts.add_fact("concurrent calls", &explanation["maxConcurrent"].to_string());
    for missing in explanation["missing"].as_array().into_iter().flatten() {
        let [list, reason] =
            [&missing["list"], &missing["reason"]].map(|part| part.as_str().unwrap_or_default());
        facts.add_fact("missing", &format!("{list}: {reason}"));
    }
    for doubt in explanation["doubts"].as_array().into_iter().flatten() {
        facts.add_fact("warning", doubt.as_str().unwrap_or_default());
    }
    let last_failure = text("lastFailure");
    if !text("verdict").contains(&*last_failure) {
        facts.add_fact("last failure", &last_failure);
    }
    output.print_table(&facts)?;
    if let Some(definition) = definition {
        output.print_data(&format!("\n{definition}"))?;
    }
    if let Some(stderr) = explanation["stderr"].as_str() {
        let heading = output.paint(Style::Strong, "stderr");
        let lines = escape_block(stderr.trim_end()).replace('\n', "\n  ");
        output.print_data(&format!("\n{heading}\n  {lines}"))?;
    }
    Ok(())
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

fn explain(host: &Host, config: &Config, server: &str, target: &str, tool: &str) -> Value {
    let entry = &config.servers[server];
    let status = host.status();
    let status = status.get(server);
    let catalog = host.catalog();
    let ready_server = catalog.server(server);
    let definition = ready_server
        .and_then(|ready| ready.listing())
        .and_then(|listing| listing.tools.iter().find(|listed_tool| listed_tool.view.name == tool));
    let missing = ready_server.and_then(|ready| ready.listing()).map(|listing| &listing.missing);
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
    let mut reasons: Vec<String> = findings.into_iter().map(|finding| finding.reason).collect();
    reasons.extend(catalog.unchecked_arguments_reason(&format!("{server}.{tool}")));
    json!({
        "tool": target,
        "verdict": verdict,
        "server": server,
        "definedAt": entry.position.to_string(),
        "state": status.map(|status| status.state),
        "protocolVersion": ready_server.and_then(|serving| serving.protocol_version()),
        "transport": entry.transport.kind(),
        "serverInfo": ready_server.and_then(|serving| serving.server_info()),
        "timeoutSeconds": entry.calls.timeout.as_secs_f64(),
        "maxConcurrent": entry.calls.max_concurrent,
        "isolation": status.and_then(|status| status.isolation),
        "missing": missing.filter(|missing| !missing.is_empty()),
        "doubts": (!reasons.is_empty()).then_some(reasons),
        "lastFailure": status.and_then(|status| status.reason.clone()),
        "stderr": status.map(|status| status.stderr.clone()).filter(|text| !text.is_empty()),
    })
}

fn exclusion_reason(status: &ServerStatus, tool: &str) -> Option<String> {
    let excluded = status.excluded_tools.iter().find(|(name, _)| **name == *tool);
    excluded.map(|(_, reason)| reason.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::output::capture;

    #[test]
    fn with_json_the_definition_keeps_the_text_of_its_numbers() {
        let text = r#"{"name":"a", "inputSchema":{"maximum":12345678901234567890123}}"#;
        let definition = RawValue::from_string(text.to_owned()).unwrap();
        let (mut output, out, _) = capture::captured_output(true, false);
        let facts = json!({"tool": "one.a"});
        output.print_json(&ExplanationJson::new(&facts, Some(&definition))).unwrap();
        assert_eq!(out.text(), format!("{{\"tool\":\"one.a\",\"definition\":{text}}}\n"));
    }
}

//! `demo --model local`: the local model calls tools of the demo servers.

use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings, RunResult, ToolCallRecord};
use innkeeper_agent::provider::LlmProvider as _;
use innkeeper_agent::run_json::{RunContext, RunJson};
use innkeeper_agent::tools::ToolRunner as _;
use serde_json::{Value, json};

use super::{MAX_SHOWN_CHARS, shutdown_json};
use crate::configuration::LoadedConfig;
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::hosting::{ready_servers, with_host};
use crate::local_model::{LocalModel, find_installed, limit_settings};
use crate::output::{Output, Style, shorten};

/// Prompts, each in a conversation of its own: the model is too small for two tasks at once, and
/// these are among the few tasks that it can do.
const PROMPTS: [&str; 2] = [
    "Search the files for the text wine.",
    "Add a note with the title `cider` and the text `twelve casks`.",
];

pub(super) async fn run(
    context: &mut CommandContext,
    loaded: LoadedConfig,
) -> Result<(), CliError> {
    let model = find_installed(&context.environment)?;
    if !context.output.is_json() {
        context.output.print_data(&format!(
            "Starting `{}`, a language model with 135 million parameters, on this machine.\n\
             The model is small: expect wrong text and an occasional wrong call.\n",
            model.name()
        ))?;
    }
    let model_name = model.name();
    let local = LocalModel::start(&model, None).await?;
    let provider = local.provider.clone();
    let mut reports = Vec::new();
    let mut tools_discovered = 0;
    let mut servers_connected = 0;
    let ((), report) = with_host(context, loaded, async |host, output| {
        let settings = limit_settings(AgentSettings::default());
        let agent = Agent::new(provider.clone(), Arc::new(host.clone()), settings);
        for prompt in PROMPTS {
            agent.clear();
            let report = agent.run(prompt).await;
            if !output.is_json() {
                print_run(output, prompt, &report)?;
            }
            (tools_discovered, servers_connected) = (host.list_tools().len(), ready_servers(host));
            reports.push((report, agent.conversation()));
        }
        Ok(())
    })
    .await?;
    local.stop().await?;
    let output = &mut context.output;
    let successful_calls = reports
        .iter()
        .flat_map(|(report, _)| &report.tool_calls)
        .filter(|tool_call| tool_call.outcome.success)
        .count();
    if output.is_json() {
        let results: Vec<_> = PROMPTS
            .iter()
            .zip(&reports)
            .map(|(prompt, (report, conversation))| {
                let context = RunContext {
                    provider: provider.name(),
                    model: provider.model(),
                    system: "",
                    conversation,
                    tools_discovered,
                    servers_connected,
                };
                json!({"question": prompt, "result": RunJson::new(report, &context)})
            })
            .collect();
        let model = Value::from(model_name);
        output.print_json(&json!({
            "scripted": false, "model": model, "answers": results, "shutdown": shutdown_json(&report),
        }))?;
    } else {
        let took = report.took.as_secs_f64() * 1000.0;
        output.print_data(&format!(
            "{successful_calls} calls of the model succeeded; all servers and the model stopped after \
             {took:.0} ms."
        ))?;
    }
    match successful_calls {
        0 => Err(CliError::failure("no call of the model succeeded")),
        _ => Ok(()),
    }
}

fn print_run(output: &mut Output, prompt: &str, report: &RunResult) -> std::io::Result<()> {
    let label = output.paint(Style::Strong, "prompt");
    output.print_data(&format!("{label}  {prompt}"))?;
    for call in &report.tool_calls {
        let ToolCallRecord { tool, arguments, result_text: result, origin, .. } = &**call;
        let tool = output.paint(Style::Good, tool);
        output.print_data(&format!(
            "        → {tool} {}",
            shorten(&arguments.to_string(), MAX_SHOWN_CHARS)
        ))?;
        output.print_data(&format!(
            "        ← {} ({})",
            shorten(result, MAX_SHOWN_CHARS),
            origin.name()
        ))?;
    }
    let text = if report.text.is_empty() { "(no text)" } else { &report.text };
    output.print_data(&format!("reply   {}\n", shorten(text, MAX_SHOWN_CHARS)))
}

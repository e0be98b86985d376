//! `demo --model local`: the local model calls tools of the demo servers.

use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings, RunResult, ToolCallRecord};
use innkeeper_agent::conversation::HistoryBudget;
use innkeeper_agent::provider::ProviderApi;
use innkeeper_agent::run_json::RunJson;
use innkeeper_agent::transport::{Endpoint, HttpProvider};
use innkeeper_host::{Config, Host};
use serde_json::{Value, json};

use super::{shutdown_json, truncate};
use crate::commands::CommandContext;
use crate::exit::CliError;
use crate::hosting::with_host;
use crate::model::{InstalledModel, ModelServer, default_models_dir};
use crate::output::{Output, Style};

/// Prompts, each in a conversation of its own: the model is too small for two tasks at once, and
/// these are among the few tasks that it can do.
const PROMPTS: [&str; 2] = [
    "Search the files for the text wine.",
    "Add a note with the title `cider` and the text `twelve casks`.",
];

/// Maximum number of tokens in the history and the response; the model's context is 8,192 tokens.
const MAX_HISTORY_TOKENS: usize = 6000;
const MAX_RESPONSE_TOKENS: u32 = 200;

pub(super) async fn run(context: &mut CommandContext, config: Config) -> Result<(), CliError> {
    let dir = default_models_dir(&context.environment);
    let missing = || {
        CliError::failure("the local model is not installed")
            .with_hint("run `innkeeper model fetch` to install the model (161 MB)")
    };
    let dir = dir.ok_or_else(missing)?;
    let model = InstalledModel::open_default(&dir)?.ok_or_else(missing)?;
    if !context.output.is_json() {
        context.output.print_data(&format!(
            "Starting `{}`, a language model with 135 million parameters, on this machine.\n\
             The model is small: expect wrong text and an occasional wrong call.\n",
            model.name()
        ))?;
    }
    let server = model.serve(None).await?;
    let provider = Arc::new(connect_provider(&server).await?);
    let mut reports = Vec::new();
    let operation = async |host: &Host, output: &mut Output| {
        let settings = AgentSettings {
            history_budget: Some(HistoryBudget { max_tokens: MAX_HISTORY_TOKENS }),
            max_tokens: MAX_RESPONSE_TOKENS,
            temperature: Some(0.0),
            ..AgentSettings::default()
        };
        let agent = Agent::new(provider.clone(), Arc::new(host.clone()), settings);
        for prompt in PROMPTS {
            agent.clear();
            let report = agent.run(prompt).await;
            if !output.is_json() {
                print_run(output, prompt, &report)?;
            }
            reports.push(report);
        }
        Ok(())
    };
    let ((), report) = with_host(context, config, operation).await?;
    server
        .stop()
        .await
        .map_err(|error| CliError::failure("cannot stop the model server").with_source(error))?;
    let output = &mut context.output;
    let successful_calls = reports
        .iter()
        .flat_map(|report| &report.tool_calls)
        .filter(|tool_call| tool_call.success)
        .count();
    if output.is_json() {
        let results: Vec<_> = PROMPTS
            .iter()
            .zip(&reports)
            .map(|(prompt, report)| {
                json!({"question": prompt, "result": RunJson::new(report, &*provider, 0)})
            })
            .collect();
        let model = Value::from(model.name());
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

async fn connect_provider(server: &ModelServer) -> Result<HttpProvider, CliError> {
    let endpoint = Endpoint {
        base_url: server.base_url(),
        ..Endpoint::new("local", ProviderApi::OpenAiChat, server.model_name())
    };
    let mut provider = HttpProvider::new(endpoint);
    let looked = provider.probe_server().await;
    looked.map_err(|error| CliError::failure("cannot connect to the model").with_source(error))?;
    Ok(provider)
}

fn print_run(output: &mut Output, prompt: &str, report: &RunResult) -> std::io::Result<()> {
    let label = output.paint(Style::Strong, "prompt");
    output.print_data(&format!("{label}  {prompt}"))?;
    for call in &report.tool_calls {
        let ToolCallRecord { tool, arguments, result_text: result, origin, .. } = &**call;
        let tool = output.paint(Style::Good, tool);
        output.print_data(&format!("        → {tool} {}", truncate(&arguments.to_string())))?;
        output.print_data(&format!("        ← {} ({})", truncate(result), origin.name()))?;
    }
    let text = if report.text.is_empty() { "(no text)" } else { &report.text };
    output.print_data(&format!("reply   {}\n", truncate(text)))
}

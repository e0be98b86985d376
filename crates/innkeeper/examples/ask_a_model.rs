//! Sends one prompt to a model that may call the tools of all servers of a configuration.
//!
//! `cargo run --example ask_a_model -- mcp.json ollama 'Summarize a.txt.' llama3.1:8b`
//!
//! The provider is `openai`, `openai-compatible`, `anthropic`, `gemini` or `ollama`. The API key
//! comes from the environment variable of the provider, for example `OPENAI_API_KEY`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use innkeeper::agent::AgentEvent;
use innkeeper::text::display_safe;
use innkeeper::transport::{ModelSelector, get_llm_client};
use innkeeper::{Agent, AgentSettings, Config, Environment, Host};

const USAGE: &str = "usage: ask_a_model CONFIG PROVIDER PROMPT [MODEL [BASE_URL]]";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [config, provider, prompt, optional @ ..] = &words[..] else { return Err(USAGE.into()) };
    let selector = ModelSelector {
        provider: provider.clone(),
        model: optional.first().cloned(),
        base_url: optional.get(1).cloned(),
        ..ModelSelector::default()
    };
    let model = get_llm_client(&selector, &Environment::from_process())?;
    let host = Host::start(Config::from_file(config)?).await?;
    let settings =
        AgentSettings { system: "Answer in one sentence.".to_owned(), ..AgentSettings::default() };
    let agent = Agent::new(Arc::new(model), Arc::new(host.clone()), settings);

    let result = agent.run_streaming(prompt, show).await;
    println!();
    if !result.is_success() {
        println!("no response: {:?}", result.outcome);
    }
    println!("{} of {} tool calls succeeded", succeeded(&result), result.tool_calls.len());
    host.shutdown().await;
    Ok(())
}

/// Prints an event while the run goes on.
fn show(event: AgentEvent) {
    match event {
        AgentEvent::Text(text) => print!("{}", display_safe(&text)),
        AgentEvent::ToolCallStarted { tool, arguments, .. } => {
            println!("calls `{tool}` {arguments}");
        }
        AgentEvent::ToolCallFinished(call) => {
            println!("result of `{}`: {}", call.tool, display_safe(&call.result_text));
        }
        AgentEvent::Retrying { delay } => println!("\nsends the request again after {delay:?}"),
        AgentEvent::Reasoning(_)
        | AgentEvent::ToolCallDetected { .. }
        | AgentEvent::ToolCallProgress { .. }
        | AgentEvent::Planned(_)
        | AgentEvent::HistorySummaryStarted { .. }
        | AgentEvent::MessagesAdded(_)
        | AgentEvent::HistoryShortened { .. }
        | AgentEvent::ResponseFinished { .. }
        | AgentEvent::Warned(_)
        | AgentEvent::ToolsOmitted(_)
        | AgentEvent::Finished(_) => {}
    }
    // A closed terminal ends the program at the next write.
    std::io::stdout().flush().unwrap_or_default();
}

fn succeeded(result: &innkeeper::agent::RunResult) -> usize {
    result.tool_calls.iter().filter(|call| call.outcome.success).count()
}

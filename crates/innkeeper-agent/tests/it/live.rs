//! Live tests with a model of 135 million parameters on a llama.cpp server.
//!
//! The model and the server exercise the codecs with questions, calls, results and responses.
//! The tests are ignored by default: `cargo xtask test` runs the short ones where the model is
//! installed, `cargo xtask eval-local-model` runs the others.

mod metrics;
mod ollama;
mod smoke;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::agent::{Agent, AgentSettings, RunResult};
use innkeeper_agent::provider::ProviderApi;
use innkeeper_agent::run::ToolCalling;
use innkeeper_agent::tools::ToolRunner;
use innkeeper_agent::transport::{Endpoint, HttpProvider};
use innkeeper_testkit::LlamaServer;

use metrics::TaskMetrics;
use ollama::OllamaProxy;
use tasks::{RecordingTools, TaskCase};

/// A template with tools; the template in the model's file has none.
const CHAT_TEMPLATE: &str = include_str!("../../../innkeeper-cli/src/model/chat-template.jinja");

/// The name of the model on the server.
const MODEL_NAME: &str = "smollm2-135m";

/// The APIs of llama.cpp itself.
const LLAMA_APIS: [ProviderApi; 3] =
    [ProviderApi::OpenAiChat, ProviderApi::OpenAiResponses, ProviderApi::Anthropic];

/// Starts the server with our template.
fn start_server() -> LlamaServer {
    let arguments =
        ["--jinja", "--chat-template", CHAT_TEMPLATE, "--alias", MODEL_NAME, "--predict", "100"];
    LlamaServer::start(&arguments).unwrap_or_else(|reason| panic!("{reason}"))
}

/// Connects to the model over an API, with the server's capabilities probed.
async fn connect_model(api: ProviderApi, origin: &str) -> HttpProvider {
    let base_url = match api {
        ProviderApi::OpenAiChat | ProviderApi::OpenAiResponses => format!("{origin}/v1"),
        ProviderApi::Anthropic | ProviderApi::Ollama => origin.to_owned(),
        ProviderApi::GeminiGenerate | ProviderApi::GeminiInteractions => {
            panic!("no server here speaks it")
        }
    };
    let mut provider =
        HttpProvider::new(Endpoint { base_url, ..Endpoint::new("local", api, MODEL_NAME) });
    provider.probe_server().await.unwrap();
    provider
}

/// Settings that make responses reproducible and short.
fn test_settings(tool_calling: ToolCalling) -> AgentSettings {
    let mut settings = AgentSettings::default();
    "You are a helpful assistant.".clone_into(&mut settings.system);
    settings.limits.max_iterations = 3;
    settings.limits.retry_delay = Duration::from_millis(1);
    settings.limits.response_timeout = Duration::from_secs(120);
    settings.requests.temperature = Some(0.0);
    settings.requests.max_tokens = if tool_calling == ToolCalling::Constrained { 256 } else { 64 };
    settings.tool_use.tool_calling = tool_calling;
    settings
}

async fn run_agent(
    provider: HttpProvider,
    runner: Arc<dyn ToolRunner>,
    settings: AgentSettings,
    message: &str,
) -> RunResult {
    let agent = Agent::new(Arc::new(provider), runner, settings);
    agent.run_streaming(message, |_| {}).await
}

/// Asks thirty questions over one API in one mode.
async fn measure(api: ProviderApi, origin: &str, calling: ToolCalling) -> TaskMetrics {
    let mut figures = TaskMetrics::new(api, calling);
    let mut settings = test_settings(calling);
    if api == ProviderApi::Ollama && calling == ToolCalling::Native {
        // The proxy rejects every tool result with status 500.
        settings.limits.retry_budget = 1;
    }
    for case in tasks::load_cases() {
        let tools = RecordingTools::for_case(&case);
        let provider = connect_model(api, origin).await;
        let report = run_agent(provider, tools.clone(), settings.clone(), &case.question).await;
        let run = report.tool_calls.iter().filter(|call| call.outcome.was_run).count();
        assert_eq!(tools.calls().len(), run, "what is run reaches the tools");
        figures.count(&case, &report);
    }
    figures
}

#[tokio::test]
#[ignore = "minutes: `cargo xtask eval-local-model` runs it"]
async fn a_real_model_calls_tools_over_every_api_of_its_server() {
    let server = start_server();
    for api in LLAMA_APIS {
        let native = measure(api, &server.origin(), ToolCalling::Native).await;
        native.write();
        assert!(native.valid > 0 && native.answered > 0, "{native:?}");
    }
    if let Some(proxy) = start_proxy(&server) {
        measure(ProviderApi::Ollama, &proxy.origin(), ToolCalling::Native).await.write();
    }
}

#[tokio::test]
#[ignore = "minutes: `cargo xtask eval-local-model` runs it"]
async fn every_constrained_call_of_a_real_model_fits_its_schema() {
    let server = start_server();
    let metrics =
        measure(ProviderApi::OpenAiChat, &server.origin(), ToolCalling::Constrained).await;
    metrics.write();
    assert_eq!((metrics.valid, metrics.constrained()), (30, 30), "{metrics:?}");
}

/// A model of this size calls tools from a prompt too rarely to assert a number.
#[tokio::test]
#[ignore = "minutes: `cargo xtask eval-local-model` runs it"]
async fn a_real_model_gets_tools_in_its_prompt_over_every_api() {
    let server = start_server();
    for api in LLAMA_APIS {
        measure(api, &server.origin(), ToolCalling::Prompt).await.write();
    }
    if let Some(proxy) = start_proxy(&server) {
        measure(ProviderApi::Ollama, &proxy.origin(), ToolCalling::Prompt).await.write();
    }
}

/// Starts the proxy for Ollama's API, or records why not.
fn start_proxy(server: &LlamaServer) -> Option<OllamaProxy> {
    let proxy = OllamaProxy::start(&server.origin());
    proxy.inspect_err(|reason| metrics::write_skipped(ProviderApi::Ollama, reason)).ok()
}

//! A real model of 135 million weights behind a real llama.cpp server drives our codecs, from a
//! question over a call and its result to an answer. Where there is no such server, one line says why.

mod figures;
mod ollama;
mod smoke;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::agent::{Agent, Report, Settings};
use innkeeper_agent::provider::Wire;
use innkeeper_agent::tools::ToolRunner;
use innkeeper_agent::transport::{Endpoint, HttpProvider};
use innkeeper_agent::turn::{Limits, ToolCalling};
use innkeeper_testkit::LlamaServer;

use figures::Figures;
use ollama::Proxy;
use tasks::{Case, Desk};

/// With tools, which the template in the model's file has not.
const TEMPLATE: &str = include_str!("../../../innkeeper-cli/src/model/chat-template.jinja");

/// What the server calls its model.
const MODEL: &str = "smollm2-135m";

/// The wires that llama.cpp itself speaks.
const OWN: [Wire; 3] = [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic];

/// The server with our template, or a word on why there is none.
fn started() -> Option<LlamaServer> {
    let arguments = ["--jinja", "--chat-template", TEMPLATE, "--alias", MODEL, "--predict", "100"];
    told(LlamaServer::start(&arguments))
}

fn told<T>(started: Result<T, String>) -> Option<T> {
    started.map_err(|reason| eprintln!("SKIPPED: {reason}")).ok()
}

/// The model over a wire; what its server tells of itself is known.
async fn model(wire: Wire, origin: &str) -> HttpProvider {
    let base_url = match wire {
        Wire::OpenAiChat | Wire::OpenAiResponses => format!("{origin}/v1"),
        Wire::Anthropic | Wire::Ollama => origin.to_owned(),
        Wire::GeminiGenerate | Wire::GeminiInteractions => panic!("no server here speaks it"),
    };
    let mut provider =
        HttpProvider::new(Endpoint { base_url, ..Endpoint::new("local", wire, MODEL) });
    provider.look().await.unwrap();
    provider
}

/// As it is asked here: the same every time as far as that goes, and no longer than it needs.
fn settings(calling: ToolCalling) -> Settings {
    Settings {
        system: "You are a helpful assistant.".to_owned(),
        calling,
        temperature: Some(0.0),
        max_tokens: if calling == ToolCalling::Constrained { 256 } else { 64 },
        retry_delay: Duration::from_millis(1),
        limits: Limits { max_iterations: 3, ..Limits::default() },
        answer_timeout: Duration::from_secs(120),
        ..Settings::default()
    }
}

async fn ask(
    provider: HttpProvider,
    runner: Arc<dyn ToolRunner>,
    settings: Settings,
    message: &str,
) -> Report {
    let mut agent = Agent::new(Arc::new(provider), runner, settings);
    agent.run_streaming(message, |_| {}).await
}

/// Thirty questions over one wire in one way.
async fn measure(wire: Wire, origin: &str, calling: ToolCalling) -> Figures {
    let mut figures = Figures::of(wire, calling);
    let mut settings = settings(calling);
    if wire == Wire::Ollama && calling == ToolCalling::Native {
        // The proxy takes no result of a call, and says 500 as often as it is sent one.
        settings.limits.retry_budget = 1;
    }
    for case in tasks::cases() {
        let desk = Desk::of(&case);
        let provider = model(wire, origin).await;
        let report = ask(provider, desk.clone(), settings.clone(), &case.asked).await;
        assert_eq!(desk.called().len(), report.steps.len(), "what is run reaches the tools");
        figures.count(&case, &report);
    }
    figures
}

/// Proves: G16
#[tokio::test]
#[ignore = "minutes: `cargo xtask models` runs it"]
async fn a_real_model_calls_tools_over_every_wire_it_is_served_over() {
    let Some(server) = started() else { return };
    for wire in OWN {
        let native = measure(wire, &server.origin(), ToolCalling::Native).await;
        native.keep();
        assert!(native.valid > 0 && native.answered > 0, "{native:?}");
    }
    if let Some(proxy) = proxy(&server) {
        measure(Wire::Ollama, &proxy.origin(), ToolCalling::Native).await.keep();
    }
}

#[tokio::test]
#[ignore = "minutes: `cargo xtask models` runs it"]
async fn every_call_of_a_real_model_that_is_held_to_its_form_fits() {
    let Some(server) = started() else { return };
    let held = measure(Wire::OpenAiChat, &server.origin(), ToolCalling::Constrained).await;
    held.keep();
    assert_eq!((held.valid, held.constrained()), (30, 30), "{held:?}");
}

/// So small a model does not do that well enough to be held to any figure.
#[tokio::test]
#[ignore = "minutes: `cargo xtask models` runs it"]
async fn a_real_model_is_told_of_tools_in_its_prompt_over_every_wire() {
    let Some(server) = started() else { return };
    for wire in OWN {
        measure(wire, &server.origin(), ToolCalling::Prompt).await.keep();
    }
    if let Some(proxy) = proxy(&server) {
        measure(Wire::Ollama, &proxy.origin(), ToolCalling::Prompt).await.keep();
    }
}

/// Who speaks Ollama's wire, or a word on why nobody does.
fn proxy(server: &LlamaServer) -> Option<Proxy> {
    let proxy = Proxy::start(&server.origin());
    told(proxy.inspect_err(|reason| figures::keep_skipped(Wire::Ollama, reason)))
}

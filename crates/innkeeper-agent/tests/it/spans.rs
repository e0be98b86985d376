//! The spans of a run, its requests and its calls.

use std::path::Path;
use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::provider::{LlmError, LlmErrorKind, Response, ScriptedProvider, Usage};
use innkeeper_host::{Config, Environment, Host, Telemetry};
use innkeeper_testkit::{fixture, mcp_json};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string())
}

#[tokio::test]
async fn the_spans_of_requests_and_calls_are_children_of_the_span_of_the_run() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let telemetry = Telemetry::new().traces(&provider, TraceContextPropagator::new());
    let servers = mcp_json([fixture("fx")]);
    let environment = Environment::from_process();
    let config = Config::from_value(&servers, "mcp.json", Path::new("/"), &environment).unwrap();
    let host: Host = Host::builder(config).telemetry(telemetry.clone()).start().await.unwrap();
    let call = Response::from_tool_calls([("fx.echo", r#"{"message": "a secret"}"#)]);
    let usage = Some(Usage { prompt_tokens: 70, completion_tokens: 5, ..Usage::default() });
    let model = ScriptedProvider::new([
        Ok(Response { usage, ..call }),
        Err(LlmError::new("scripted", LlmErrorKind::Refusal, "no")),
    ]);
    let agent = Agent::new(Arc::new(model), Arc::new(host.clone()), AgentSettings::default())
        .with_telemetry(telemetry);
    let result = agent.run("Say it.").await;
    assert!(!result.is_success());
    host.shutdown().await;
    let spans = exporter.get_finished_spans().unwrap();
    assert!(!format!("{spans:?}").contains("a secret"));
    let named = |name: &str| -> Vec<&SpanData> {
        spans.iter().filter(|span| span.name.starts_with(name)).collect()
    };
    let [run] = named("invoke_agent")[..] else { panic!("{spans:?}") };
    let [first, second] = named("chat")[..] else { panic!("{spans:?}") };
    let [call] = named("tools/call")[..] else { panic!("{spans:?}") };
    for child in [first, second, call] {
        assert_eq!(child.parent_span_id, run.span_context.span_id(), "{child:?}");
    }
    assert_eq!(run.name, "invoke_agent scripted");
    assert_eq!(attribute(run, "innkeeper.run.tool_calls").as_deref(), Some("1"));
    assert_eq!(attribute(run, "gen_ai.usage.input_tokens").as_deref(), Some("70"));
    assert_eq!(attribute(run, "error.type").as_deref(), Some("refused"));
    assert_eq!(attribute(first, "gen_ai.usage.output_tokens").as_deref(), Some("5"));
    assert_eq!(attribute(first, "error.type"), None);
    assert_eq!(attribute(second, "error.type").as_deref(), Some("refused"));
}

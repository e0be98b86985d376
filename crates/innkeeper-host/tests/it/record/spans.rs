//! OpenTelemetry spans and metrics, and the trace context in requests.

use std::collections::BTreeMap;
use std::time::Duration;

use innkeeper_host::{CallOptions, Host, Telemetry};
use innkeeper_testkit::RemoteServer;
use opentelemetry::baggage::BaggageExt;
use opentelemetry::propagation::{TextMapCompositePropagator, TextMapPropagator};
use opentelemetry::trace::{
    FutureExt, SpanId, SpanKind, Status, TraceContextExt, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::{Map, Value, json};

use crate::remote::config_json;
use crate::setup::{TestEnv, builder, wait_for_event};

/// In-memory exporters of an application.
struct InMemoryTelemetry {
    spans: InMemorySpanExporter,
    tracer_provider: SdkTracerProvider,
    metrics: InMemoryMetricExporter,
    meter_provider: SdkMeterProvider,
}

impl InMemoryTelemetry {
    fn new() -> Self {
        let (spans, metrics) = (InMemorySpanExporter::default(), InMemoryMetricExporter::default());
        let tracer_provider =
            SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
        let reader = PeriodicReader::builder(metrics.clone()).build();
        let meter_provider = SdkMeterProvider::builder().with_reader(reader).build();
        Self { spans, tracer_provider, metrics, meter_provider }
    }

    fn telemetry(&self) -> Telemetry {
        let both: Vec<Box<dyn TextMapPropagator + Send + Sync>> =
            vec![Box::new(TraceContextPropagator::new()), Box::new(BaggagePropagator::new())];
        let propagator = TextMapCompositePropagator::new(both);
        Telemetry::new().traces(&self.tracer_provider, propagator).metrics(&self.meter_provider)
    }

    fn spans(&self) -> Vec<SpanData> {
        self.spans.get_finished_spans().unwrap()
    }

    /// Returns the number of measurements for each combination of attribute values.
    fn measurement_counts(&self, metric: &str, keys: &[&str]) -> BTreeMap<String, u64> {
        self.meter_provider.force_flush().unwrap();
        let exported = self.metrics.get_finished_metrics().unwrap();
        let scopes = exported.last().unwrap().scope_metrics();
        let metrics = scopes.flat_map(|scope| scope.metrics());
        let matching = metrics.into_iter().find(|candidate| candidate.name() == metric).unwrap();
        assert_eq!(matching.unit(), "s");
        let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = matching.data() else {
            panic!("{matching:?}");
        };
        let mut counts = BTreeMap::new();
        for point in histogram.data_points() {
            let attributes: Vec<KeyValue> = point.attributes().cloned().collect();
            let values = keys.iter().map(|key| attribute_text(&attributes, key));
            assert_eq!(point.bounds().collect::<Vec<_>>()[..2], [0.01, 0.02]);
            *counts.entry(values.collect::<Vec<_>>().join(" ")).or_default() += point.count();
        }
        counts
    }
}

/// Returns the value of an attribute, or `-` if the attribute is missing.
fn attribute_text(attributes: &[KeyValue], key: &str) -> String {
    let matching = attributes.iter().find(|attribute| attribute.key.as_str() == key);
    matching.map_or_else(|| "-".to_owned(), |value| value.value.to_string())
}

fn attributes(span: &SpanData) -> BTreeMap<String, String> {
    let all = span.attributes.iter();
    all.map(|attribute| (attribute.key.to_string(), attribute.value.to_string())).collect()
}

async fn start(test_env: &TestEnv, telemetry: &InMemoryTelemetry, servers: Value) -> Host {
    builder(test_env.config_from(&servers)).telemetry(telemetry.telemetry()).start().await.unwrap()
}

#[tokio::test]
async fn a_call_is_one_span_under_that_of_its_caller_and_its_context_is_sent_to_the_server() {
    let test_env = TestEnv::new();
    let remote =
        RemoteServer::for_fixture(test_env.fixture("far").with("--era", "modern")).start().await;
    let telemetry = InMemoryTelemetry::new();
    let servers = config_json([
        ("near", test_env.fixture("near").config_entry()),
        ("far", remote.config_entry()),
    ]);
    let host = start(&test_env, &telemetry, servers).await;
    assert!(telemetry.spans().is_empty(), "what the host asks for itself is no call");
    for (server, transport, protocol, revision) in
        [("near", "pipe", None, "2025-11-25"), ("far", "tcp", Some("http"), "2026-07-28")]
    {
        telemetry.spans.reset();
        let parent = telemetry.tracer_provider.tracer("application").start("agent");
        let caller = Context::new().with_span(parent).with_baggage([KeyValue::new("who", "a b")]);
        let canary = json!({"message": "canary-4711"});
        host.call_tool(&format!("{server}.echo"), canary)
            .with_context(caller.clone())
            .await
            .unwrap();
        caller.span().end();
        let spans = telemetry.spans();
        assert_eq!(spans.len(), 2, "{spans:#?}");
        let (span, above) = (&spans[0], caller.span().span_context().clone());
        assert_eq!((&*span.name, &span.span_kind), ("tools/call echo", &SpanKind::Client));
        assert_eq!((span.parent_span_id, &span.status), (above.span_id(), &Status::Unset));
        let journal = test_env.journal().for_server(server);
        let sent = &journal.received("tools/call")[0].message;
        let mut expected: BTreeMap<String, String> = [
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "echo"),
            ("innkeeper.server", server),
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", revision),
            ("network.transport", transport),
            ("jsonrpc.request.id", &sent["id"].to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        expected.extend(protocol.map(|name| ("network.protocol.name".to_owned(), name.to_owned())));
        assert_eq!(attributes(span), expected);
        let own_context = &span.span_context;
        let traceparent = format!("00-{}-{}-01", above.trace_id(), own_context.span_id());
        let meta = &sent["params"]["_meta"];
        assert_eq!(
            (&meta["traceparent"], &meta["baggage"]),
            (&json!(traceparent), &json!("who=a%20b"))
        );
        assert_eq!(meta.get("tracestate"), None, "it is empty");
        assert_eq!(meta["progressToken"], sent["id"]);
        assert!(!format!("{spans:?}").contains("canary"), "arguments in a span");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn prompts_and_resources_have_spans_and_what_comes_from_the_cache_has_none() {
    let (test_env, telemetry) = (TestEnv::new(), InMemoryTelemetry::new());
    let host = start(
        &test_env,
        &telemetry,
        config_json([("one", test_env.fixture("one").config_entry())]),
    )
    .await;
    let arguments: Map<String, Value> = json!({"name": "x"}).as_object().unwrap().clone();
    for _ in 0..2 {
        host.get_prompt("one.greet", &arguments, CallOptions::default()).await.unwrap();
        host.read_resource("fx://one/static", None, CallOptions::default()).await.unwrap();
    }
    let spans = telemetry.spans();
    let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["prompts/get greet", "resources/read"]);
    assert!(spans.iter().all(|span| span.parent_span_id == SpanId::INVALID));
    assert_eq!(attribute_text(&spans[0].attributes, "gen_ai.prompt.name"), "greet");
    assert_eq!(attribute_text(&spans[1].attributes, "mcp.resource.uri"), "fx://one/static");
    let keys = ["mcp.method.name", "mcp.resource.uri"];
    let measured = telemetry.measurement_counts("mcp.client.operation.duration", &keys);
    assert_eq!(
        measured,
        [("prompts/get -".to_owned(), 1), ("resources/read -".to_owned(), 1)].into()
    );
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_that_fails_says_in_one_word_how_and_so_does_a_session_that_is_lost() {
    let (test_env, telemetry) = (TestEnv::new(), InMemoryTelemetry::new());
    let fixture = test_env.fixture("one").config_key("unavailableAfterTimeouts", 9);
    let (no, crashing) =
        (test_env.fixture("no").with("--server-error", -32050), test_env.fixture("gone"));
    let crashing = crashing.with("--crash-after", 1);
    let servers = config_json([
        ("one", fixture.config_entry()),
        ("no", no.config_entry()),
        ("gone", crashing.config_entry()),
    ]);
    let host = start(&test_env, &telemetry, servers).await;
    let mut events = host.events();
    host.call_tool("one.fail", ()).await.unwrap();
    let short = Duration::from_millis(50);
    let options = CallOptions { timeout: Some(short), ..CallOptions::default() };
    host.call_tool_with("one.sleep", json!({"ms": 9_000}), options).await.unwrap_err();
    let dropped = host.call_tool("one.sleep", json!({"ms": 9_000}));
    tokio::time::timeout(short, dropped).await.unwrap_err();
    host.call_tool("no.pid", ()).await.unwrap_err();
    host.call_tool("gone.pid", ()).await.unwrap_err();
    let is_unavailable = |event: &_| matches!(event, innkeeper_host::HostEvent::Unavailable { .. });
    wait_for_event(&mut events, is_unavailable).await;
    let spans = telemetry.spans();
    let error_types: Vec<String> =
        spans.iter().map(|span| attribute_text(&span.attributes, "error.type")).collect();
    assert_eq!(error_types, ["tool_error", "timeout", "cancelled", "-32050", "unavailable"]);
    assert!(spans.iter().all(|span| span.status == Status::error("")), "{spans:#?}");
    assert_eq!(attribute_text(&spans[3].attributes, "rpc.response.status_code"), "-32050");
    host.shutdown().await;
    let calls = telemetry
        .measurement_counts("mcp.client.operation.duration", &["gen_ai.tool.name", "error.type"]);
    let expected =
        ["fail tool_error", "pid -32050", "pid unavailable", "sleep cancelled", "sleep timeout"];
    assert_eq!(calls.keys().map(String::as_str).collect::<Vec<_>>(), expected);
    let sessions = telemetry
        .measurement_counts("mcp.client.session.duration", &["innkeeper.server", "error.type"]);
    let expected = ["gone exited", "no -", "one -"];
    assert_eq!(sessions.keys().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn without_telemetry_nothing_of_a_trace_is_sent() {
    let (test_env, telemetry) = (TestEnv::new(), InMemoryTelemetry::new());
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let parent = telemetry.tracer_provider.tracer("application").start("agent");
    let caller = Context::new().with_span(parent);
    host.call_tool("one.pid", ()).with_context(caller).await.unwrap();
    host.shutdown().await;
    let journal = test_env.journal();
    let sent = &journal.received("tools/call")[0].message;
    assert_eq!(sent["params"]["_meta"], json!({ "progressToken": sent["id"] }));
}

//! OpenTelemetry spans and the histogram of the requests of clients.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use http::StatusCode;
use innkeeper_gateway::{GatewayBuilder, GatewayOptions};
use innkeeper_host::Telemetry;
use innkeeper_testkit::{Fixture, Journal};
use opentelemetry::context::FutureExt;
use opentelemetry::propagation::{TextMapCompositePropagator, TextMapPropagator};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::http::{HttpClient, call, json as body_json, modern};
use crate::rest;
use crate::setup::{TEST_TIMEOUT, TestClient, TestEnv, TestGateway};

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT_ID: &str = "b7ad6b7169203331";

fn traceparent() -> String {
    format!("00-{TRACE_ID}-{PARENT_ID}-01")
}

/// A gateway and its hosts with in-memory exporters.
struct Traced {
    gateway: TestGateway,
    spans: InMemorySpanExporter,
    metrics: InMemoryMetricExporter,
    meter_provider: SdkMeterProvider,
    _tracer_provider: SdkTracerProvider,
}

impl Traced {
    async fn start(test_env: &TestEnv, server: Fixture) -> Self {
        let (spans, metrics) = (InMemorySpanExporter::default(), InMemoryMetricExporter::default());
        let tracer_provider =
            SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
        let reader = PeriodicReader::builder(metrics.clone()).build();
        let meter_provider = SdkMeterProvider::builder().with_reader(reader).build();
        let both: Vec<Box<dyn TextMapPropagator + Send + Sync>> =
            vec![Box::new(TraceContextPropagator::new()), Box::new(BaggagePropagator::new())];
        let propagator = TextMapCompositePropagator::new(both);
        let telemetry =
            Telemetry::new().traces(&tracer_provider, propagator).metrics(&meter_provider);
        let builder = GatewayBuilder::new(GatewayOptions::default()).telemetry(telemetry.clone());
        let server = server.journal(&test_env.journal());
        let prepare = move |host: innkeeper_host::HostBuilder| host.telemetry(telemetry.clone());
        let gateway = test_env.gateway_with_hosts(builder, [server], prepare).await;
        Self { gateway, spans, metrics, meter_provider, _tracer_provider: tracer_provider }
    }

    async fn client(&self, era: &str) -> TestClient {
        let client = match era {
            "legacy" => self.gateway.initialized("local", json!({})).await,
            _ => self.gateway.modern("local", json!({})),
        };
        self.spans.reset();
        client
    }

    /// Returns the spans of this kind, the first one first.
    fn spans(&self, kind: &SpanKind) -> Vec<SpanData> {
        let spans = self.spans.get_finished_spans().unwrap();
        spans.into_iter().filter(|span| span.span_kind == *kind).collect()
    }

    /// Waits until this number of spans of requests of clients ended.
    async fn server_spans(&self, count: usize) -> Vec<SpanData> {
        let ended = timeout(TEST_TIMEOUT, async {
            while self.spans(&SpanKind::Server).len() < count {
                sleep(Duration::from_millis(1)).await;
            }
        });
        assert!(ended.await.is_ok(), "{:#?}", self.spans.get_finished_spans());
        let spans = self.spans(&SpanKind::Server);
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans
    }

    /// Returns the number of measurements for each combination of attributes.
    fn measurement_counts(&self) -> BTreeMap<String, u64> {
        self.meter_provider.force_flush().unwrap();
        let exported = self.metrics.get_finished_metrics().unwrap();
        let scopes = exported.last().unwrap().scope_metrics();
        let metrics = scopes.flat_map(|scope| scope.metrics());
        let named = |name: &str| name == "mcp.server.operation.duration";
        let metric = metrics.into_iter().find(|metric| named(metric.name())).unwrap();
        assert_eq!(metric.unit(), "s");
        let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
            panic!("{metric:?}");
        };
        let points = histogram.data_points().map(|point| {
            let attributes: Vec<KeyValue> = point.attributes().cloned().collect();
            let keys = ["mcp.method.name", "gen_ai.tool.name", "error.type"];
            let texts = keys.map(|key| attribute(&attributes, key));
            (texts.join(" "), point.count())
        });
        points.collect()
    }
}

/// Returns the value of an attribute, or `-`.
fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key.as_str() == key);
    found.map_or_else(|| "-".to_owned(), |attribute| attribute.value.to_string())
}

/// Returns the `_meta` of the only call that the server received.
fn received_meta(test_env: &TestEnv) -> Value {
    let journal = Journal::read(&test_env.journal());
    journal.received("tools/call")[0].message["params"]["_meta"].clone()
}

fn echo(meta: &Value) -> Value {
    json!({ "name": "a.echo", "arguments": { "message": "canary-4711" }, "_meta": meta })
}

#[tokio::test]
async fn a_request_is_one_span_between_that_of_the_client_and_that_of_the_call_in_both_eras() {
    for (client_era, server_era, revision) in [
        ("legacy", "legacy", "2025-11-25"),
        ("legacy", "modern", "2025-11-25"),
        ("modern", "legacy", "2026-07-28"),
        ("modern", "modern", "2026-07-28"),
    ] {
        let test_env = TestEnv::new();
        let traced =
            Traced::start(&test_env, test_env.fixture("a").with("--era", server_era)).await;
        let mut client = traced.client(client_era).await;
        let meta = json!({ "traceparent": traceparent(), "tracestate": "k=v", "baggage": "who=me",
            "x/own": 1.5 });
        let id = client.next_id();
        client.request("tools/call", echo(&meta)).await;
        let spans = traced.server_spans(1).await;
        let span = &spans[0];
        assert_eq!((&*span.name, &span.status), ("tools/call a.echo", &Status::Unset));
        assert_eq!(span.span_context.trace_id().to_string(), TRACE_ID);
        assert_eq!(span.parent_span_id.to_string(), PARENT_ID);
        assert!(span.parent_span_is_remote);
        let attributes: BTreeMap<&str, String> =
            span.attributes.iter().map(|one| (one.key.as_str(), one.value.to_string())).collect();
        let expected = [
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "a.echo"),
            ("jsonrpc.request.id", &id.to_string()),
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", revision),
        ];
        assert_eq!(attributes, expected.map(|(key, value)| (key, value.to_owned())).into());
        let below = traced.spans(&SpanKind::Client);
        assert_eq!(below.len(), 1, "{below:#?}");
        assert_eq!(below[0].parent_span_id, span.span_context.span_id());
        let received = received_meta(&test_env);
        let sent = format!("00-{TRACE_ID}-{}-01", below[0].span_context.span_id());
        assert_eq!(received["traceparent"], sent, "{client_era} {server_era}");
        assert_eq!(
            (&received["tracestate"], &received["baggage"]),
            (&json!("k=v"), &json!("who=me"))
        );
        assert_eq!(received["x/own"], 1.5);
        assert!(!format!("{spans:?}").contains("canary"), "arguments in a span");
    }
}

#[tokio::test]
async fn errors_and_cancelled_requests_end_their_spans_as_failed() {
    let test_env = TestEnv::new();
    let traced = Traced::start(&test_env, test_env.fixture("a")).await;
    let mut client = traced.client("legacy").await;
    client.request("tools/call", json!({ "name": "a.fail", "arguments": {} })).await;
    client.respond("tools/call", json!({ "name": "nothing-4711", "arguments": {} })).await;
    client.request("ping", json!({})).await;
    let slow = json!({ "name": "a.sleep", "arguments": { "ms": 60_000 } });
    let id = client.start("tools/call", slow).await;
    let received = timeout(TEST_TIMEOUT, async {
        while Journal::read(&test_env.journal()).received("tools/call").len() < 2 {
            sleep(Duration::from_millis(1)).await;
        }
    });
    received.await.unwrap();
    client.notify("notifications/cancelled", json!({ "requestId": id })).await;
    traced.server_spans(4).await;
    client.respond("custom/4711", json!({})).await;
    let spans = traced.server_spans(5).await;
    let shown: Vec<(&str, String, bool)> = spans
        .iter()
        .map(|span| {
            let is_failed = span.status == Status::error("");
            (&*span.name, attribute(&span.attributes, "error.type"), is_failed)
        })
        .collect();
    let expected = [
        ("tools/call a.fail", "tool_error", true),
        ("tools/call nothing-4711", "-32602", true),
        ("ping", "-", false),
        ("tools/call a.sleep", "cancelled", true),
        ("_OTHER", "-32601", true),
    ];
    let expected = expected.map(|(name, error, failed)| (name, error.to_owned(), failed));
    assert_eq!(shown, expected);
    assert_eq!(attribute(&spans[1].attributes, "rpc.response.status_code"), "-32602");
    let counts = traced.measurement_counts();
    let count = |key: &str| counts.get(key).copied();
    assert_eq!(count("tools/call a.fail tool_error"), Some(1), "{counts:?}");
    assert_eq!(count("tools/call - -32602"), Some(1), "{counts:?}");
    assert_eq!(count("tools/call - cancelled"), Some(1), "{counts:?}");
    assert_eq!(count("_OTHER - -32601"), Some(1), "{counts:?}");
    assert_eq!(count("ping - -"), Some(1), "{counts:?}");
}

#[tokio::test]
async fn a_client_that_disconnects_ends_the_span_of_its_call_as_cancelled() {
    let test_env = TestEnv::new();
    let traced = Traced::start(&test_env, test_env.fixture("a")).await;
    let router = traced.gateway.router();
    let request = rest::request("POST", "/tools/a.sleep");
    let request = request.body(Body::from(r#"{"ms":60000}"#)).unwrap();
    let responding = tower::ServiceExt::oneshot(router, request);
    let received = async {
        while Journal::read(&test_env.journal()).received("tools/call").is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        response = responding => panic!("{response:?}"),
        received = timeout(TEST_TIMEOUT, received) => received.unwrap(),
    }
    let spans = traced.server_spans(1).await;
    assert_eq!(attribute(&spans[0].attributes, "error.type"), "cancelled");
    assert_eq!(spans[0].status, Status::error(""));
}

#[tokio::test]
async fn the_trace_context_of_http_headers_applies_without_one_in_the_request() {
    let test_env = TestEnv::new();
    let traced = Traced::start(&test_env, test_env.fixture("a")).await;
    let client = HttpClient::initialized(&traced.gateway, json!({})).await;
    traced.spans.reset();
    let with_header = |builder: http::request::Builder, body: String| {
        builder.header("traceparent", traceparent()).body(Body::from(body)).unwrap()
    };
    let legacy = with_header(client.request("POST"), call(1).to_string());
    assert_eq!(client.send(legacy).await.status(), StatusCode::OK);
    let stateless = HttpClient::new(&traced.gateway);
    let mut request = modern(&stateless, "a.echo", &json!({}));
    request.headers_mut().insert("traceparent", traceparent().parse().unwrap());
    let response = stateless.send(request).await;
    assert!(body_json(response).await.get("result").is_some());
    let plain =
        with_header(rest::request("POST", "/tools/a.echo"), r#"{"message":"hi"}"#.to_owned());
    assert_eq!(stateless.send(plain).await.status(), StatusCode::OK);
    let mut in_request = call(2);
    let own = format!("00-{}-{PARENT_ID}-01", "1".repeat(32));
    in_request["params"]["_meta"]["traceparent"] = own.into();
    let both = with_header(client.request("POST"), in_request.to_string());
    assert_eq!(client.send(both).await.status(), StatusCode::OK);
    let spans = traced.server_spans(4).await;
    let shown: Vec<(String, String)> = spans
        .iter()
        .map(|span| {
            let protocol = attribute(&span.attributes, "network.protocol.name");
            (span.span_context.trace_id().to_string(), protocol)
        })
        .collect();
    let ids = [TRACE_ID, TRACE_ID, TRACE_ID, &"1".repeat(32)];
    assert_eq!(shown, ids.map(|id| (id.to_owned(), "http".to_owned())));
    let ids = spans.iter().map(|span| attribute(&span.attributes, "jsonrpc.request.id"));
    assert_eq!(ids.collect::<Vec<_>>(), ["1", "1", "-", "2"]);
}

/// Attack: remote | a client sends baggage, ids and names of any length in its requests | spans, metrics
/// and requests to servers contain none that exceeds its limit | No unbounded memory
#[tokio::test]
async fn baggage_ids_and_names_of_a_client_have_a_limit() {
    let test_env = TestEnv::new();
    let traced = Traced::start(&test_env, test_env.fixture("a")).await;
    let mut client = traced.client("legacy").await;
    let baggage = format!("k={}", "x".repeat(9_000));
    let meta = json!({ "traceparent": traceparent(), "baggage": baggage });
    let id = "i".repeat(9_000);
    let long = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": echo(&meta) });
    client.send(&long).await;
    assert!(client.response(&json!(id)).await.get("result").is_some());
    let name = "n".repeat(9_000);
    client.respond("tools/call", json!({ "name": name, "arguments": {} })).await;
    let spans = traced.server_spans(2).await;
    assert_eq!(spans[0].parent_span_id.to_string(), PARENT_ID);
    assert_eq!(attribute(&spans[0].attributes, "jsonrpc.request.id"), "-");
    assert_eq!(spans[1].name, "tools/call");
    assert!(received_meta(&test_env).get("baggage").is_none());
    let counts = traced.measurement_counts();
    assert_eq!(counts.get("tools/call - -32602"), Some(&1), "{counts:?}");
}

#[tokio::test]
async fn without_telemetry_the_trace_context_of_a_client_passes_byte_for_byte() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").journal(&test_env.journal());
    let gateway = test_env.gateway([server]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let trace = r#""traceparent":"00-\u0061-not-checked","tracestate":"k=v","baggage":"k=1.50""#;
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"a.echo","arguments":{{"message":"hi"}},"_meta":{{{trace}}}}}}}"#
    );
    client.send_line(&line).await;
    assert!(client.response(&json!(7)).await.get("result").is_some());
    let journal = Journal::read(&test_env.journal());
    let received = &journal.received("tools/call")[0].raw;
    assert!(received.contains(trace), "{received}");
}

#[tokio::test]
async fn without_a_tracer_provider_the_span_of_the_application_stays_open() {
    let test_env = TestEnv::new();
    let spans = InMemorySpanExporter::default();
    let tracer_provider = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
    let telemetry = Telemetry::new().metrics(&SdkMeterProvider::default());
    let builder = GatewayBuilder::new(GatewayOptions::default()).telemetry(telemetry);
    let server = test_env.fixture("a").journal(&test_env.journal());
    let gateway = test_env.gateway_with(builder, [server]).await;
    let span = tracer_provider.tracer("application").start("outer");
    let context = Context::new().with_span(span);
    let request = rest::request("POST", "/tools/a.echo").body(Body::from(r#"{"message":"hi"}"#));
    let responding = tower::ServiceExt::oneshot(gateway.router(), request.unwrap());
    let response = responding.with_context(context.clone()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(context.span().is_recording());
    assert!(spans.get_finished_spans().unwrap().is_empty());
    let mut client = gateway.initialized("local", json!({})).await;
    client.request("tools/call", echo(&json!({ "traceparent": traceparent() }))).await;
    let journal = Journal::read(&test_env.journal());
    let received = &journal.received("tools/call")[1].message["params"]["_meta"];
    assert_eq!(received["traceparent"], traceparent());
}

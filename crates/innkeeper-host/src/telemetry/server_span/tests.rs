//! Spans and measurements of requests that the application receives.

use std::collections::BTreeMap;

use opentelemetry::trace::{SpanBuilder, SpanId, TraceContextExt as _, TraceId};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};

use super::*;

/// The trace of the client in [`client_context`].
const CLIENT_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// In-memory exporters, and the telemetry that uses them.
struct Exporters {
    spans: InMemorySpanExporter,
    metrics: InMemoryMetricExporter,
    meter_provider: SdkMeterProvider,
    telemetry: Telemetry,
}

impl Exporters {
    fn new() -> Self {
        let (spans, metrics) = (InMemorySpanExporter::default(), InMemoryMetricExporter::default());
        let tracer_provider =
            SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
        let reader = PeriodicReader::builder(metrics.clone()).build();
        let meter_provider = SdkMeterProvider::builder().with_reader(reader).build();
        let telemetry = Telemetry::new()
            .traces(&tracer_provider, TraceContextPropagator::new())
            .metrics(&meter_provider);
        Self { spans, metrics, meter_provider, telemetry }
    }

    /// Serves one request; returns its span with its attributes.
    fn serve(
        &self,
        request: ServedRequest<'_>,
        outcome: Option<ServedOutcome>,
    ) -> (SpanData, BTreeMap<String, String>) {
        self.spans.reset();
        let span = self.telemetry.start_server_span(request, Some(&client_context()));
        match outcome {
            Some(outcome) => span.end(outcome),
            None => drop(span),
        }
        let mut spans = self.spans.get_finished_spans().unwrap();
        assert_eq!(spans.len(), 1, "{spans:#?}");
        let span = spans.remove(0);
        let attributes = texts(&span.attributes);
        (span, attributes)
    }

    /// Returns the attributes of all measurements.
    fn measurements(&self) -> Vec<BTreeMap<String, String>> {
        self.meter_provider.force_flush().unwrap();
        let exported = self.metrics.get_finished_metrics().unwrap();
        let scopes = exported.last().unwrap().scope_metrics();
        let metric = scopes.flat_map(|scope| scope.metrics()).next().unwrap();
        assert_eq!(metric.name(), "mcp.server.operation.duration");
        let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
            panic!("{metric:?}");
        };
        let points = histogram.data_points();
        points.map(|point| texts(&point.attributes().cloned().collect::<Vec<_>>())).collect()
    }
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let all = attributes.iter();
    all.map(|attribute| (attribute.key.to_string(), attribute.value.to_string())).collect()
}

fn client_context() -> TraceContext {
    let field = |field: &str| {
        (field == "traceparent").then(|| format!("00-{CLIENT_TRACE}-b7ad6b7169203331-01"))
    };
    TraceContext::read(field).unwrap()
}

fn tool_call(item: &str) -> ServedRequest<'_> {
    let revision = Revision::LATEST_LEGACY;
    ServedRequest { method: "tools/call", item, id: None, revision, is_http: false }
}

#[test]
fn a_served_request_is_a_server_span_in_the_trace_of_its_client() {
    let exporters = Exporters::new();
    let id = RequestId::String("r1".into());
    let request = ServedRequest { id: Some(&id), is_http: true, ..tool_call("echo") };
    let (span, attributes) = exporters.serve(request, Some(ServedOutcome::Ok));
    assert_eq!((&*span.name, &span.span_kind), ("tools/call echo", &SpanKind::Server));
    assert_eq!(span.span_context.trace_id(), TraceId::from_hex(CLIENT_TRACE).unwrap());
    assert_eq!(span.status, Status::Unset);
    assert_eq!(span.instrumentation_scope.name(), "innkeeper");
    let expected = [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "echo"),
        ("jsonrpc.request.id", "r1"),
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", Revision::LATEST_LEGACY.as_str()),
        ("network.protocol.name", "http"),
    ];
    assert_eq!(attributes, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let other = ServedRequest { id: Some(&RequestId::Integer(7)), ..tool_call("echo") };
    let (_, attributes) = exporters.serve(other, Some(ServedOutcome::Ok));
    assert_eq!(attributes["jsonrpc.request.id"], "7");
    assert!(!attributes.contains_key("network.protocol.name"));
}

#[test]
fn a_request_that_fails_or_is_cancelled_has_the_reason_and_an_error_status() {
    let exporters = Exporters::new();
    let error = ServedOutcome::Error { code: -32602, is_known_item: true };
    for (outcome, kind, code) in [
        (Some(ServedOutcome::ToolError), "tool_error", None),
        (Some(error), "-32602", Some("-32602")),
        (None, "cancelled", None),
    ] {
        let (span, attributes) = exporters.serve(tool_call("echo"), outcome);
        assert_eq!(span.status, Status::error(""), "{outcome:?}");
        assert_eq!(attributes["error.type"], kind);
        assert_eq!(attributes.get("rpc.response.status_code").map(String::as_str), code);
    }
}

#[test]
fn texts_of_a_client_are_in_a_span_up_to_their_limit_and_longer_ones_are_omitted() {
    let exporters = Exporters::new();
    let serve = |method: &'static str, length: usize| {
        let text = "x".repeat(length);
        let id = RequestId::String(text.as_str().into());
        let request = ServedRequest { method, id: Some(&id), ..tool_call(&text) };
        exporters.serve(request, Some(ServedOutcome::Ok)).1
    };
    let attributes = serve("tools/call", MAX_TEXT_BYTES);
    assert_eq!(attributes["gen_ai.tool.name"].len(), MAX_TEXT_BYTES);
    assert_eq!(attributes["jsonrpc.request.id"].len(), MAX_TEXT_BYTES);
    let attributes = serve("tools/call", MAX_TEXT_BYTES + 1);
    assert!(!attributes.contains_key("gen_ai.tool.name"), "{attributes:?}");
    assert!(!attributes.contains_key("jsonrpc.request.id"), "{attributes:?}");
    assert_eq!(serve("resources/read", MAX_URI_BYTES)["mcp.resource.uri"].len(), MAX_URI_BYTES);
    assert!(!serve("resources/read", MAX_URI_BYTES + 1).contains_key("mcp.resource.uri"));
}

#[test]
fn a_measurement_has_no_value_that_any_client_can_choose() {
    let error = |code, is_known_item| Some(ServedOutcome::Error { code, is_known_item });
    for (outcome, tool, kind, code) in [
        (Some(ServedOutcome::Ok), Some("echo"), None, None),
        (Some(ServedOutcome::ToolError), Some("echo"), Some("tool_error"), None),
        (error(-32602, true), Some("echo"), Some("-32602"), Some("-32602")),
        (error(-32602, false), None, Some("-32602"), Some("-32602")),
        (error(4711, true), Some("echo"), Some("_OTHER"), None),
        (None, None, Some("cancelled"), None),
    ] {
        let exporters = Exporters::new();
        exporters.serve(tool_call("echo"), outcome);
        let measurements = exporters.measurements();
        let [measurement] = &measurements[..] else { panic!("{measurements:?}") };
        let value = |key: &str| measurement.get(key).map(String::as_str);
        assert_eq!(value("gen_ai.tool.name"), tool, "{outcome:?}");
        assert_eq!(value("error.type"), kind, "{outcome:?}");
        assert_eq!(value("rpc.response.status_code"), code, "{outcome:?}");
        assert_eq!(value("mcp.method.name"), Some("tools/call"));
    }
}

#[test]
fn requests_in_the_context_of_a_span_are_its_children_and_without_providers_nothing_is_recorded() {
    let exporters = Exporters::new();
    assert!(exporters.telemetry.has_traces() && !Telemetry::new().has_traces());
    let served = exporters.telemetry.start_server_span(tool_call("echo"), Some(&client_context()));
    let served_id = served.context().span().span_context().span_id();
    assert_ne!(served_id, SpanId::INVALID);
    {
        let _current = served.context().clone().attach();
        let own = exporters.telemetry.start_span(SpanBuilder::from_name("run")).unwrap();
        own.span().end();
        assert!(Telemetry::new().start_span(SpanBuilder::from_name("run")).is_none());
        Telemetry::new().start_server_span(tool_call("echo"), None).end(ServedOutcome::ToolError);
    }
    let spans = exporters.spans.get_finished_spans().unwrap();
    let [own] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((&*own.name, own.parent_span_id), ("run", served_id));
    served.end(ServedOutcome::Ok);
    assert_eq!(exporters.spans.get_finished_spans().unwrap()[1].status, Status::Unset);
}

//! The span, the duration and the trace context of one request.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::method;
use opentelemetry::trace::{SpanBuilder, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};

use super::{ConnectionTelemetry, MetricInstruments, SpanTracer, TraceContext};
use crate::error::CallError;
use crate::event::CallOutcome;

/// The span of a running request. Contains no arguments, results or messages of servers.
#[derive(Debug)]
pub(crate) struct RequestSpan {
    /// The context that contains the span.
    span: Option<Context>,
    trace_context: Option<Arc<TraceContext>>,
    metrics: Option<Arc<MetricInstruments>>,
    attributes: Vec<KeyValue>,
}

impl RequestSpan {
    pub(super) fn start(
        connection: &ConnectionTelemetry,
        method_name: Cow<'static, str>,
        item: &str,
    ) -> Self {
        let mut attributes = connection.attributes.to_vec();
        let method = method_name.clone();
        attributes.push(KeyValue::new("mcp.method.name", method_name));
        // The span name and the metric attributes contain no URI: the number of URIs is unlimited.
        let (mut name, mut uri) = (method.to_string(), None);
        match &*method {
            method::TOOLS_CALL => {
                attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
                attributes.push(KeyValue::new("gen_ai.tool.name", item.to_owned()));
                name = format!("{method} {item}");
            }
            method::PROMPTS_GET => {
                attributes.push(KeyValue::new("gen_ai.prompt.name", item.to_owned()));
                name = format!("{method} {item}");
            }
            method::RESOURCES_READ
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE => {
                uri = Some(KeyValue::new("mcp.resource.uri", item.to_owned()));
            }
            _ => {}
        }
        let span_attributes = || attributes.iter().cloned().chain(uri);
        let traces = connection.telemetry.traces.as_deref();
        let span = traces.map(|traces| traces.start_span(name, span_attributes()));
        let trace_context = traces.zip(span.as_ref()).and_then(|(traces, span)| {
            let mut context = TraceContext::default();
            traces.propagator.inject_context(span, &mut context);
            (!context.is_empty()).then(|| Arc::new(context))
        });
        Self { span, trace_context, metrics: connection.telemetry.metrics.clone(), attributes }
    }

    /// Returns the trace context that every attempt sends to the server.
    pub(crate) fn trace_context(&self) -> Option<Arc<TraceContext>> {
        self.trace_context.clone()
    }

    /// Ends the span. `id` is the id of the last attempt, or 0 without an attempt.
    pub(crate) fn end(
        self,
        id: u64,
        latency: Duration,
        outcome: CallOutcome,
        error: Option<&CallError>,
    ) {
        let mut attributes = self.attributes;
        let shared_count = attributes.len();
        match (outcome, error) {
            (CallOutcome::Ok, _) => {}
            (_, Some(CallError::Server { error, .. })) => {
                let code: Arc<str> = error.code.to_string().into();
                attributes.push(KeyValue::new("error.type", code.clone()));
                attributes.push(KeyValue::new("rpc.response.status_code", code));
            }
            (outcome, _) => attributes.push(KeyValue::new("error.type", outcome.as_str())),
        }
        if let Some(instruments) = &self.metrics {
            instruments
                .call_duration
                .record(latency.as_secs_f64(), &metric_attributes(&attributes, error));
        }
        let Some(context) = self.span else { return };
        let span = context.span();
        if id != 0 {
            span.set_attribute(KeyValue::new("jsonrpc.request.id", id.to_string()));
        }
        if attributes.len() > shared_count {
            // The server's message may repeat arguments.
            span.set_status(Status::error(""));
        }
        span.set_attributes(attributes.drain(shared_count..));
        span.end();
    }
}

/// The error codes that JSON-RPC and MCP define or reserve. Other codes have unlimited values.
const RESERVED_ERROR_CODES: RangeInclusive<i64> = -32768..=-32000;

/// Returns the metric attributes without values of a server that would create a new time series.
fn metric_attributes<'a>(
    attributes: &'a [KeyValue],
    error: Option<&CallError>,
) -> Cow<'a, [KeyValue]> {
    let strange = matches!(error, Some(CallError::Server { error, .. }) if !RESERVED_ERROR_CODES.contains(&error.code));
    if !strange {
        return Cow::Borrowed(attributes);
    }
    let retained =
        attributes.iter().filter(|attribute| attribute.key.as_str() != "rpc.response.status_code");
    let renamed = retained.cloned().map(|mut attribute| {
        if attribute.key.as_str() == "error.type" {
            attribute.value = "_OTHER".into();
        }
        attribute
    });
    renamed.collect::<Vec<_>>().into()
}

impl SpanTracer {
    fn start_span(&self, name: String, attributes: impl IntoIterator<Item = KeyValue>) -> Context {
        let parent = Context::current();
        let builder =
            SpanBuilder::from_name(name).with_kind(SpanKind::Client).with_attributes(attributes);
        let span = self.tracer.build_with_context(builder, &parent);
        parent.with_span(span)
    }
}

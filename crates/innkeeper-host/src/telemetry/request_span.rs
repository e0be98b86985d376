//! The span, the duration and the trace context of one request.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::{SpanKind, Status, TraceContextExt};
use opentelemetry::{Context, KeyValue};

use super::attributes::{Operation, code_attributes, metric_attributes};
use super::{ConnectionTelemetry, MetricInstruments, TraceContext};
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
        let Operation { name, method, item, uri } = Operation::new(method_name, item);
        attributes.push(method);
        attributes.extend(item);
        let span_attributes = || attributes.iter().cloned().chain(uri);
        let traces = connection.telemetry.traces.as_deref();
        let span = traces.map(|traces| {
            traces.start_span(SpanKind::Client, name, span_attributes(), &Context::current())
        });
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
                attributes.extend(code_attributes(error.code));
            }
            (outcome, _) => attributes.push(KeyValue::new("error.type", outcome.as_str())),
        }
        if let Some(instruments) = &self.metrics {
            let code = match error {
                Some(CallError::Server { error, .. }) => Some(error.code),
                _ => None,
            };
            instruments
                .call_duration
                .record(latency.as_secs_f64(), &metric_attributes(&attributes, code));
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

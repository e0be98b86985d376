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
        let traces = connection.telemetry.traces.as_deref();
        let span = traces.map(|traces| {
            let attributes = attributes.iter().cloned().chain(uri);
            traces.start_span(SpanKind::Client, name, attributes, &Context::current())
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

#[cfg(test)]
mod tests {
    use innkeeper_protocol::{ErrorObject, Revision};
    use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
    use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

    use super::super::{NetworkAttributes, Telemetry};
    use super::*;
    use crate::error::CallErrorKind;

    /// Returns the error attributes of the measurement of a call that fails with this code.
    fn measured_error(code: i64) -> Vec<(String, String)> {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        let provider = SdkMeterProvider::builder().with_reader(reader).build();
        let telemetry = Telemetry::new().metrics(&provider);
        let revision = Revision::LATEST_LEGACY;
        let connection =
            telemetry.for_connection(&"fx".into(), revision, NetworkAttributes::PIPE).unwrap();
        let error = ErrorObject { code, message: "failed".to_owned(), data: None };
        let error = CallError::Server { server: "fx".into(), item: "t".into(), error };
        let outcome = CallOutcome::Failed(CallErrorKind::Server);
        let span = connection.start_request("tools/call".into(), "t");
        span.end(1, Duration::from_secs(1), outcome, Some(&error));
        provider.force_flush().unwrap();
        let exported = exporter.get_finished_metrics().unwrap();
        let metric = exported[0].scope_metrics().flat_map(|scope| scope.metrics()).next().unwrap();
        let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
            panic!("{metric:?}")
        };
        let point = histogram.data_points().next().unwrap();
        let all = point.attributes().map(|it| (it.key.to_string(), it.value.to_string()));
        let mut errors: Vec<_> =
            all.filter(|(key, _)| key == "error.type" || key.starts_with("rpc.")).collect();
        errors.sort();
        errors
    }

    /// Attack: data | a server responds with any error codes | codes that no standard reserves are
    /// one value in a measurement | No unbounded memory
    #[test]
    fn a_measurement_has_the_reserved_error_codes_of_a_server_and_no_others() {
        let text = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let reserved = [("error.type", "-32050"), ("rpc.response.status_code", "-32050")];
        assert_eq!(measured_error(-32050), reserved.map(text));
        assert_eq!(measured_error(4711), [("error.type", "_OTHER")].map(text));
    }
}

//! OpenTelemetry spans and metrics of a host, through the API crate only.

mod attributes;
mod request_span;
mod server_span;
mod session_timer;
mod trace_context;

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use innkeeper_protocol::Revision;
use opentelemetry::global::BoxedTracer;
use opentelemetry::metrics::{Histogram, Meter, MeterProvider};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{
    Span, SpanBuilder, SpanKind, TraceContextExt as _, Tracer, TracerProvider,
};
use opentelemetry::{Context, InstrumentationScope, KeyValue};

use crate::metrics::DURATION_BUCKETS_SECS;

pub(crate) use request_span::RequestSpan;
pub use server_span::{ServedOutcome, ServedRequest, ServerSpan};
pub(crate) use session_timer::SessionTimer;
pub use trace_context::TraceContext;

/// The OpenTelemetry providers of a host. Names follow the semantic conventions for MCP.
///
/// The application provides the exporters. Of the OpenTelemetry globals, the host reads only the
/// caller's current context; the host sets none. Default: no spans and no metrics.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    traces: Option<Arc<SpanTracer>>,
    metrics: Option<Arc<MetricInstruments>>,
}

/// Creates the spans of requests and the trace context sent with them.
#[derive(Debug)]
struct SpanTracer {
    tracer: BoxedTracer,
    propagator: Box<dyn TextMapPropagator + Send + Sync>,
}

impl SpanTracer {
    /// Starts a span and returns the parent context with the span.
    fn start_span(
        &self,
        kind: SpanKind,
        name: String,
        attributes: impl IntoIterator<Item = KeyValue>,
        parent: &Context,
    ) -> Context {
        let builder = SpanBuilder::from_name(name).with_kind(kind).with_attributes(attributes);
        let span = self.tracer.build_with_context(builder, parent);
        parent.with_span(span)
    }
}

/// Histograms of durations in seconds.
#[derive(Debug)]
struct MetricInstruments {
    call_duration: Histogram<f64>,
    session_duration: Histogram<f64>,
    served_duration: Histogram<f64>,
}

impl Telemetry {
    /// Creates a value without spans and metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the tracer provider and the propagator.
    ///
    /// Each request of the application gets one span. The parent is the context that is current
    /// when the call is first polled. The request's `_meta` contains the fields of `propagator`:
    /// `traceparent`, `tracestate` and `baggage`, each up to 8 KiB, and no others. Every called
    /// server receives the baggage; use a propagator for the trace context alone to avoid that.
    #[must_use]
    pub fn traces<P>(
        mut self,
        provider: &P,
        propagator: impl TextMapPropagator + Send + Sync + 'static,
    ) -> Self
    where
        P: TracerProvider<
            Tracer: Tracer<Span: Span + Send + Sync + 'static> + Send + Sync + 'static,
        >,
    {
        let tracer =
            BoxedTracer::new(Box::new(provider.tracer_with_scope(instrumentation_scope())));
        self.traces = Some(Arc::new(SpanTracer { tracer, propagator: Box::new(propagator) }));
        self
    }

    /// Sets the meter provider. The host records two histograms in seconds:
    /// `mcp.client.operation.duration` for the requests that also have spans, and
    /// `mcp.client.session.duration` for the time that a server is ready. A [`ServerSpan`] records
    /// `mcp.server.operation.duration`.
    #[must_use]
    pub fn metrics(mut self, provider: &dyn MeterProvider) -> Self {
        let meter = provider.meter_with_scope(instrumentation_scope());
        let call_duration = duration_histogram(
            &meter,
            "mcp.client.operation.duration",
            "Time from the send of a request to its outcome.",
        );
        let session_duration = duration_histogram(
            &meter,
            "mcp.client.session.duration",
            "Time from the ready state of a server to its stop or failure.",
        );
        let served_duration = duration_histogram(
            &meter,
            "mcp.server.operation.duration",
            "Time from the receipt of a request of a client to its outcome.",
        );
        let instruments = MetricInstruments { call_duration, session_duration, served_duration };
        self.metrics = Some(Arc::new(instruments));
        self
    }

    /// Starts a span of the application's own, such as a run of a model: a child of the current
    /// context. Returns the context with the span, or `None` without a tracer provider. Requests that
    /// are first polled in this context have the span as their parent.
    #[must_use]
    pub fn start_span(&self, span: SpanBuilder) -> Option<Context> {
        let tracer = &self.traces.as_ref()?.tracer;
        Some(Context::current_with_span(tracer.build(span)))
    }

    /// Starts the span of a request that the application receives from a client. The parent is
    /// `parent`, as the propagator reads it, otherwise the current context.
    #[must_use]
    pub fn start_server_span(
        &self,
        request: ServedRequest<'_>,
        parent: Option<&TraceContext>,
    ) -> ServerSpan {
        ServerSpan::start(self, request, parent)
    }

    /// Returns whether [`Self::traces`] is set.
    pub fn has_traces(&self) -> bool {
        self.traces.is_some()
    }

    /// Returns the telemetry of one connection, or `None` without providers.
    pub(crate) fn for_connection(
        &self,
        server: &Arc<str>,
        revision: Revision,
        network: NetworkAttributes,
    ) -> Option<ConnectionTelemetry> {
        if self.traces.is_none() && self.metrics.is_none() {
            return None;
        }
        let mut attributes = vec![
            KeyValue::new("innkeeper.server", server.clone()),
            KeyValue::new("mcp.protocol.version", revision.as_str()),
            KeyValue::new("network.transport", network.transport),
        ];
        attributes
            .extend(network.protocol.map(|name| KeyValue::new("network.protocol.name", name)));
        Some(ConnectionTelemetry { telemetry: self.clone(), attributes: attributes.into() })
    }
}

fn instrumentation_scope() -> InstrumentationScope {
    InstrumentationScope::builder("innkeeper").with_version(env!("CARGO_PKG_VERSION")).build()
}

fn duration_histogram(
    meter: &Meter,
    name: &'static str,
    description: &'static str,
) -> Histogram<f64> {
    let builder = meter.f64_histogram(name).with_unit("s").with_description(description);
    builder.with_boundaries(DURATION_BUCKETS_SECS.to_vec()).build()
}

/// The network attributes of a server, with the values of the conventions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NetworkAttributes {
    pub(crate) transport: &'static str,
    pub(crate) protocol: Option<&'static str>,
}

impl NetworkAttributes {
    /// The attributes of a child process.
    pub(crate) const PIPE: Self = Self { transport: "pipe", protocol: None };
}

/// The telemetry of the requests and the session of one connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionTelemetry {
    telemetry: Telemetry,
    /// The attributes that all spans and measurements of the connection share.
    attributes: Arc<[KeyValue]>,
}

impl ConnectionTelemetry {
    pub(crate) fn start_request(&self, method: Cow<'static, str>, item: &str) -> RequestSpan {
        RequestSpan::start(self, method, item)
    }

    /// Starts the timer of a session. The timer records the duration when it is dropped.
    pub(crate) fn start_session(&self) -> SessionTimer {
        SessionTimer::start(self)
    }
}

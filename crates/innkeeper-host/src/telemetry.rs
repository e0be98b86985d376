//! Where an application has a host's spans and metrics go: OpenTelemetry, by its interface alone.

mod call;
mod carried;
mod session;

use std::fmt::Debug;
use std::sync::Arc;

use innkeeper_protocol::Revision;
use opentelemetry::global::BoxedTracer;
use opentelemetry::metrics::{Histogram, Meter, MeterProvider};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Span, Tracer, TracerProvider};
use opentelemetry::{InstrumentationScope, KeyValue};

use crate::measure::BUCKETS;

pub(crate) use call::Call;
pub(crate) use carried::Carried;
pub(crate) use session::SessionTime;

/// Spans and metrics of a host, named as the semantic conventions of OpenTelemetry for MCP have it.
///
/// The application brings what exports them; the host reads no global of OpenTelemetry but the
/// current context of whoever calls, and installs none. Default: neither spans nor metrics.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    traces: Option<Arc<Traces>>,
    meters: Option<Arc<Meters>>,
}

#[derive(Debug)]
struct Traces {
    tracer: BoxedTracer,
    propagator: Box<dyn TextMapPropagator + Send + Sync>,
}

/// Durations in seconds.
#[derive(Debug)]
struct Meters {
    calls: Histogram<f64>,
    sessions: Histogram<f64>,
}

impl Telemetry {
    /// Neither spans nor metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// One span for every request made for the application, under the context that is current when
    /// the call is first polled. The server is told of it in `_meta`, in the form of `propagator`:
    /// `traceparent`, `tracestate` and `baggage` of up to 8 KiB each, and nothing else. Baggage goes
    /// to every server that is asked, so a propagator of the trace alone tells strangers less.
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
        let tracer = BoxedTracer::new(Box::new(provider.tracer_with_scope(scope())));
        self.traces = Some(Arc::new(Traces { tracer, propagator: Box::new(propagator) }));
        self
    }

    /// The histograms `mcp.client.operation.duration` of what the spans are of, and
    /// `mcp.client.session.duration` of the time that servers were ready, both in seconds.
    #[must_use]
    pub fn metrics(mut self, provider: &dyn MeterProvider) -> Self {
        let meter = provider.meter_with_scope(scope());
        let calls = histogram(
            &meter,
            "mcp.client.operation.duration",
            "From the sending of a request until its outcome.",
        );
        let sessions = histogram(
            &meter,
            "mcp.client.session.duration",
            "From the moment a server is ready until it is stopped or lost.",
        );
        self.meters = Some(Arc::new(Meters { calls, sessions }));
        self
    }

    /// What tells of one connection; `None` where nobody wants to know.
    pub(crate) fn of(
        &self,
        server: &Arc<str>,
        revision: Revision,
        network: Network,
    ) -> Option<Reporter> {
        if self.traces.is_none() && self.meters.is_none() {
            return None;
        }
        let mut about = vec![
            KeyValue::new("innkeeper.server", server.clone()),
            KeyValue::new("mcp.protocol.version", revision.as_str()),
            KeyValue::new("network.transport", network.transport),
        ];
        about.extend(network.protocol.map(|name| KeyValue::new("network.protocol.name", name)));
        Some(Reporter { telemetry: self.clone(), about: about.into() })
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("innkeeper").with_version(env!("CARGO_PKG_VERSION")).build()
}

fn histogram(meter: &Meter, name: &'static str, description: &'static str) -> Histogram<f64> {
    let builder = meter.f64_histogram(name).with_unit("s").with_description(description);
    builder.with_boundaries(BUCKETS.to_vec()).build()
}

/// How a server is reached, in the words of the conventions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) transport: &'static str,
    pub(crate) protocol: Option<&'static str>,
}

impl Network {
    /// A child process.
    pub(crate) const PIPE: Self = Self { transport: "pipe", protocol: None };
}

/// Tells of the calls and the time of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    telemetry: Telemetry,
    /// What is the same for all it tells.
    about: Arc<[KeyValue]>,
}

impl Reporter {
    /// A request begins.
    pub(crate) fn call(&self, method: &'static str, item: &str) -> Call {
        Call::begin(self, method, item)
    }

    /// The server is ready; the time is told when the result is dropped.
    pub(crate) fn session(&self) -> SessionTime {
        SessionTime::begin(self)
    }
}

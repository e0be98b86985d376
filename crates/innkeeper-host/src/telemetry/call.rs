//! One request as OpenTelemetry sees it: its span, its duration, and what its server is told of it.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::method;
use opentelemetry::trace::{SpanBuilder, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};

use super::{Carried, Meters, Reporter, Traces};
use crate::error::CallError;
use crate::event::CallOutcome;

/// A request that has begun. Arguments, results and messages of servers are never part of it.
#[derive(Debug)]
pub(crate) struct Call {
    /// The context of its span.
    span: Option<Context>,
    carried: Option<Arc<Carried>>,
    meters: Option<Arc<Meters>>,
    about: Vec<KeyValue>,
}

impl Call {
    pub(super) fn begin(reporter: &Reporter, method: &'static str, item: &str) -> Self {
        let mut about = reporter.about.to_vec();
        about.push(KeyValue::new("mcp.method.name", method));
        // A URI names one of many; what is counted by it would never end.
        let (mut name, mut uri) = (method.to_owned(), None);
        match method {
            method::TOOLS_CALL => {
                about.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
                about.push(KeyValue::new("gen_ai.tool.name", item.to_owned()));
                name = format!("{method} {item}");
            }
            method::PROMPTS_GET => {
                about.push(KeyValue::new("gen_ai.prompt.name", item.to_owned()));
                name = format!("{method} {item}");
            }
            method::RESOURCES_READ
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE => {
                uri = Some(KeyValue::new("mcp.resource.uri", item.to_owned()));
            }
            _ => {}
        }
        let attributes = || about.iter().cloned().chain(uri);
        let traces = reporter.telemetry.traces.as_deref();
        let span = traces.map(|traces| traces.begin(name, attributes()));
        let carried = traces.zip(span.as_ref()).and_then(|(traces, span)| {
            let mut carried = Carried::default();
            traces.propagator.inject_context(span, &mut carried);
            (!carried.is_empty()).then(|| Arc::new(carried))
        });
        Self { span, carried, meters: reporter.telemetry.meters.clone(), about }
    }

    /// What every attempt of it tells the server.
    pub(crate) fn carried(&self) -> Option<Arc<Carried>> {
        self.carried.clone()
    }

    /// It has ended. `id` is that of the last attempt, 0 if there was none.
    pub(crate) fn end(
        self,
        id: u64,
        latency: Duration,
        outcome: CallOutcome,
        error: Option<&CallError>,
    ) {
        let mut about = self.about;
        let known = about.len();
        match (outcome, error) {
            (CallOutcome::Ok, _) => {}
            (_, Some(CallError::Server { error, .. })) => {
                let code: Arc<str> = error.code.to_string().into();
                about.push(KeyValue::new("error.type", code.clone()));
                about.push(KeyValue::new("rpc.response.status_code", code));
            }
            (outcome, _) => about.push(KeyValue::new("error.type", outcome.as_str())),
        }
        if let Some(meters) = &self.meters {
            meters.calls.record(latency.as_secs_f64(), &counted(&about, error));
        }
        let Some(context) = self.span else { return };
        let span = context.span();
        if id != 0 {
            span.set_attribute(KeyValue::new("jsonrpc.request.id", id.to_string()));
        }
        if about.len() > known {
            // What the server says of it may repeat arguments.
            span.set_status(Status::error(""));
        }
        span.set_attributes(about.drain(known..));
        span.end();
    }
}

/// The codes that JSON-RPC and MCP define or reserve; a server may have any other one every time.
const CODES: RangeInclusive<i64> = -32768..=-32000;

/// What a call is counted under: without what a server could make a new series of each time.
fn counted<'a>(about: &'a [KeyValue], error: Option<&CallError>) -> Cow<'a, [KeyValue]> {
    let strange =
        matches!(error, Some(CallError::Server { error, .. }) if !CODES.contains(&error.code));
    if !strange {
        return Cow::Borrowed(about);
    }
    let kept = about.iter().filter(|one| one.key.as_str() != "rpc.response.status_code");
    let named = kept.cloned().map(|mut one| {
        if one.key.as_str() == "error.type" {
            one.value = "_OTHER".into();
        }
        one
    });
    named.collect::<Vec<_>>().into()
}

impl Traces {
    fn begin(&self, name: String, attributes: impl IntoIterator<Item = KeyValue>) -> Context {
        let parent = Context::current();
        let builder =
            SpanBuilder::from_name(name).with_kind(SpanKind::Client).with_attributes(attributes);
        let span = self.tracer.build_with_context(builder, &parent);
        parent.with_span(span)
    }
}

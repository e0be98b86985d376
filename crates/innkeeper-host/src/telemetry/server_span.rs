//! The span and the duration of a request that the application receives from a client.

use std::sync::Arc;

use innkeeper_protocol::{RequestId, Revision};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt};
use opentelemetry::{Context, KeyValue};
use tokio::time::Instant;

use super::attributes::{Operation, code_attributes, metric_attributes};
use super::{MetricInstruments, Telemetry, TraceContext};

/// Maximum length in bytes of a text of the client in a span; longer texts are omitted.
const MAX_TEXT_BYTES: usize = 256;

/// Maximum length in bytes of a URI in a span; longer URIs are omitted.
const MAX_URI_BYTES: usize = 2048;

/// A request of a client, for its span.
#[derive(Clone, Copy, Debug)]
pub struct ServedRequest<'a> {
    /// The method, or `_OTHER` for a method that is any text of the client.
    pub method: &'static str,
    /// The tool, the prompt or the URI; empty for other methods.
    pub item: &'a str,
    /// The id of the request; `None` without JSON-RPC.
    pub id: Option<&'a RequestId>,
    /// The protocol revision of the request.
    pub revision: Revision,
    /// Whether the request came over HTTP.
    pub is_http: bool,
}

/// How a request of a client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedOutcome {
    /// The result is sent.
    Ok,
    /// The result of a tool says that it is an error.
    ToolError,
    /// A JSON-RPC error is sent.
    Error {
        /// The code of the error.
        code: i64,
        /// Whether the item of the request exists. Metrics do not contain other items, which would
        /// be any text of clients.
        is_known_item: bool,
    },
}

/// The span of a request that the application receives, of the kind `SERVER`. Ends as cancelled if it
/// is dropped.
#[derive(Debug)]
pub struct ServerSpan {
    /// The parent with the span; the current context without a tracer provider.
    context: Context,
    /// Whether the span in the context is the own one.
    has_span: bool,
    metrics: Option<Arc<MetricInstruments>>,
    started_at: Instant,
    /// The attributes of spans and metrics, without the item.
    attributes: Vec<KeyValue>,
    item: Vec<KeyValue>,
    /// `None` for a request that is cancelled.
    outcome: Option<ServedOutcome>,
}

impl ServerSpan {
    pub(super) fn start(
        telemetry: &Telemetry,
        request: ServedRequest<'_>,
        parent: Option<&TraceContext>,
    ) -> Self {
        let is_uri = request.method.starts_with("resources/");
        let limit = if is_uri { MAX_URI_BYTES } else { MAX_TEXT_BYTES };
        let item = if request.item.len() <= limit { request.item } else { "" };
        let Operation { name, method, item, uri } = Operation::new(request.method.into(), item);
        let revision = KeyValue::new("mcp.protocol.version", request.revision.as_str());
        let protocol = request.is_http.then(|| KeyValue::new("network.protocol.name", "http"));
        let attributes: Vec<KeyValue> = [method, revision].into_iter().chain(protocol).collect();
        let mut context = Context::current();
        if let Some(traces) = telemetry.traces.as_deref() {
            if let Some(parent) = parent {
                context = traces.propagator.extract_with_context(&context, parent);
            }
            let id = request.id.map(|id| match id {
                RequestId::Integer(number) => number.to_string(),
                RequestId::String(text) => text.to_string(),
            });
            let id = id.filter(|id| id.len() <= MAX_TEXT_BYTES);
            let id = id.map(|id| KeyValue::new("jsonrpc.request.id", id));
            let span_attributes = attributes.iter().chain(&item).cloned().chain(uri).chain(id);
            context = traces.start_span(SpanKind::Server, name, span_attributes, &context);
        }
        let metrics = telemetry.metrics.clone();
        let has_span = telemetry.has_traces();
        let started_at = Instant::now();
        Self { context, has_span, metrics, started_at, attributes, item, outcome: None }
    }

    /// Returns the context with the span. Requests to servers that are first polled in this context
    /// have the span as their parent.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Ends the span.
    pub fn end(mut self, outcome: ServedOutcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for ServerSpan {
    fn drop(&mut self) {
        let mut attributes = std::mem::take(&mut self.attributes);
        let shared_count = attributes.len();
        let mut code = None;
        let mut is_known_item = true;
        match self.outcome {
            Some(ServedOutcome::Ok) => {}
            Some(ServedOutcome::ToolError) => {
                attributes.push(KeyValue::new("error.type", "tool_error"));
            }
            Some(ServedOutcome::Error { code: error_code, is_known_item: is_known }) => {
                attributes.extend(code_attributes(error_code));
                (code, is_known_item) = (Some(error_code), is_known);
            }
            // The client may have cancelled before the search for the item.
            None => {
                attributes.push(KeyValue::new("error.type", "cancelled"));
                is_known_item = false;
            }
        }
        if self.has_span {
            let span = self.context.span();
            if attributes.len() > shared_count {
                // The message of an error may repeat arguments.
                span.set_status(Status::error(""));
            }
            span.set_attributes(attributes.iter().skip(shared_count).cloned());
            span.end();
        }
        if let Some(instruments) = &self.metrics {
            if is_known_item {
                attributes.append(&mut self.item);
            }
            let seconds = self.started_at.elapsed().as_secs_f64();
            instruments.served_duration.record(seconds, &metric_attributes(&attributes, code));
        }
    }
}

#[cfg(test)]
mod tests;

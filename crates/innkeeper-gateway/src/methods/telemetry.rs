//! The OpenTelemetry span of a client's request, and its trace context.

use http::HeaderMap;
use innkeeper_host::{ServedOutcome, ServedRequest, Telemetry, TraceContext};
use innkeeper_protocol::{method, skim};
use opentelemetry::context::FutureExt as _;

use super::Methods;
use crate::error::{ErrorKind, RpcError};
use crate::metrics::{ClientTransport, known_method};
use crate::request::{ClientRequest, Reply};

impl Methods {
    /// Returns the trace context in the headers of an HTTP request; `None` without spans.
    pub(crate) fn header_trace(&self, headers: &HeaderMap) -> Option<TraceContext> {
        if !self.has_traces() {
            return None;
        }
        TraceContext::read(|field| Some(headers.get(field)?.to_str().ok()?.to_owned()))
    }

    /// Returns whether requests have spans.
    pub(super) fn has_traces(&self) -> bool {
        self.telemetry.as_ref().is_some_and(Telemetry::has_traces)
    }

    /// Handles a request in its span. Dropping the future ends the span as cancelled.
    pub(super) async fn dispatch_in_span(
        &self,
        telemetry: &Telemetry,
        request: ClientRequest<'_>,
    ) -> Reply {
        let method = request.method;
        let caller = request.caller;
        let in_meta = if telemetry.has_traces() { meta_trace(&request) } else { None };
        let parent = in_meta.as_ref().or(caller.header_trace.as_ref());
        let item = match method {
            method::TOOLS_CALL | method::PROMPTS_GET => request.string_param("name"),
            method::RESOURCES_READ
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE => request.string_param("uri"),
            _ => Ok(String::new()),
        };
        let served = ServedRequest {
            method: known_method(method).unwrap_or("_OTHER"),
            item: &item.unwrap_or_default(),
            id: (caller.transport != ClientTransport::Rest).then_some(request.id),
            revision: caller.identity.revision,
            is_http: caller.transport != ClientTransport::Connection,
        };
        let span = telemetry.start_server_span(served, parent);
        // Boxed to keep the future without telemetry small.
        let handling = Box::pin(self.dispatch(request));
        let reply = handling.with_context(span.context().clone()).await;
        span.end(outcome(method, &reply));
        reply
    }
}

/// Returns the trace context in the `_meta` of a request.
fn meta_trace(request: &ClientRequest<'_>) -> Option<TraceContext> {
    let meta = request.param("_meta")?;
    TraceContext::read(|field| {
        skim::decode_string(skim::member(meta, field)?).map(std::borrow::Cow::into_owned)
    })
}

fn outcome(method: &str, reply: &Reply) -> ServedOutcome {
    match reply {
        Ok(result)
            if method == method::TOOLS_CALL
                && skim::member(result.get(), "isError") == Some("true") =>
        {
            ServedOutcome::ToolError
        }
        Ok(_) => ServedOutcome::Ok,
        Err(RpcError { kind, code, .. }) => ServedOutcome::Error {
            code: *code,
            is_known_item: !matches!(
                kind,
                ErrorKind::Request | ErrorKind::UnknownItem | ErrorKind::Internal
            ),
        },
    }
}

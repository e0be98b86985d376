//! Records each call once: metrics, span, log line, event, and the streak of timeouts.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Connection, RequestSpec};
use crate::error::display::RedactedCallError;
use crate::error::{CallError, CallErrorKind};
use crate::event::{CallOutcome, CallRecord, HostEvent, REPORTED_TARGET};
use crate::telemetry::{RequestSpan, TraceContext};

/// Returns a latency in milliseconds for the log.
pub(crate) fn millis(latency: Duration) -> f64 {
    // At most three decimals.
    latency.as_micros() as f64 / 1000.0
}

/// Records a call once; if the caller is dropped, the call is recorded as cancelled.
pub(super) struct CallRecorder<'a> {
    connection: &'a Connection,
    spec: &'a RequestSpec<'a>,
    pub(super) id: u64,
    pub(super) sent_at: Instant,
    is_open: bool,
    /// Whether the server has sent a partial response.
    pub(super) has_partial_response: bool,
    /// Whether a timeout of this call counts as unresponsiveness of the server.
    pub(super) counts_as_timeout: bool,
    span: Option<RequestSpan>,
}

impl<'a> CallRecorder<'a> {
    pub(super) fn start(connection: &'a Connection, spec: &'a RequestSpec<'a>) -> Self {
        let telemetry = connection.instruments.telemetry.as_ref();
        Self {
            connection,
            spec,
            id: 0,
            sent_at: Instant::now(),
            is_open: true,
            has_partial_response: false,
            counts_as_timeout: true,
            span: telemetry.map(|reporter| reporter.start_request(spec.method.clone(), spec.item)),
        }
    }

    pub(super) fn trace_context(&self) -> Option<Arc<TraceContext>> {
        self.span.as_ref()?.trace_context()
    }

    pub(super) fn finish(mut self, outcome: CallOutcome) {
        self.write(outcome, None);
    }

    pub(super) fn fail(mut self, error: &CallError) {
        self.write(CallOutcome::Failed(error.kind()), Some(error));
    }

    fn write(&mut self, outcome: CallOutcome, error: Option<&CallError>) {
        self.is_open = false;
        let now = Instant::now();
        let latency = now - self.sent_at;
        self.connection.instruments.metrics.record(outcome, latency, now);
        if let Some(call) = self.span.take() {
            call.end(self.id, latency, outcome, error);
        }
        match outcome {
            CallOutcome::Ok
            | CallOutcome::ToolError
            | CallOutcome::Failed(
                CallErrorKind::Server | CallErrorKind::Protocol | CallErrorKind::Withheld,
            ) => {
                self.connection.instruments.timeout_streak.reset();
            }
            // A call without an id never left the queue and says nothing about the server.
            CallOutcome::Failed(CallErrorKind::Timeout)
                if self.id != 0
                    && self.counts_as_timeout
                    // The server may work on one request at a time.
                    && !self.connection.session.has_earlier_call(self.id) =>
            {
                self.connection.instruments.timeout_streak.record_timeout();
            }
            CallOutcome::Failed(_) | CallOutcome::Cancelled => {}
        }
        let server = &*self.connection.server;
        let latency_ms = millis(latency);
        let RequestSpec { method, item, options, .. } = self.spec;
        let method = &**method;
        let id = self.id;
        let outcome_text = outcome.as_str();
        let principal = options.caller.and_then(|caller| caller.principal.as_deref());
        match error {
            None => tracing::info!(
                server,
                method,
                item,
                id,
                principal,
                latency_ms,
                outcome = outcome_text,
                "request"
            ),
            Some(error) => {
                let redacted = RedactedCallError::from_call_error(error);
                let error: &dyn std::error::Error = match &redacted {
                    Some(redacted) => redacted,
                    None => error,
                };
                tracing::error!(
                    target: REPORTED_TARGET,
                    server,
                    method,
                    item,
                    id,
                    principal,
                    latency_ms,
                    outcome = outcome_text,
                    error,
                    "request"
                );
            }
        }
        if self.connection.host.events.has_subscribers() {
            self.connection.host.events.publish(HostEvent::CallFinished(CallRecord {
                server: self.connection.server.clone(),
                method: self.spec.method.clone(),
                item: (*item).into(),
                id: self.id,
                latency,
                outcome,
            }));
        }
    }
}

impl Drop for CallRecorder<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.write(CallOutcome::Cancelled, None);
        }
    }
}

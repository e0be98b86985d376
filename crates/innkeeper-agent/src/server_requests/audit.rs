//! The audit events of requests of servers: one event per request, at its end.

use std::sync::Arc;

use innkeeper_host::audit::TARGET;
use innkeeper_host::{CallReference, ServerRequest};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::safety::short_hash;
use crate::timing::Timing;

/// The kind of a request in the field `audit`.
#[derive(Clone, Copy, Debug)]
pub(super) enum AuditKind {
    Sampling,
    Elicitation,
}

#[derive(Clone, Debug)]
pub(super) enum RequestOutcome {
    /// The server got the message of the model, or the input of the user.
    Answered,
    /// The user or the settings denied the request, or the user closed the question.
    Denied(&'static str),
    /// The request is invalid, nested or above a budget.
    Refused(&'static str),
    /// The model or the user interface failed.
    Failed(&'static str),
}

/// A request that is being answered. A drop before [`Self::finish`] emits the audit event with the
/// outcome `cancelled`, because the user or the model may have got the request.
pub(super) struct AuditedRequest {
    kind: AuditKind,
    server: Arc<str>,
    /// The tool, prompt or URI of the call.
    item: Option<Arc<str>>,
    parameters_hash: String,
    timing: Timing,
    start: Instant,
    response: Option<AuditedResponse>,
    is_finished: bool,
}

struct AuditedResponse {
    /// The content, for its hash.
    content: String,
    total_tokens: Option<u64>,
}

impl AuditedRequest {
    pub(super) fn start(kind: AuditKind, request: &ServerRequest, timing: Timing) -> Self {
        let item = match &request.call {
            CallReference::Call { item, .. } => Some(item.clone()),
            CallReference::Unknown => None,
        };
        let parameters = request.params.as_ref().map_or("", |params| params.get());
        Self {
            kind,
            server: request.server.clone(),
            item,
            parameters_hash: short_hash(parameters),
            start: timing.now(),
            timing,
            response: None,
            is_finished: false,
        }
    }

    /// Records the content of the response, which the event contains as a hash.
    pub(super) fn record_response(&mut self, content: String, total_tokens: Option<u64>) {
        self.response = Some(AuditedResponse { content, total_tokens });
    }

    /// Emits the event.
    pub(super) fn finish(mut self, outcome: &RequestOutcome) {
        self.is_finished = true;
        match *outcome {
            RequestOutcome::Answered => self.emit("answered", None, false),
            RequestOutcome::Denied(reason) => self.emit("denied", Some(reason), false),
            RequestOutcome::Refused(reason) => self.emit("refused", Some(reason), true),
            RequestOutcome::Failed(reason) => self.emit("failed", Some(reason), false),
        }
    }

    fn emit(&self, outcome: &str, why: Option<&str>, is_warning: bool) {
        let elapsed = self.timing.elapsed(self.start);
        let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let (kind, message) = match self.kind {
            AuditKind::Sampling => ("sampling", "a server's request for a message of the model"),
            AuditKind::Elicitation => ("elicitation", "a server's request for input of the user"),
        };
        let response = self.response.as_ref();
        macro_rules! emit_at {
            ($level:ident) => {
                $level!(
                    target: TARGET,
                    security = true,
                    audit = kind,
                    server = &*self.server,
                    item = self.item.as_deref(),
                    outcome,
                    why,
                    parameters_sha256 = self.parameters_hash,
                    response_sha256 = response.map(|response| short_hash(&response.content)),
                    total_tokens = response.and_then(|response| response.total_tokens),
                    milliseconds,
                    "{message}"
                )
            };
        }
        if is_warning { emit_at!(warn) } else { emit_at!(info) }
    }
}

impl Drop for AuditedRequest {
    fn drop(&mut self) {
        if !self.is_finished {
            self.emit("cancelled", None, false);
        }
    }
}

//! The connection to a ready server that calls use.

pub(crate) mod handshake;
pub(crate) mod list_ttls;
pub(crate) mod listen;
pub(crate) mod listing;
pub(crate) mod log_level;
pub(crate) mod meta;
mod result_rejection;
pub(crate) mod round_trips;
pub(crate) mod subscriptions;
mod task_poll;
pub(crate) mod timeout_streak;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::TasksCapability;
use innkeeper_protocol::{Era, Revision, skim};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio::time::Instant;

use crate::audit::AuditEvent;
use crate::cache::{Cache, FetchedResult};
use crate::callback::{Callback, CallbackRegistry};
use crate::config::RetryPolicy;
use crate::connection::list_ttls::ListTtls;
use crate::connection::meta::ClientMeta;
use crate::connection::round_trips::{ResultType, RoundTripParams, RoundTrips};
use crate::connection::subscriptions::Subscriptions;
use crate::connection::timeout_streak::TimeoutStreak;
use crate::deadline::{MAX_REQUEST_TIMEOUT, RequestDeadlines};
use crate::error::display::RedactedCallError;
use crate::error::{CallError, CallErrorKind};
use crate::event::{CallOutcome, CallRecord, EventPublisher, HostEvent};
use crate::guard::{Finding, ItemKind, SecretFingerprints, Verdict};
use crate::metrics::MetricsRecorder;
use crate::retry::{Attempts, RetryNotice, RetryPlan};
use crate::session::{
    Budgeted, CallCallback, CallContext, DeadlineExtension, OutgoingRequest, Progress,
    RequestError, RequestResult, Session,
};
use crate::telemetry::{ConnectionTelemetry, RequestSpan, TraceContext};

pub(crate) use result_rejection::ResultRejection;

/// The connection to one server that accepts requests.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) server: Arc<str>,
    pub(crate) session: Session,
    pub(crate) revision: Revision,
    /// Task capabilities of the server in its protocol revision.
    pub(crate) tasks: TasksCapability,
    /// Whether the server declares `logging`.
    pub(crate) declares_logging: bool,
    /// `_meta` of every request of the modern era.
    pub(crate) client_meta: ClientMeta,
    pub(crate) permits: Semaphore,
    /// Maximum total duration of one call, regardless of progress.
    pub(crate) max_total_timeout: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) cache: Arc<Cache>,
    pub(crate) callbacks: CallbackRegistry,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) list_ttls: ListTtls,
    pub(crate) metrics: Arc<MetricsRecorder>,
    pub(crate) timeout_streak: TimeoutStreak,
    pub(crate) events: EventPublisher,
    /// Fingerprints that identify the credentials of all servers.
    pub(crate) secret_fingerprints: Arc<SecretFingerprints>,
    /// Emits spans and metrics; `None` disables telemetry without cost.
    pub(crate) telemetry: Option<ConnectionTelemetry>,
}

/// A request to a server, including its retries.
pub(crate) struct RequestSpec<'a, F> {
    pub(crate) method: &'static str,
    /// Name of the tool or prompt, or the URI, for messages and records.
    pub(crate) item: &'a str,
    /// Builds the parameters of one attempt. The id is unique per attempt and is the progress
    /// token; further round trips carry the input the server requested.
    pub(crate) params: F,
    /// Arguments that must be sent as headers.
    pub(crate) headers: &'a [(String, String)],
    pub(crate) timeout: Duration,
    pub(crate) progress: Option<&'a mpsc::Sender<Progress>>,
    /// Maximum number of retries. Default: the configured number.
    pub(crate) retries: Option<u32>,
    /// Whether the request may run twice.
    pub(crate) retry_safe: bool,
    /// Whether the request asks a server of the legacy era to create a task.
    pub(crate) as_task: bool,
    /// The callback of the call for requests of the server.
    pub(crate) callback: Option<&'a Arc<dyn Callback>>,
}

impl Connection {
    /// Sends a request of the application, checks its result, and records it once, however it ends:
    /// response, error, timeout or a cancelled caller.
    pub(crate) async fn request<P: Serialize>(
        &self,
        spec: RequestSpec<'_, impl Fn(u64, RoundTripParams) -> P>,
        check_result: impl FnOnce(&RawValue) -> Result<CallOutcome, ResultRejection>,
    ) -> Result<FetchedResult, CallError> {
        self.request_scanned(spec, check_result, |_| None).await
    }

    /// Like [`Self::request`], but can also withhold other content of the server: `suspect` returns
    /// the findings that cause it. Called before recording, so that no log contains the content.
    pub(crate) async fn request_scanned<P: Serialize>(
        &self,
        spec: RequestSpec<'_, impl Fn(u64, RoundTripParams) -> P>,
        check_result: impl FnOnce(&RawValue) -> Result<CallOutcome, ResultRejection>,
        suspect: impl FnOnce(&RequestError) -> Option<Vec<Finding>>,
    ) -> Result<FetchedResult, CallError> {
        let mut record = CallRecorder::start(self, spec.method, spec.item);
        let mut time = RequestDeadlines::new(record.sent_at, spec.timeout, self.max_total_timeout);
        let mut attempts = self.attempts(&spec, time.idle_deadline);
        let mut round_trips = RoundTrips::default();
        let callback = spec.callback.map(CallCallback::new);
        let (method, item) = (spec.method, spec.item);
        let call = |id| CallContext { id, method, item, callback: callback.as_ref() };
        let response = loop {
            let (response, permit) = match self.acquire_permit(time.idle_deadline).await {
                Some(permit) => {
                    if permit.waited && record.id == 0 {
                        record.sent_at = Instant::now();
                    }
                    record.id = self.session.next_id();
                    let further = RoundTripParams {
                        trace_context: record.trace_context(),
                        ..round_trips.params()
                    };
                    let response =
                        self.send(&spec, record.id, Some(call(record.id)), further, time).await;
                    (Some(response), Some(permit))
                }
                None => {
                    record.counts_as_timeout = false;
                    (None, None)
                }
            };
            // During a backoff the server has no part of this call, so the permit is released.
            let permit = permit.filter(|_| matches!(response, Some(Ok(_))));
            let Some(response) = self.final_result(&mut attempts, &spec, response).await else {
                continue;
            };
            let result = match response {
                Ok(result) => result.into_inner(),
                Err(failure) => break Err(failure),
            };
            let result_kind = self.result_type(&spec, &result);
            if !matches!(result_kind, Ok(ResultType::Complete)) {
                record.has_partial_response = true;
                self.timeout_streak.reset();
            }
            let collected = match result_kind {
                Ok(ResultType::Complete) => break Ok(result),
                Ok(ResultType::Task) => {
                    let (call, deadline) = (call(record.id), time.deadline);
                    break task_poll::await_result(self, &spec, call, &result, permit, deadline)
                        .await;
                }
                Ok(ResultType::InputRequired) => {
                    drop(permit);
                    round_trips.gather_input(self, call(record.id), &result, time.deadline).await
                }
                Err(failure) => Err(failure),
            };
            if let Err(failure) = collected {
                break Err(failure);
            }
            // The time was spent by the user or the model, not by the server.
            time.idle_deadline =
                (Instant::now() + spec.timeout.min(MAX_REQUEST_TIMEOUT)).min(time.deadline);
            attempts = self.attempts(&spec, time.idle_deadline);
        };
        match ResultRejection::check(response, check_result, suspect) {
            Ok((result, outcome)) => {
                record.finish(outcome);
                let own_input = callback.is_some_and(|callback| callback.is_used());
                let cacheable = round_trips.is_empty() && !own_input;
                Ok(FetchedResult { result, cacheable, clean: false })
            }
            Err(rejection) => {
                let error = self.rejection_error(rejection, &spec, time, &mut record);
                let error = error.with_attempts(attempts.count());
                record.fail(&error);
                Err(error)
            }
        }
    }

    /// The error of a call whose result was rejected or did not arrive.
    fn rejection_error<F>(
        &self,
        rejection: ResultRejection,
        spec: &RequestSpec<'_, F>,
        time: RequestDeadlines,
        record: &mut CallRecorder<'_>,
    ) -> CallError {
        match rejection {
            ResultRejection::Withheld(findings) => CallError::Withheld {
                server: self.server.clone(),
                item: spec.item.into(),
                findings,
            },
            ResultRejection::Error(failure) => {
                // A call that times out although the server was active has used its total timeout.
                let expired = Instant::now() >= time.deadline;
                record.counts_as_timeout &= !expired
                    || !(record.has_partial_response || self.session.has_open_server_requests());
                let after = if expired { time.deadline - time.started } else { spec.timeout };
                self.call_error(failure, spec.item, after)
            }
        }
    }

    /// Sends a request of the host itself (lists); logged, but not counted in the metrics.
    pub(crate) async fn request_internal<P: Serialize>(
        &self,
        method: &'static str,
        params: &P,
        timeout: Duration,
    ) -> Result<Box<RawValue>, CallError> {
        let started = Instant::now();
        let (mut id, time) = (None, RequestDeadlines::new(started, timeout, timeout));
        let (progress, retries, headers) = (None, None, &[][..]);
        let (item, params) = (method, |_, _| params);
        let (is_retry_safe, as_task) = (true, false);
        let spec = RequestSpec {
            method,
            item,
            params,
            headers,
            timeout,
            progress,
            retries,
            retry_safe: is_retry_safe,
            as_task,
            callback: None,
        };
        let mut attempts = self.attempts(&spec, time.idle_deadline);
        let response = loop {
            let next = *id.insert(self.session.next_id());
            let response =
                Some(self.send(&spec, next, None, RoundTripParams::default(), time).await);
            if let Some(response) = self.final_result(&mut attempts, &spec, response).await {
                break response;
            }
        };
        let name =
            |failure| self.call_error(failure, method, timeout).with_attempts(attempts.count());
        let response = response.map(Budgeted::into_inner).map_err(name);
        let latency_ms = millis(started.elapsed());
        let server = &*self.server;
        match &response {
            Ok(_) => tracing::info!(server, method, id, latency_ms, outcome = "ok", "request"),
            Err(error) => {
                let outcome = error.kind().as_str();
                let error: &dyn std::error::Error = error;
                tracing::warn!(server, method, id, latency_ms, outcome, error, "request");
            }
        }
        response
    }

    /// Returns the type of a result; in the legacy era every unsolicited result is complete.
    fn result_type<F>(
        &self,
        spec: &RequestSpec<'_, F>,
        result: &RawValue,
    ) -> Result<ResultType, RequestError> {
        match self.revision.era() {
            Era::Modern => ResultType::from_result(result, spec.method),
            Era::Legacy if spec.as_task && skim::member(result.get(), "task").is_some() => {
                Ok(ResultType::Task)
            }
            Era::Legacy => Ok(ResultType::Complete),
        }
    }

    pub(super) async fn acquire_permit(&self, deadline: Instant) -> Option<RequestPermit<'_>> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Some(RequestPermit { _permit: permit, waited: false });
        }
        let permit = tokio::time::timeout_at(deadline, self.permits.acquire()).await.ok()?.ok()?;
        Some(RequestPermit { _permit: permit, waited: true })
    }

    fn attempts<F>(&self, spec: &RequestSpec<'_, F>, deadline: Instant) -> Attempts {
        let max_retries = spec.retries.unwrap_or(self.retry.max);
        Attempts::new(RetryPlan {
            policy: self.retry,
            max_retries,
            retry_safe: spec.retry_safe,
            deadline,
        })
    }

    /// Returns the final result; `None` after the backoff before the next attempt.
    async fn final_result<F>(
        &self,
        attempts: &mut Attempts,
        spec: &RequestSpec<'_, F>,
        outcome: Option<RequestResult>,
    ) -> Option<RequestResult> {
        let report = |notice: RetryNotice<'_>| self.report_retry(spec.method, spec.item, &notice);
        attempts.handle_result(outcome, self.session.closed(), report).await.break_value()
    }

    pub(super) fn report_retry(&self, method: &'static str, item: &str, notice: &RetryNotice<'_>) {
        let (server, reason) = (&*self.server, notice.reason.to_string());
        let (attempt, delay_s) = (notice.attempt, notice.delay.as_secs_f64());
        tracing::warn!(server, method, item, attempt, delay_s, reason, "request retried");
        self.events.publish(HostEvent::CallRetry {
            server: self.server.clone(),
            method,
            item: item.into(),
            attempt,
            delay: notice.delay,
            reason,
        });
    }

    async fn send<P: Serialize>(
        &self,
        spec: &RequestSpec<'_, impl Fn(u64, RoundTripParams) -> P>,
        id: u64,
        call: Option<CallContext<'_>>,
        further: RoundTripParams,
        time: RequestDeadlines,
    ) -> RequestResult {
        let params = (spec.params)(id, further);
        let outgoing = OutgoingRequest::new(id, spec.method, &params, time.idle_deadline);
        let outgoing = OutgoingRequest {
            name: (spec.item != spec.method).then_some(spec.item),
            headers: spec.headers,
            deadline_extension: Some(DeadlineExtension {
                idle_timeout: spec.timeout.min(MAX_REQUEST_TIMEOUT),
                deadline: time.deadline,
            }),
            progress: spec.progress.cloned(),
            call,
            ..outgoing
        };
        self.session.request(outgoing).await
    }

    /// Reports the findings of the guard and returns them if the content is withheld.
    pub(crate) fn report_findings(
        &self,
        kind: ItemKind,
        item: &str,
        verdict: Option<Verdict>,
    ) -> Option<Vec<Finding>> {
        let verdict = verdict?;
        report_findings(&self.events, &self.server, Some((kind, item)), &verdict);
        verdict.withheld.then_some(verdict.findings)
    }

    /// Adds the server and the item to an error of the session.
    pub(crate) fn call_error(&self, error: RequestError, item: &str, after: Duration) -> CallError {
        call_error(&self.server, error, item, after)
    }
}

/// Reports findings of the guard as events and audit records. Without an item, the findings are in
/// the server's instructions.
pub(crate) fn report_findings(
    events: &EventPublisher,
    server: &Arc<str>,
    item: Option<(ItemKind, &str)>,
    verdict: &Verdict,
) {
    let is_withheld = verdict.withheld;
    let (tool, item) = ItemKind::split(item);
    for finding in &verdict.findings {
        let (finding_place, rule_reason) = (&*finding.place, finding.reason);
        AuditEvent::GuardFinding {
            tool,
            item,
            subject: finding_place,
            reason: rule_reason,
            withheld: is_withheld,
        }
        .emit(server);
        events.publish(HostEvent::GuardFinding {
            server: server.clone(),
            tool: tool.map(Into::into),
            item: item.map(Into::into),
            finding: finding.clone(),
            withheld: is_withheld,
        });
    }
}

/// Adds the server and the item to an error of a session.
pub(crate) fn call_error(
    server: &Arc<str>,
    failure: RequestError,
    item: &str,
    timeout: Duration,
) -> CallError {
    let server = server.clone();
    match failure {
        RequestError::ErrorResponse(error) => {
            CallError::Server { server, item: item.into(), error }
        }
        RequestError::Protocol(source) => CallError::Protocol { server, item: item.into(), source },
        RequestError::Unavailable { reason, sent } => {
            CallError::Unavailable { server, reason, may_have_run: sent, attempts: 1 }
        }
        RequestError::Timeout => CallError::Timeout { server, item: item.into(), timeout },
    }
}

/// Returns a latency in milliseconds for the log.
pub(crate) fn millis(latency: Duration) -> f64 {
    latency.as_secs_f64() * 1000.0
}

/// A permit for one concurrent request to the server.
pub(super) struct RequestPermit<'a> {
    _permit: SemaphorePermit<'a>,
    waited: bool,
}

/// Records a call once; if the caller is dropped, the call is recorded as cancelled.
struct CallRecorder<'a> {
    connection: &'a Connection,
    method: &'static str,
    item: &'a str,
    id: u64,
    sent_at: Instant,
    is_open: bool,
    /// Whether the server has sent a partial response.
    has_partial_response: bool,
    /// Whether a timeout of this call counts as unresponsiveness of the server.
    counts_as_timeout: bool,
    span: Option<RequestSpan>,
}

impl<'a> CallRecorder<'a> {
    fn start(connection: &'a Connection, method: &'static str, item: &'a str) -> Self {
        let span =
            connection.telemetry.as_ref().map(|reporter| reporter.start_request(method, item));
        let (id, sent_at, is_open, has_partial_response, counts_as_timeout) =
            (0, Instant::now(), true, false, true);
        Self {
            connection,
            method,
            item,
            id,
            sent_at,
            is_open,
            has_partial_response,
            counts_as_timeout,
            span,
        }
    }

    fn trace_context(&self) -> Option<Arc<TraceContext>> {
        self.span.as_ref()?.trace_context()
    }

    fn finish(mut self, outcome: CallOutcome) {
        self.write(outcome, None);
    }

    fn fail(mut self, error: &CallError) {
        self.write(CallOutcome::Failed(error.kind()), Some(error));
    }

    fn write(&mut self, outcome: CallOutcome, error: Option<&CallError>) {
        self.is_open = false;
        let now = Instant::now();
        let latency = now - self.sent_at;
        self.connection.metrics.record(outcome, latency, now);
        if let Some(call) = self.span.take() {
            call.end(self.id, latency, outcome, error);
        }
        match outcome {
            CallOutcome::Ok
            | CallOutcome::ToolError
            | CallOutcome::Failed(
                CallErrorKind::Server | CallErrorKind::Protocol | CallErrorKind::Withheld,
            ) => {
                self.connection.timeout_streak.reset();
            }
            // A call without an id never left the queue and says nothing about the server.
            CallOutcome::Failed(CallErrorKind::Timeout)
                if self.id != 0 && self.counts_as_timeout =>
            {
                self.connection.timeout_streak.record_timeout();
            }
            CallOutcome::Failed(_) | CallOutcome::Cancelled => {}
        }
        let (server, latency_ms) = (&*self.connection.server, millis(latency));
        let (method, item, id, outcome_text) = (self.method, self.item, self.id, outcome.as_str());
        match error {
            None => tracing::info!(
                server,
                method,
                item,
                id,
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
                    server,
                    method,
                    item,
                    id,
                    latency_ms,
                    outcome = outcome_text,
                    error,
                    "request"
                );
            }
        }
        if self.connection.events.has_subscribers() {
            self.connection.events.publish(HostEvent::CallFinished(CallRecord {
                server: self.connection.server.clone(),
                method: self.method,
                item: self.item.into(),
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

//! The connection to a ready server that calls use.

pub(crate) mod call_permits;
mod call_recorder;
mod exchange;
mod findings;
pub(crate) mod handshake;
pub(crate) mod list_doubt;
pub(crate) mod list_ttls;
pub(crate) mod listen;
pub(crate) mod listing;
pub(crate) mod log_level;
pub(crate) mod meta;
pub(crate) mod pass_through;
pub(crate) mod ping;
mod result_rejection;
pub(crate) mod result_type;
pub(crate) mod round_trips;
pub(crate) mod subscriptions;
mod task_poll;
pub(crate) mod timeout_streak;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use innkeeper_config::RetryPolicy;
use innkeeper_protocol::view::TasksCapability;
use innkeeper_protocol::{JsonText, Revision};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::cache::{Cache, FetchedResult};
use crate::callback::{Callback, CallbackRegistry};
use crate::connection::call_permits::CallPermits;
use crate::connection::list_doubt::ListDoubt;
use crate::connection::list_ttls::ListTtls;
use crate::connection::meta::ClientMeta;
use crate::connection::pass_through::PassThrough;
use crate::connection::result_type::ResultType;
use crate::connection::round_trips::RoundTripParams;
use crate::connection::subscriptions::Subscriptions;
use crate::connection::timeout_streak::TimeoutStreak;
use crate::deadline::{MAX_REQUEST_TIMEOUT, RequestDeadlines};
use crate::error::{CallError, Violation};
use crate::event::{CallOutcome, EventPublisher, HostEvent, REPORTED_TARGET};
use crate::guard::{Finding, ItemKind, SecretFingerprints, Verdict};
use crate::metrics::MetricsRecorder;
use crate::retry::{Attempts, RetryNotice, RetryPlan};
use crate::session::{
    Budgeted, CallContext, Caller, DeadlineExtension, OutgoingRequest, Progress, RequestError,
    RequestResult, Session,
};
use crate::telemetry::ConnectionTelemetry;

use call_recorder::millis;
use exchange::Exchange;
pub(crate) use findings::report_findings;

pub(crate) use result_rejection::ResultRejection;

/// The connection to one server that accepts requests.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) server: Arc<str>,
    pub(crate) number: ConnectionNumber,
    pub(crate) session: Session,
    pub(crate) negotiated: Negotiated,
    pub(crate) limits: RequestLimits,
    pub(crate) cache: Arc<Cache>,
    pub(crate) callbacks: CallbackRegistry,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) list_ttls: ListTtls,
    pub(crate) list_doubt: ListDoubt,
    pub(crate) instruments: Instruments,
    pub(crate) events: EventPublisher,
    /// Fingerprints that identify the credentials of all servers.
    pub(crate) secret_fingerprints: Arc<SecretFingerprints>,
}

/// A number that no other connection of the process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionNumber(pub(crate) u64);

impl ConnectionNumber {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The result of the handshake, as far as requests need it.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) revision: Revision,
    /// Task capabilities of the server in its protocol revision.
    pub(crate) tasks: TasksCapability,
    /// Capabilities of the server, as the server declares them.
    pub(crate) capabilities: Box<RawValue>,
    /// Whether the server declares `logging`.
    pub(crate) declares_logging: bool,
    /// `_meta` of every request of the modern era.
    pub(crate) client_meta: ClientMeta,
}

/// The limits of the requests to one server, from its configuration.
#[derive(Debug)]
pub(crate) struct RequestLimits {
    pub(crate) permits: CallPermits,
    /// Maximum total duration of one call, regardless of progress.
    pub(crate) max_total_timeout: Duration,
    pub(crate) retry: RetryPolicy,
}

/// Counts and reports the requests to one server.
#[derive(Debug)]
pub(crate) struct Instruments {
    pub(crate) metrics: Arc<MetricsRecorder>,
    pub(crate) timeout_streak: TimeoutStreak,
    /// Emits spans and metrics; `None` disables telemetry without cost.
    pub(crate) telemetry: Option<ConnectionTelemetry>,
}

/// A request to a server, including its retries.
pub(crate) struct RequestSpec<'a, F> {
    pub(crate) method: Cow<'static, str>,
    /// Name of the tool or prompt, or the URI, for messages and records.
    pub(crate) item: &'a str,
    /// The name, URI or task id in the parameters, which some transports repeat in a header.
    pub(crate) name: Option<&'a str>,
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
    /// The remote client of the call.
    pub(crate) caller: Option<&'a Arc<Caller>>,
    /// The incomplete results that the request returns.
    pub(crate) pass_through: PassThrough,
    /// The task whose result the request returns.
    pub(crate) task_id: Option<&'a str>,
}

impl Connection {
    /// Sends a request of the application, checks its result, and records it once, however it ends:
    /// response, error, timeout or a cancelled caller.
    pub(crate) async fn request<P: JsonText>(
        &self,
        spec: &RequestSpec<'_, impl Fn(u64, RoundTripParams) -> P>,
        check_result: impl FnOnce(&RawValue, ResultType) -> Result<CallOutcome, ResultRejection>,
    ) -> Result<FetchedResult, CallError> {
        self.request_scanned(spec, check_result, |_| None).await
    }

    /// Like [`Self::request`], but can also withhold other content of the server: `suspect` returns
    /// the findings that cause it. Called before recording, so that no log contains the content.
    pub(crate) async fn request_scanned<P: JsonText>(
        &self,
        spec: &RequestSpec<'_, impl Fn(u64, RoundTripParams) -> P>,
        check_result: impl FnOnce(&RawValue, ResultType) -> Result<CallOutcome, ResultRejection>,
        suspect: impl FnOnce(&RequestError) -> Option<Vec<Finding>>,
    ) -> Result<FetchedResult, CallError> {
        let mut exchange = Exchange::new(self, spec);
        let response = exchange.run().await;
        let kind = exchange.result_type();
        match ResultRejection::check(response, |result| check_result(result, kind), suspect) {
            Ok((result, outcome)) => Ok(exchange.finish(result, outcome)),
            Err(rejection) => Err(exchange.fail(rejection)),
        }
    }

    /// Sends a request of the application once, and returns its result of any type as the server
    /// sent it. Checks and records the request as [`Self::request_scanned`] does.
    pub(crate) async fn request_raw<P: JsonText>(
        &self,
        spec: &RequestSpec<'_, impl Fn(u64, RoundTripParams) -> P>,
        check_result: impl FnOnce(&RawValue) -> Result<CallOutcome, ResultRejection>,
        suspect: impl FnOnce(&RequestError) -> Option<Vec<Finding>>,
    ) -> Result<Box<RawValue>, CallError> {
        let mut exchange = Exchange::new(self, spec);
        let response = exchange.run_without_round_trips().await;
        match ResultRejection::check(response, check_result, suspect) {
            Ok((result, outcome)) => Ok(exchange.finish(result, outcome).result),
            Err(rejection) => Err(exchange.fail(rejection)),
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
        let mut id = None;
        let time = RequestDeadlines::new(started, timeout, timeout);
        let spec = RequestSpec {
            method: method.into(),
            item: method,
            name: None,
            params: |_, _| params,
            headers: &[],
            timeout,
            progress: None,
            retries: None,
            retry_safe: true,
            as_task: false,
            callback: None,
            caller: None,
            pass_through: PassThrough::default(),
            task_id: None,
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
        let response = response.map(Budgeted::into_inner).map_err(|failure| {
            self.call_error(failure, method, timeout).with_attempts(attempts.count())
        });
        let latency_ms = millis(started.elapsed());
        let server = &*self.server;
        match &response {
            Ok(_) => tracing::info!(server, method, id, latency_ms, outcome = "ok", "request"),
            Err(error) => {
                let outcome = error.kind().as_str();
                let error: &dyn std::error::Error = error;
                tracing::warn!(
                    target: REPORTED_TARGET,
                    server, method, id, latency_ms, outcome, error, "request"
                );
            }
        }
        response
    }

    fn attempts<F>(&self, spec: &RequestSpec<'_, F>, deadline: Instant) -> Attempts {
        let max_retries = spec.retries.unwrap_or(self.limits.retry.max);
        Attempts::new(RetryPlan {
            policy: self.limits.retry,
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
        attempts
            .handle_result(outcome, self.session.closed(), |notice| {
                self.report_retry(spec.method.clone(), spec.item, &notice);
            })
            .await
            .break_value()
    }

    pub(super) fn report_retry(
        &self,
        method: Cow<'static, str>,
        item: &str,
        notice: &RetryNotice<'_>,
    ) {
        let server = &*self.server;
        let reason = notice.reason.without_server_text().to_string();
        let attempt = notice.attempt;
        let delay_s = notice.delay.as_secs_f64();
        tracing::warn!(
            server,
            method = &*method,
            item,
            attempt,
            delay_s,
            reason,
            "request retried"
        );
        self.events.publish(HostEvent::CallRetry {
            server: self.server.clone(),
            method,
            item: item.into(),
            attempt,
            delay: notice.delay,
            reason,
        });
    }

    async fn send<P: JsonText>(
        &self,
        spec: &RequestSpec<'_, impl Fn(u64, RoundTripParams) -> P>,
        id: u64,
        call: Option<CallContext<'_>>,
        further: RoundTripParams,
        time: RequestDeadlines,
    ) -> RequestResult {
        let params = (spec.params)(id, further);
        let outgoing = OutgoingRequest::new(id, spec.method.clone(), &params, time.idle_deadline);
        let outgoing = OutgoingRequest {
            name: spec.name,
            headers: spec.headers,
            deadline_extension: Some(DeadlineExtension {
                idle_timeout: spec.timeout.min(MAX_REQUEST_TIMEOUT),
                deadline: time.deadline,
            }),
            progress: spec.progress.cloned(),
            call,
            task_id: spec.task_id,
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
        RequestError::TooLarge { bytes, limit } => {
            let message = format!("the request has {bytes} bytes, more than the limit of {limit}");
            CallError::Validation {
                item: item.into(),
                problems: vec![Violation::of_whole_value(message)],
            }
        }
        RequestError::Unavailable { reason, sent } => {
            CallError::Unavailable { server, reason, may_have_run: sent, attempts: 1 }
        }
        RequestError::Timeout => {
            CallError::Timeout { server, item: item.into(), timeout, is_total: false }
        }
    }
}

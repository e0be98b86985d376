//! One request of the application with all its attempts, round trips and tasks.

use crate::connection::TaskUse;
use innkeeper_protocol::{Era, skim};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::call_permits::RequestPermit;
use super::call_recorder::CallRecorder;
use super::request_spec::AttemptParams;
use super::result_type::ResultType;
use super::round_trips::{RoundTripParams, RoundTrips};
use super::{Connection, RequestSpec, ResultRejection, round_trips, task_poll};
use crate::cache::FetchedResult;
use crate::deadline::{MAX_REQUEST_TIMEOUT, RequestDeadlines};
use crate::error::{CallError, UnavailableReason};
use crate::event::CallOutcome;
use crate::guard::Finding;
use crate::retry::{Attempts, RetryPlan};
use crate::session::{
    CallCallback, CallContext, DeadlineExtension, OutgoingRequest, RequestDeadline, RequestError,
    RequestResult,
};

impl Connection {
    /// Sends a request of the application, checks its result, and records it once, however it ends:
    /// response, error, timeout or a cancelled caller.
    pub(crate) async fn request(
        &self,
        spec: &RequestSpec<'_>,
        check_result: impl FnOnce(&RawValue, ResultType) -> Result<CallOutcome, ResultRejection>,
    ) -> Result<FetchedResult, CallError> {
        self.request_scanned(spec, check_result, |_| None).await
    }

    /// Like [`Self::request`], but can also withhold other content of the server: `suspect` returns
    /// the findings that cause it. Called before recording, so that no log contains the content.
    pub(crate) async fn request_scanned(
        &self,
        spec: &RequestSpec<'_>,
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
    pub(crate) async fn request_raw(
        &self,
        spec: &RequestSpec<'_>,
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

    pub(super) fn attempts(&self, spec: &RequestSpec<'_>, deadline: Instant) -> Attempts {
        let max_retries = spec.options.retries.unwrap_or(self.limits.retry.max);
        Attempts::new(RetryPlan {
            policy: self.limits.retry,
            max_retries,
            retry_safe: spec.retry_safe,
            deadline,
        })
    }

    /// Returns the final result; `None` after the backoff before the next attempt.
    pub(super) async fn final_result(
        &self,
        attempts: &mut Attempts,
        spec: &RequestSpec<'_>,
        outcome: Option<RequestResult>,
    ) -> Option<RequestResult> {
        attempts
            .handle_result(outcome, self.session.closed(), |notice| {
                self.report_retry(spec.method.clone(), spec.item, &notice);
            })
            .await
            .break_value()
    }

    pub(super) async fn send(
        &self,
        spec: &RequestSpec<'_>,
        id: u64,
        call: Option<CallContext<'_>>,
        further: RoundTripParams,
        time: RequestDeadlines,
    ) -> RequestResult {
        let params = AttemptParams { request: spec.params, id, further };
        let outgoing = OutgoingRequest::new(id, spec.method.clone(), &params, time.idle_deadline);
        let outgoing = OutgoingRequest {
            headers: spec.headers,
            deadline: RequestDeadline {
                at: time.idle_deadline,
                extension: Some(DeadlineExtension {
                    idle_timeout: spec.timeout.min(MAX_REQUEST_TIMEOUT),
                    deadline: time.deadline,
                }),
            },
            progress: spec.options.progress.cloned(),
            call,
            task_id: spec.task.id(),
            ..outgoing
        };
        self.session.request(outgoing).await
    }
}

/// The state of one request: its record, its deadlines, and what was already exchanged.
pub(super) struct Exchange<'a> {
    connection: &'a Connection,
    spec: &'a RequestSpec<'a>,
    record: CallRecorder<'a>,
    deadlines: RequestDeadlines,
    attempts: Attempts,
    round_trips: RoundTrips,
    callback: Option<CallCallback>,
    result_type: ResultType,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(connection: &'a Connection, spec: &'a RequestSpec<'a>) -> Self {
        let record = CallRecorder::start(connection, spec);
        let max_total = connection.limits.max_total_timeout;
        let deadlines = RequestDeadlines::new(record.sent_at, spec.timeout, max_total);
        let attempts = connection.attempts(spec, deadlines.idle_deadline);
        let round_trips = RoundTrips::new(spec.options.pass_through.responses.clone());
        let callback = spec.options.callback.map(CallCallback::new);
        let result_type = ResultType::Complete;
        Self { connection, spec, record, deadlines, attempts, round_trips, callback, result_type }
    }

    /// Sends the request until its result is complete or passed through.
    pub(super) async fn run(&mut self) -> Result<Box<RawValue>, RequestError> {
        loop {
            let (result, permit) = self.next_result().await?;
            if self.passes_results() {
                ResultType::check_unambiguous(&result)?;
            }
            match self.read_result_type(&result)? {
                ResultType::Complete => return Ok(result),
                ResultType::Task if self.spec.options.pass_through.task => {
                    task_poll::detach(self.connection, &result)?;
                    self.result_type = ResultType::Task;
                    return Ok(result);
                }
                // In a box: each call would have room for the future.
                ResultType::Task => return Box::pin(self.await_task(&result, permit)).await,
                ResultType::InputRequired if self.spec.options.pass_through.input_required => {
                    round_trips::check_forwarded_input(self.connection, self.call(), &result)?;
                    self.result_type = ResultType::InputRequired;
                    return Ok(result);
                }
                ResultType::InputRequired => {
                    drop(permit);
                    self.gather_input(&result).await?;
                }
            }
        }
    }

    /// Returns whether the application reads the types of results of the modern era.
    fn passes_results(&self) -> bool {
        let is_modern = self.connection.negotiated.revision.era() == Era::Modern;
        is_modern
            && (self.spec.options.pass_through.input_required
                || self.spec.options.pass_through.task)
    }

    /// Returns the type of the result that [`Self::run`] returned.
    pub(super) fn result_type(&self) -> ResultType {
        self.result_type
    }

    /// Sends the request and returns its first result, which may be of any type.
    pub(super) async fn run_without_round_trips(&mut self) -> Result<Box<RawValue>, RequestError> {
        let (result, _permit) = self.next_result().await?;
        if self.connection.negotiated.revision.era() == Era::Modern {
            round_trips::check_raw_result(self.connection, self.call(), &result)?;
        }
        Ok(result)
    }

    /// Repeats attempts until one of them gives the result or the final error.
    async fn next_result(
        &mut self,
    ) -> Result<(Box<RawValue>, Option<RequestPermit<'a>>), RequestError> {
        loop {
            let (response, permit) = self.attempt().await;
            if let Some(Ok(result)) = response {
                self.attempts.record_response();
                return Ok((result.into_inner(), permit));
            }
            // During a backoff the server has no part of this call.
            drop(permit);
            let attempts = &mut self.attempts;
            if let Some(last) = self.connection.final_result(attempts, self.spec, response).await {
                return last.map(|result| (result.into_inner(), None));
            }
        }
    }

    /// Waits for a permit and sends the request once. Returns no response if no permit was free
    /// in time.
    async fn attempt(&mut self) -> (Option<RequestResult>, Option<RequestPermit<'a>>) {
        let record = &mut self.record;
        let permits = &self.connection.limits.permits;
        let caller = self.spec.options.caller;
        let deadline = self.deadlines.idle_deadline;
        let Some(permit) = permits.acquire(caller.map(|caller| &**caller), deadline).await else {
            record.counts_as_timeout = false;
            return (None, None);
        };
        if permit.waited && record.id == 0 {
            record.sent_at = Instant::now();
        }
        if let Some(check) = caller.and_then(|caller| caller.send_check.as_ref()) {
            let Ok(checked) = timeout_at(deadline, check.check()).await else {
                record.counts_as_timeout = false;
                return (None, None);
            };
            if let Err(reason) = checked {
                let reason = UnavailableReason::NotSent(reason.into());
                return (Some(Err(RequestError::Unavailable { reason, sent: false })), None);
            }
        }
        record.id = self.connection.session.next_id();
        let trace_context = record.trace_context();
        let further = RoundTripParams { trace_context, ..self.round_trips.params() };
        let id = record.id;
        let call = Some(self.call());
        let response = self.connection.send(self.spec, id, call, further, self.deadlines).await;
        (Some(response), Some(permit))
    }

    /// Returns the type of a result; in the legacy era every unsolicited result is complete.
    fn read_result_type(&mut self, result: &RawValue) -> Result<ResultType, RequestError> {
        let kind = match self.connection.negotiated.revision.era() {
            Era::Modern => ResultType::from_result(result, &self.spec.method),
            Era::Legacy
                if self.spec.task == TaskUse::Creates
                    && skim::member(result.get(), "task").is_some() =>
            {
                Ok(ResultType::Task)
            }
            Era::Legacy => Ok(ResultType::Complete),
        };
        if !matches!(kind, Ok(ResultType::Complete)) {
            self.record.has_partial_response = true;
            self.connection.instruments.timeout_streak.reset();
        }
        kind
    }

    /// Polls the task that the request created.
    async fn await_task(
        &self,
        created: &RawValue,
        permit: Option<RequestPermit<'a>>,
    ) -> Result<Box<RawValue>, RequestError> {
        let call = self.call();
        let deadline = self.deadlines.deadline;
        task_poll::await_result(self.connection, self.spec, call, created, permit, deadline).await
    }

    /// Collects the input that a result requests, for the next request.
    async fn gather_input(&mut self, result: &RawValue) -> Result<(), RequestError> {
        let deadline = self.deadlines.deadline;
        let call = call_context(self.record.id, self.spec, self.callback.as_ref());
        self.round_trips.gather_input(self.connection, call, result, deadline).await?;
        // The time was spent by the user or the model, not by the server.
        let idle_timeout = self.spec.timeout.min(MAX_REQUEST_TIMEOUT);
        self.deadlines.idle_deadline = (Instant::now() + idle_timeout).min(deadline);
        self.attempts = self.connection.attempts(self.spec, self.deadlines.idle_deadline);
        Ok(())
    }

    /// Returns the call for the requests and notifications that belong to it.
    fn call(&self) -> CallContext<'_> {
        call_context(self.record.id, self.spec, self.callback.as_ref())
    }

    /// Records the success of the request.
    pub(super) fn finish(self, result: Box<RawValue>, outcome: CallOutcome) -> FetchedResult {
        self.record.finish(outcome);
        let Connection { freshness, session, .. } = self.connection;
        if let Some(lists) = freshness.list_doubt.after_response(self.attempts.count()) {
            session.request_refresh(lists);
        }
        let is_own_input = self.callback.is_some_and(|callback| callback.is_used());
        let is_complete = self.result_type == ResultType::Complete;
        let cacheable = is_complete && self.round_trips.is_empty() && !is_own_input;
        FetchedResult { result, cacheable, clean: false }
    }

    /// Records the failure of the request and returns its error.
    pub(super) fn fail(mut self, rejection: ResultRejection) -> CallError {
        let error = self.rejection_error(rejection).with_attempts(self.attempts.count());
        self.record.fail(&error);
        let Connection { freshness, session, .. } = self.connection;
        if let Some(lists) = freshness.list_doubt.after_error(&error, &self.spec.method) {
            session.request_refresh(lists);
        }
        error
    }

    /// Returns the error of a request whose result was rejected or did not arrive.
    fn rejection_error(&mut self, rejection: ResultRejection) -> CallError {
        let Self { connection, spec, record, deadlines, .. } = self;
        match rejection {
            ResultRejection::Withheld(findings) => CallError::Withheld {
                server: connection.server.clone(),
                item: spec.item.into(),
                findings,
            },
            ResultRejection::Error(failure) => {
                // A call that times out although the server was active has used its total timeout.
                let expired = Instant::now() >= deadlines.deadline;
                record.counts_as_timeout &= !expired
                    || !(record.has_partial_response
                        || connection.session.has_open_server_requests());
                let total = deadlines.deadline - deadlines.started;
                let after = if expired { total } else { spec.timeout };
                let mut error = connection.call_error(failure, spec.item, after);
                if let CallError::Timeout { is_total, .. } = &mut error {
                    *is_total = after > spec.timeout;
                }
                error
            }
        }
    }
}

fn call_context<'a>(
    id: u64,
    spec: &'a RequestSpec<'_>,
    callback: Option<&'a CallCallback>,
) -> CallContext<'a> {
    let method = &spec.method;
    let item = spec.item;
    let caller = spec.options.caller;
    CallContext { id, method, item, callback, caller }
}

//! Polls a task until it has its result.

mod cancellation;
mod requests;

use std::collections::HashSet;
use std::time::Duration;

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::view::{MAX_TASK_ID_BYTES, Task, TaskStatus};
use innkeeper_protocol::{Era, ErrorObject, method, skim};
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout_at};

use cancellation::TaskCancellation;
use requests::{TaskParams, TaskRequests};

use super::meta::CallerMeta;
use super::round_trips::{MAX_ROUND_TRIPS, gather_responses};
use crate::callback::ClientCapabilities;
use crate::connection::call_permits::RequestPermit;
use crate::connection::{Connection, RequestSpec};
use crate::deadline::MAX_REQUEST_TIMEOUT;
use crate::error::{ProtocolError, UnavailableReason};
use crate::session::{Budgeted, CallContext, RequestError};
use crate::text::display_safe;

/// Default poll interval if the server specifies none: short for a waiting user.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum poll interval, to avoid flooding the server.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum poll interval, so that a result is fetched within this time.
const MAX_POLL_INTERVAL: Duration = Duration::from_mins(1);

/// Maximum time during which a task that the application polls counts as running: a task that
/// nobody polls to its end must not count forever.
const MAX_TASK_LIFETIME: Duration = Duration::from_hours(24);

/// Maximum number of characters shown of a task's status message.
const MAX_SHOWN_CHARS: usize = 200;

/// Waits for the result of the task that a call created, at most until the deadline. Each response
/// of the server may take the timeout of the call. If the wait ends before the task, even by
/// dropping the future, the server is requested once to cancel the task.
pub(super) async fn await_result(
    connection: &Connection,
    spec: &RequestSpec<'_>,
    call: CallContext<'_>,
    created: &RawValue,
    permit: Option<RequestPermit<'_>>,
    max_deadline: Instant,
) -> Result<Box<RawValue>, RequestError> {
    // The call is in flight, and its progress is forwarded, until the task ends.
    let open = connection.session.hold_open(call.id, spec.options.progress.cloned(), call);
    let task = parse_task(created);
    let id = task.as_ref().map_or_else(|_| task_id(created), |task| Some(task.id.clone()));
    if let Some(id) = &id {
        open.set_task_id(id);
    }
    let capabilities = call.caller.and_then(|caller| caller.capabilities.as_ref());
    let capabilities = capabilities.map(ClientCapabilities::raw);
    let caller_meta = CallerMeta::default().with_capabilities(capabilities.cloned());
    // A task that is only partly readable is cancelled as well.
    let needs_cancel = id.is_some();
    let requests = TaskRequests {
        connection,
        call,
        caller_meta,
        task_id: id.unwrap_or_default(),
        idle_timeout: spec.timeout.min(MAX_REQUEST_TIMEOUT),
        deadline: max_deadline,
        retries: spec.options.retries.unwrap_or(connection.limits.retry.max),
    };
    let deferred = TaskPoll {
        cancellation: TaskCancellation::new(&requests, needs_cancel),
        requests,
        started_at: Instant::now(),
    };
    let task = task?;
    let polling = async {
        match connection.negotiated.revision.era() {
            Era::Modern => deferred.poll_modern(task, permit).await,
            Era::Legacy => deferred.poll_legacy(task).await,
        }
    };
    let result = tokio::select! {
        biased;
        () = connection.session.tasks_cancelled() => {
            Err(RequestError::Unavailable { reason: UnavailableReason::Shutdown, sent: true })
        }
        result = polling => result,
    };
    result.map_err(|error| match error {
        // `sent` refers to the call, which has run whatever happened to the later request.
        RequestError::Unavailable { reason, .. } => {
            RequestError::Unavailable { reason, sent: true }
        }
        other => other,
    })
}

/// Records a task that the application polls, so that the host does not attribute messages about
/// the task to another call.
pub(super) fn detach(connection: &Connection, created: &RawValue) -> Result<(), RequestError> {
    let task = parse_task(created)?;
    if let Some(lifetime) = open_lifetime(&task) {
        connection.session.detach_task(&task.id, lifetime);
    }
    Ok(())
}

/// Returns the time for which the application may poll the task; `None` for a task that has ended.
fn open_lifetime(task: &Task) -> Option<Duration> {
    let ttl = task.ttl_ms.map_or(MAX_TASK_LIFETIME, Duration::from_millis);
    (!task.status.is_terminal()).then(|| ttl.min(MAX_TASK_LIFETIME))
}

fn parse_task(raw: &RawValue) -> Result<Task, RequestError> {
    Task::from_raw(raw).map_err(|error| RequestError::Protocol(ProtocolError::InvalidResult(error)))
}

/// Returns the task id even if the rest of the task is malformed.
fn task_id(created: &RawValue) -> Option<String> {
    let objects = [Some(created.get()), skim::member(created.get(), "task")];
    let id: Option<String> = objects
        .into_iter()
        .flatten()
        .find_map(|object| serde_json::from_str(skim::member(object, "taskId")?).ok());
    id.filter(|id| id.len() <= MAX_TASK_ID_BYTES)
}

fn is_working(task: &Task) -> bool {
    matches!(task.status, TaskStatus::Working | TaskStatus::Other(_))
}

/// A task that is being polled.
struct TaskPoll<'a> {
    requests: TaskRequests<'a>,
    started_at: Instant,
    cancellation: TaskCancellation<'a>,
}

impl TaskPoll<'_> {
    /// Polls in revision 2026-07-28: `tasks/get` returns input requests and the result.
    async fn poll_modern(
        &self,
        mut task: Task,
        mut permit: Option<RequestPermit<'_>>,
    ) -> Result<Box<RawValue>, RequestError> {
        let mut answered_keys = HashSet::new();
        let mut round_count = 0;
        if is_working(&task) {
            self.wait_interval(&task).await?;
        }
        loop {
            task = self.poll(&task).await?;
            if task.status.is_terminal() {
                return task_result(task);
            }
            let mut questions = std::mem::take(&mut task.input_requests);
            questions.retain(|input_request| !answered_keys.contains(&input_request.key));
            if task.status == TaskStatus::InputRequired && !questions.is_empty() {
                round_count += 1;
                if round_count > MAX_ROUND_TRIPS {
                    return Err(RequestError::Protocol(ProtocolError::TooManyRoundTrips {
                        limit: MAX_ROUND_TRIPS,
                    }));
                }
                // The callback may call this server, which needs a permit.
                let _ = permit.take();
                let responses = gather_responses(
                    self.requests.connection,
                    self.requests.call,
                    &questions,
                    self.requests.deadline,
                )
                .await?;
                let caller = self.requests.call.caller.map(|caller| &**caller);
                permit = self
                    .requests
                    .connection
                    .limits
                    .permits
                    .acquire(caller, self.requests.deadline)
                    .await;
                if permit.is_none() {
                    return Err(RequestError::Timeout);
                }
                let params = TaskParams { input_responses: responses, ..self.requests.params() };
                self.requests
                    .send(method::TASKS_UPDATE, &params, self.requests.request_deadline())
                    .await?;
                answered_keys.extend(questions.into_iter().map(|input_request| input_request.key));
            }
            self.wait_interval(&task).await?;
        }
    }

    /// Polls in revision 2025-11-25: a separate request fetches the result, and input requests
    /// arrive as server requests meanwhile.
    async fn poll_legacy(&self, mut task: Task) -> Result<Box<RawValue>, RequestError> {
        while is_working(&task) {
            self.wait_interval(&task).await?;
            task = self.poll(&task).await?;
        }
        match task.status {
            TaskStatus::InputRequired => {}
            TaskStatus::Cancelled => return task_result(task),
            _ => return self.fetch_result(&task, self.requests.request_deadline()).await,
        }
        let last = task.clone();
        let result = self.fetch_result(&last, self.requests.deadline);
        // A server that waits for input, or processes it, still answers polls.
        let watch = async {
            while !task.status.is_terminal() {
                self.wait_interval(&task).await?;
                task = self.poll(&task).await?;
            }
            Ok::<(), RequestError>(())
        };
        tokio::pin!(result);
        let forgotten = tokio::select! {
            biased;
            result = &mut result => return result,
            watched = watch => match watched {
                Ok(()) => None,
                // Some servers delete a task as soon as they send its result.
                Err(
                    fault @ (RequestError::ErrorResponse(_) | RequestError::Protocol(ProtocolError::TaskExpired { .. })),
                ) => Some(fault),
                Err(fault) => return Err(fault),
            },
        };
        match timeout_at(self.requests.request_deadline(), result).await {
            Ok(result) => result,
            Err(_) => Err(forgotten.unwrap_or(RequestError::Timeout)),
        }
    }

    /// Waits for the poll interval of the server, or for a notification of a changed task.
    async fn wait_interval(&self, task: &Task) -> Result<(), RequestError> {
        let requested = task.poll_interval_ms.map_or(DEFAULT_POLL_INTERVAL, Duration::from_millis);
        let more = requested.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL) - MIN_POLL_INTERVAL;
        let session = &self.requests.connection.session;
        let wait = async {
            let changed = session.task_changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            sleep(MIN_POLL_INTERVAL).await;
            tokio::select! {
                () = changed => {}
                () = sleep(more) => {}
            }
        };
        tokio::select! {
            reason = session.closed() => Err(RequestError::Unavailable { reason, sent: true }),
            waited = timeout_at(self.requests.deadline, wait) => waited.map_err(|_| RequestError::Timeout),
        }
    }

    /// Fetches the status of the task.
    async fn poll(&self, last: &Task) -> Result<Task, RequestError> {
        let response = self
            .requests
            .send(method::TASKS_GET, &self.requests.params(), self.requests.request_deadline())
            .await;
        let task = parse_task(
            &response
                .map(Budgeted::into_inner)
                .map_err(|error| self.map_unknown_task(error, last))?,
        )?;
        if task.status.is_terminal() {
            self.cancellation.disarm();
        }
        Ok(task)
    }

    /// Fetches the result; the server responds when the task is complete.
    async fn fetch_result(
        &self,
        last: &Task,
        deadline: Instant,
    ) -> Result<Box<RawValue>, RequestError> {
        let response =
            self.requests.send(method::TASKS_RESULT, &self.requests.params(), deadline).await;
        if matches!(response, Ok(_) | Err(RequestError::ErrorResponse(_))) {
            self.cancellation.disarm();
        }
        response.map(Budgeted::into_inner).map_err(|error| self.map_unknown_task(error, last))
    }

    /// Maps the error for an unknown task, which the server may have deleted.
    fn map_unknown_task(&self, failure: RequestError, last: &Task) -> RequestError {
        match &failure {
            RequestError::ErrorResponse(error) if error.code == code::INVALID_PARAMS => {}
            _ => return failure,
        }
        self.cancellation.disarm();
        match last.ttl_ms.map(Duration::from_millis) {
            Some(ttl) if self.started_at.elapsed() >= ttl => {
                RequestError::Protocol(ProtocolError::TaskExpired { ttl })
            }
            _ => failure,
        }
    }
}

fn task_result(task: Task) -> Result<Box<RawValue>, RequestError> {
    let error = task.error.as_deref().and_then(ErrorObject::from_raw);
    let status = match (task.status, task.result, error) {
        (TaskStatus::Completed, Some(result), _) => return Ok(result),
        (TaskStatus::Failed, _, Some(error)) => return Err(RequestError::ErrorResponse(error)),
        (TaskStatus::Completed, ..) => "completed",
        (TaskStatus::Cancelled, ..) => "cancelled",
        _ => "failed",
    };
    let message_text: String =
        task.status_message.unwrap_or_default().chars().take(MAX_SHOWN_CHARS).collect();
    let message = display_safe(&message_text).into();
    Err(RequestError::Protocol(ProtocolError::NoTaskResult { status, message }))
}

#[cfg(test)]
pub(super) mod tests;

//! The requests about one task.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::connection::meta::{CallerMeta, Meta};
use crate::retry::{Attempts, RetryPlan};
use crate::session::{
    CallContext, DeadlineExtension, HeaderValues, OutgoingRequest, RequestDeadline, RequestError,
    RequestResult,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskParams<'a> {
    pub(super) task_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input_responses: Option<Arc<RawValue>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(super) meta: Option<Meta<'a>>,
}

/// Sends requests about one task.
pub(super) struct TaskRequests<'a> {
    pub(super) connection: &'a Connection,
    pub(super) call: CallContext<'a>,
    /// The capabilities of the remote client of the call.
    pub(super) caller_meta: CallerMeta,
    pub(super) task_id: String,
    /// Timeout of each response.
    pub(super) idle_timeout: Duration,
    /// Absolute deadline.
    pub(super) deadline: Instant,
    /// Maximum number of retries of a lost request.
    pub(super) retries: u32,
}

impl TaskRequests<'_> {
    /// Sends a request about the task; all these requests are retry-safe.
    pub(super) async fn send(
        &self,
        method: &'static str,
        params: &TaskParams<'_>,
        deadline: Instant,
    ) -> RequestResult {
        let Self { connection, idle_timeout, deadline: max_deadline, .. } = *self;
        let policy = connection.limits.retry;
        let max = self.retries;
        let mut attempts =
            Attempts::new(RetryPlan { policy, max_retries: max, retry_safe: true, deadline });
        let session = &connection.session;
        loop {
            let outgoing = OutgoingRequest {
                headers: HeaderValues { name: Some(&self.task_id), arguments: &[] },
                call: Some(self.call),
                deadline: RequestDeadline {
                    at: deadline,
                    extension: Some(DeadlineExtension { idle_timeout, deadline: max_deadline }),
                },
                ..OutgoingRequest::new(session.next_id(), method, params, deadline)
            };
            let response = Some(session.request(outgoing).await);
            let response = attempts
                .handle_result(response, session.closed(), |notice| {
                    connection.report_retry(method.into(), self.call.item, &notice);
                })
                .await;
            if let Some(response) = response.break_value() {
                if matches!(
                    response,
                    Ok(_) | Err(RequestError::ErrorResponse(_) | RequestError::Protocol(_))
                ) {
                    connection.instruments.timeout_streak.reset();
                }
                return response;
            }
        }
    }

    pub(super) fn params(&self) -> TaskParams<'_> {
        let client_meta = &self.connection.negotiated.client_meta;
        let meta = client_meta.meta_with_trace(None, None, &self.caller_meta);
        TaskParams { task_id: &self.task_id, input_responses: None, meta }
    }

    /// Returns the deadline of a request that is sent now.
    pub(super) fn request_deadline(&self) -> Instant {
        (Instant::now() + self.idle_timeout).min(self.deadline)
    }
}

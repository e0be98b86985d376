//! Cancels a task at its server when nobody waits for the task any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use innkeeper_protocol::{Era, method};
use serde_json::value::to_raw_value;

use super::requests::TaskRequests;
use crate::connection::Negotiated;
use crate::session::{DetachedRequest, Session};

/// Timeout of the request that cancels a task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Cancels a task when dropped, unless the task needs no cancellation.
pub(super) struct TaskCancellation<'a> {
    session: &'a Session,
    is_armed: AtomicBool,
    /// `None` if the server takes no cancellation.
    request: Option<DetachedRequest>,
}

impl<'a> TaskCancellation<'a> {
    pub(super) fn new(task: &TaskRequests<'a>, is_armed: bool) -> Self {
        let Negotiated { revision, tasks, .. } = &task.connection.negotiated;
        let takes_cancel = revision.era() == Era::Modern || tasks.cancel;
        let request = takes_cancel.then(|| DetachedRequest {
            method: method::TASKS_CANCEL,
            name: task.task_id.clone(),
            // Serialization of strings and numbers cannot fail.
            params: to_raw_value(&task.params()).unwrap_or_default(),
            limit: CANCEL_TIMEOUT,
        });
        Self { session: &task.connection.session, is_armed: is_armed.into(), request }
    }

    /// Records that the task has ended.
    pub(super) fn disarm(&self) {
        self.is_armed.store(false, Ordering::Relaxed);
    }
}

impl Drop for TaskCancellation<'_> {
    fn drop(&mut self) {
        if self.is_armed.load(Ordering::Relaxed)
            && let Some(request) = self.request.take()
        {
            self.session.send_detached(request);
        }
    }
}

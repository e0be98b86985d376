//! The tasks of a session that are polled or being cancelled, and the guards that count them.

use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, mpsc, watch};

use super::active_task_guard::ActiveTaskGuard;
use super::detached_requests::{self, DetachedReceiver, DetachedRequest, DetachedRequests};
use super::{CallContext, Progress, Session};

#[derive(Debug)]
pub(super) struct ActiveTasks {
    waits: watch::Sender<TaskWaits>,
    /// Notified when the server reports a changed task.
    pub(super) changed: Notify,
    detached_requests: DetachedRequests,
}

/// The waits for tasks, and the requests that cancel tasks.
#[derive(Debug, Default)]
struct TaskWaits {
    count: usize,
    cancelled: bool,
}

impl ActiveTasks {
    pub(super) fn new() -> (Self, DetachedReceiver) {
        let (detached_requests, receiver) = detached_requests::channel();
        let waits = watch::Sender::default();
        (Self { waits, changed: Notify::new(), detached_requests }, receiver)
    }

    /// Counts one task more.
    pub(super) fn begin(&self) {
        self.waits.send_modify(|active| active.count += 1);
    }

    /// Counts one task less.
    pub(super) fn end(&self) {
        self.waits.send_modify(|active| active.count -= 1);
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.waits.borrow().count
    }
}

impl Session {
    /// Counts a request with a response as open, and forwards its progress, until the guard is
    /// dropped: its task continues at the server.
    pub(crate) fn hold_open(
        &self,
        id: u64,
        progress: Option<mpsc::Sender<Progress>>,
        call: CallContext<'_>,
    ) -> OpenTaskGuard {
        self.0.pending.hold_open(id, progress, self.0.pending_call(Some(call)));
        OpenTaskGuard { id, active: ActiveTaskGuard::new(self.0.clone()) }
    }

    /// Records a task that the application polls, for at most `lifetime`.
    pub(crate) fn detach_task(&self, task_id: &str, lifetime: Duration) {
        self.0.pending.detach_task(task_id, lifetime);
    }

    /// Records the end of a task that the application polls.
    pub(crate) fn end_task(&self, task_id: &str) {
        self.0.pending.end_task(task_id);
    }

    /// Queues a request whose response nobody waits for. Needs no runtime.
    pub(crate) fn send_detached(&self, request: DetachedRequest) {
        self.0.active_tasks.detached_requests.add(&self.0, request);
    }

    /// Ends all waits for tasks, so that the server is requested to cancel the tasks, and waits at
    /// most `limit` until the server has received the requests.
    pub(crate) async fn cancel_tasks(&self, limit: Duration) {
        let mut active = self.0.active_tasks.waits.subscribe();
        self.0.active_tasks.waits.send_modify(|active| active.cancelled = true);
        let _ = tokio::time::timeout(limit, active.wait_for(|active| active.count == 0)).await;
    }

    /// Waits until [`Self::cancel_tasks`] is called.
    pub(crate) async fn tasks_cancelled(&self) {
        // `self` holds the sender, so the wait cannot fail.
        let _ = self.0.active_tasks.waits.subscribe().wait_for(|active| active.cancelled).await;
    }

    /// Waits for the next notification of a changed task, counted from the first poll or from
    /// `enable`.
    pub(crate) fn task_changed(&self) -> Notified<'_> {
        self.0.active_tasks.changed.notified()
    }
}

/// A guard that counts a request with a response as open.
#[derive(Debug)]
pub(crate) struct OpenTaskGuard {
    pub(super) id: u64,
    pub(super) active: ActiveTaskGuard,
}

impl OpenTaskGuard {
    /// Records the id of the task, which messages of the server refer to.
    pub(crate) fn set_task_id(&self, task_id: &str) {
        self.active.session().pending.set_task_id(self.id, task_id);
    }
}

impl Drop for OpenTaskGuard {
    fn drop(&mut self) {
        self.active.session().pending.remove(self.id, None);
    }
}

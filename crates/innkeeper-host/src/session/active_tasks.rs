//! The tasks of a session that are polled or being cancelled, and the guards that count them.

use std::sync::Arc;

use super::SessionState;

/// The tasks that are polled or being cancelled.
#[derive(Debug, Default)]
pub(super) struct ActiveTasks {
    pub(super) count: usize,
    pub(super) cancelled: bool,
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
        self.active.0.pending.set_task_id(self.id, task_id);
    }
}

impl Drop for OpenTaskGuard {
    fn drop(&mut self) {
        self.active.0.pending.remove(self.id, None);
    }
}

/// A guard that counts one task of a session as active.
#[derive(Debug)]
pub(super) struct ActiveTaskGuard(Arc<SessionState>);

impl ActiveTaskGuard {
    pub(super) fn new(shared: Arc<SessionState>) -> Self {
        shared.active_tasks.send_modify(|active| active.count += 1);
        Self(shared)
    }

    pub(super) fn session(&self) -> &Arc<SessionState> {
        &self.0
    }
}

impl Drop for ActiveTaskGuard {
    fn drop(&mut self) {
        self.0.active_tasks.send_modify(|active| active.count -= 1);
    }
}

//! A guard that counts one task of a session as active.

use std::sync::Arc;

use super::SessionState;

/// Counts one task until it is dropped.
#[derive(Debug)]
pub(super) struct ActiveTaskGuard(Arc<SessionState>);

impl ActiveTaskGuard {
    pub(super) fn new(session: Arc<SessionState>) -> Self {
        session.active_tasks.begin();
        Self(session)
    }

    pub(super) fn session(&self) -> &Arc<SessionState> {
        &self.0
    }
}

impl Drop for ActiveTaskGuard {
    fn drop(&mut self) {
        self.0.active_tasks.end();
    }
}

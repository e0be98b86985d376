//! The tasks of a server in the test's runtime.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

/// The tasks of a server; none after the stop.
#[derive(Debug, Default)]
pub(crate) struct ServerTasks(Mutex<TaskState>);

#[derive(Debug, Default)]
struct TaskState {
    set: JoinSet<()>,
    stopped: bool,
}

impl ServerTasks {
    /// Runs `future` until its end or the stop.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.state();
        while state.set.try_join_next().is_some() {}
        if !state.stopped {
            let _ = state.set.spawn(future);
        }
    }

    /// Aborts every task and rejects new tasks.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        state.set.abort_all();
    }

    /// Waits for the end of every task.
    pub(crate) async fn join(&self) {
        let mut set = std::mem::take(&mut self.state().set);
        set.shutdown().await;
    }

    fn state(&self) -> MutexGuard<'_, TaskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

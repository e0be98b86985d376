//! The tasks of one server in a test's runtime: they end with it.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

/// What runs for a server; nothing once it was stopped.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    set: JoinSet<()>,
    stopped: bool,
}

impl Tasks {
    /// Runs `future` until it is done or the tasks are stopped.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.state();
        while state.set.try_join_next().is_some() {}
        if !state.stopped {
            drop(state.set.spawn(future));
        }
    }

    /// Ends every task where it waits, and lets none start any more.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        state.set.abort_all();
    }

    /// Waits until every task has ended.
    pub(crate) async fn ended(&self) {
        let mut set = std::mem::take(&mut self.state().set);
        set.shutdown().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

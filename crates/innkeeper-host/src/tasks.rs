//! The only place where a task is spawned: each one has an owner that waits for it or ends it.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

/// The background tasks of a host; they end when it is dropped or shut down.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    fn set(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `future` until it is done or the tasks are told to stop.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.set();
        // Those that have ended are forgotten here, so that the set holds what runs.
        while set.try_join_next().is_some() {}
        drop(set.spawn(future));
    }

    /// Ends all tasks where they wait; does not wait and needs no runtime.
    pub(crate) fn stop(&self) {
        self.set().abort_all();
    }

    /// Waits until every task has ended; the caller bounds the wait.
    pub(crate) async fn ended(&self) {
        let mut set = std::mem::take(&mut *self.set());
        while set.join_next().await.is_some() {}
    }
}

/// Tasks that run side by side and hand their results to one owner; dropping it ends them all.
#[derive(Debug)]
pub(crate) struct Group<T>(JoinSet<T>);

impl<T: Send + 'static> Group<T> {
    pub(crate) fn new() -> Self {
        Self(JoinSet::new())
    }

    /// Adds a task.
    pub(crate) fn spawn(&mut self, future: impl Future<Output = T> + Send + 'static) {
        drop(self.0.spawn(future));
    }

    /// The next result, in the order the tasks end; a panic in a task continues here.
    pub(crate) async fn next(&mut self) -> Option<T> {
        match self.0.join_next().await? {
            Ok(value) => Some(value),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => None,
            },
        }
    }
}

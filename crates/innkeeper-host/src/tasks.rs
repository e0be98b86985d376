//! The only place where a task is spawned: each one has an owner that waits for it or ends it.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::{AbortHandle, JoinSet};

/// The background tasks of a host; they end when it is dropped or shut down.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks(Arc<Mutex<Set>>);

#[derive(Debug, Default)]
struct Set {
    tasks: JoinSet<()>,
    /// Nothing is begun any more.
    stopped: bool,
}

impl Tasks {
    fn set(&self) -> MutexGuard<'_, Set> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `future` until it is done or the tasks are told to stop; not at all after that.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.set();
        if set.stopped {
            return;
        }
        // Those that have ended are forgotten here, so that the set holds what runs.
        while set.tasks.try_join_next().is_some() {}
        drop(set.tasks.spawn(future));
    }

    /// Ends all tasks where they wait; does not wait and needs no runtime.
    pub(crate) fn stop(&self) {
        let mut set = self.set();
        set.stopped = true;
        set.tasks.abort_all();
    }

    /// Waits until every task has ended; the caller bounds the wait.
    pub(crate) async fn ended(&self) {
        let mut tasks = std::mem::take(&mut self.set().tasks);
        while tasks.join_next().await.is_some() {}
    }
}

/// Does work that blocks, on a thread for that; `None` if it panicked. Dropping the future lets it go on.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// Tasks that run side by side and hand their results to one owner; dropping it ends them all.
#[derive(Debug)]
pub(crate) struct Group<T>(JoinSet<T>);

impl<T: Send + 'static> Group<T> {
    pub(crate) fn new() -> Self {
        Self(JoinSet::new())
    }

    /// Adds a task; the handle ends it.
    pub(crate) fn spawn(
        &mut self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> AbortHandle {
        self.0.spawn(future)
    }

    /// How many tasks there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The next result, in the order the tasks end; a panic in a task continues here. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<T> {
        loop {
            match self.0.join_next().await? {
                Ok(value) => return Some(value),
                Err(error) => {
                    if let Ok(panic) = error.try_into_panic() {
                        std::panic::resume_unwind(panic);
                    }
                }
            }
        }
    }
}

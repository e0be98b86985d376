//! The only place where a task is spawned: each one has an owner that waits for it or ends it.

use std::future::Future;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The background tasks of a host; they end when it is dropped or shut down.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Runs `future` until it is done or the tasks are told to stop.
    #[expect(clippy::disallowed_methods, reason = "the one spawn of the host's background work")]
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        let tracked = self.tracker.track_future(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = future => {}
            }
        });
        drop(tokio::spawn(tracked));
    }

    /// Tells all tasks to stop; does not wait and needs no runtime.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until every task has ended; the caller bounds the wait.
    pub(crate) async fn ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
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

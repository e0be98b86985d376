//! Spawns all tasks and threads; each has an owner that ends it.

use std::future::Future;

use tokio::runtime::{Handle, TryCurrentError};
use tokio::task::JoinSet;

/// A task that is aborted when the handle is dropped.
#[derive(Debug)]
pub(crate) struct OwnedTask {
    _running: JoinSet<()>,
}

impl OwnedTask {
    /// Spawns a task on the current runtime.
    ///
    /// # Errors
    ///
    /// The caller is outside of a Tokio runtime.
    pub(crate) fn spawn(
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Self, TryCurrentError> {
        let runtime = Handle::try_current()?;
        let mut running = JoinSet::new();
        running.spawn_on(future, &runtime);
        Ok(Self { _running: running })
    }
}

/// Starts a thread for blocking work. The thread must end when its owner closes the thread's input.
///
/// # Errors
///
/// The system cannot create a thread.
pub(crate) fn spawn_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

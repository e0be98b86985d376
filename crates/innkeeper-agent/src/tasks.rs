//! The only place where a task or a thread is begun: each has an owner that ends it.

use std::future::Future;

use tokio::runtime::{Handle, TryCurrentError};
use tokio::task::JoinSet;

/// One task; it ends where it waits when this is dropped.
#[derive(Debug)]
pub(crate) struct Task {
    _running: JoinSet<()>,
}

impl Task {
    /// Begins a task on the runtime this is called on.
    ///
    /// # Errors
    ///
    /// Without a runtime.
    pub(crate) fn begin(
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Self, TryCurrentError> {
        let runtime = Handle::try_current()?;
        let mut running = JoinSet::new();
        running.spawn_on(future, &runtime);
        Ok(Self { _running: running })
    }
}

/// Begins a thread for work that blocks. It has to end by itself when its owner is gone: what it
/// reads from is closed then.
///
/// # Errors
///
/// When the system gives no thread.
pub(crate) fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

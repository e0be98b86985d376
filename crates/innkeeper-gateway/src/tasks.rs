//! The only place that spawns a task; each task has an owner.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SetOnce};
use tokio::task::JoinSet;

use crate::principal::Principal;

/// The background tasks of a gateway. The tasks end when the last clone is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct GatewayTasks {
    running: Arc<Mutex<JoinSet<()>>>,
    /// Set when the gateway accepts no more requests.
    pub(crate) closing: Arc<SetOnce<()>>,
}

impl GatewayTasks {
    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `future` until its end or the end of its owner.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        // Remove finished tasks, so that the set contains only running tasks.
        while tasks.try_join_next().is_some() {}
        let _ = tasks.spawn(future);
    }

    /// Aborts all tasks at their next await.
    pub(crate) fn abort(&self) {
        self.tasks().abort_all();
    }

    /// Waits for the end of all tasks that run now.
    pub(crate) async fn join(&self) {
        let mut running = std::mem::take(&mut *self.tasks());
        while running.join_next().await.is_some() {}
    }
}

/// A task that is aborted when the handle is dropped.
#[derive(Debug)]
pub(crate) struct OwnedTask {
    _running: JoinSet<()>,
}

impl OwnedTask {
    /// Spawns a task on the current runtime.
    pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        let mut running = JoinSet::new();
        running.spawn(future);
        Self { _running: running }
    }
}

/// Maximum number of computations at one time: more do not finish earlier on a few processors.
const MAX_COMPUTATIONS: usize = 4;

/// Maximum number of computations of one principal that run or wait.
const MAX_OWN_COMPUTATIONS: usize = 16;

/// Runs computations that take too long for a thread of the runtime's tasks.
#[derive(Debug)]
pub(crate) struct Computations {
    permits: Arc<Semaphore>,
    /// The number of computations that run or wait, by principal.
    own: Arc<Mutex<HashMap<Principal, usize>>>,
}

/// The reason why a computation has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ComputationError {
    #[error("{MAX_OWN_COMPUTATIONS} searches of this client are not done yet: try again later")]
    TooMany,
    #[error("the gateway ended the search")]
    Ended,
}

impl Default for Computations {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(MAX_COMPUTATIONS)), own: Arc::default() }
    }
}

impl Computations {
    /// Runs a computation of bounded time when fewer than [`MAX_COMPUTATIONS`] run. Dropping the
    /// future does not end a computation that has started.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        principal: &Principal,
        computation: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ComputationError> {
        let own = OwnComputation::start(&self.own, principal)?;
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|_| ComputationError::Ended)?;
        let running = tokio::task::spawn_blocking(move || {
            let _counted = (permit, own);
            computation()
        });
        running.await.map_err(|_| ComputationError::Ended)
    }
}

/// A computation that runs or waits; dropping the value ends the count.
struct OwnComputation {
    own: Arc<Mutex<HashMap<Principal, usize>>>,
    principal: Principal,
}

impl OwnComputation {
    fn start(
        own: &Arc<Mutex<HashMap<Principal, usize>>>,
        principal: &Principal,
    ) -> Result<Self, ComputationError> {
        let mut counts = own.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(principal.clone()).or_default();
        if *count >= MAX_OWN_COMPUTATIONS {
            return Err(ComputationError::TooMany);
        }
        *count += 1;
        Ok(Self { own: own.clone(), principal: principal.clone() })
    }
}

impl Drop for OwnComputation {
    fn drop(&mut self) {
        let mut counts = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::sync::mpsc;
    use std::task::Poll;

    use super::*;

    async fn is_pending<F: Future>(mut future: Pin<&mut F>) -> bool {
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }

    /// Attack: remote | a client starts more searches than the gateway runs at one time | the others
    /// of the client fail, and a search of another client runs next | No unbounded wait
    #[tokio::test]
    async fn the_computations_of_one_principal_have_a_limit() {
        let computations = Computations::default();
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let (senders, mut running): (Vec<_>, Vec<_>) = (0..MAX_OWN_COMPUTATIONS)
            .map(|number| {
                let (sender, receiver) = mpsc::channel::<()>();
                (
                    sender,
                    Box::pin(
                        computations.run(&ada, move || receiver.recv().map_or(0, |()| number)),
                    ),
                )
            })
            .unzip();
        for future in &mut running {
            assert!(is_pending(future.as_mut()).await);
        }
        assert_eq!(computations.permits.available_permits(), 0);
        assert_eq!(computations.run(&ada, || 0).await, Err(ComputationError::TooMany));
        let other = computations.run(&bob, || 77);
        for sender in &senders {
            sender.send(()).unwrap();
        }
        for (number, future) in running.into_iter().enumerate() {
            assert_eq!(future.await, Ok(number));
        }
        assert_eq!(other.await, Ok(77));
        assert_eq!(computations.run(&ada, || 1).await, Ok(1));
        assert!(computations.own.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_computation_that_was_dropped_before_its_start_does_not_count() {
        let computations = Computations::default();
        let ada = Principal::new("ada");
        drop(computations.run(&ada, || 0));
        assert!(computations.own.lock().unwrap().is_empty());
        let held = computations.permits.clone().acquire_many_owned(4).await.unwrap();
        let mut waiting = Box::pin(computations.run(&ada, || 0));
        assert!(is_pending(waiting.as_mut()).await);
        assert_eq!(computations.own.lock().unwrap().len(), 1);
        drop((waiting, held));
        assert!(computations.own.lock().unwrap().is_empty());
    }
}

//! Turns of clients at a server whose requests cannot be tied to its calls.
//!
//! A request of the server must reach the client that it belongs to. Only one client at a time has
//! calls at such a server if the client answers requests, and only one of these calls runs: the
//! others wait for the input of the client.

mod limited_callback;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use innkeeper_host::Callback;
use tokio::sync::{
    Notify, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit, RwLock, Semaphore,
};

use crate::client::Client;
use crate::principal::Principal;
use limited_callback::LimitedCallback;

/// Time for the response of a client to a request of the server while calls of other clients wait for
/// the turn: enough for a short form.
pub(crate) const MAX_ANSWER_TIME_WHILE_AWAITED: Duration = Duration::from_mins(1);

/// The client of a turn. All requests of a principal without a connection or session are of one
/// client.
#[derive(Clone, Debug)]
pub(crate) struct TurnClient {
    principal: Principal,
    client: Option<Arc<Client>>,
}

impl TurnClient {
    pub(crate) fn new(principal: Principal, client: Option<Arc<Client>>) -> Self {
        Self { principal, client }
    }
}

impl PartialEq for TurnClient {
    fn eq(&self, other: &Self) -> bool {
        let same_client = match (&self.client, &other.client) {
            (Some(client), Some(other)) => Arc::ptr_eq(client, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        same_client && self.principal == other.principal
    }
}

/// The turns at one server.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Held for writing by the client that answers requests, and for reading by the calls of clients
    /// that do not.
    lock: Arc<RwLock<()>>,
    /// The number of calls that wait for the lock.
    waiting: Arc<AtomicUsize>,
    /// Wakes the calls that joined a turn and do not run yet.
    other_waits: Notify,
    /// Only one call of each principal waits for the lock, so that principals take turns; its other
    /// calls wait for their gate.
    gates: Mutex<HashMap<Principal, Arc<tokio::sync::Mutex<()>>>>,
    exclusive: Mutex<Weak<ExclusiveTurn>>,
}

/// The turn of a client that answers requests.
#[derive(Debug)]
struct ExclusiveTurn {
    client: TurnClient,
    _guard: OwnedRwLockWriteGuard<()>,
    running: Arc<Semaphore>,
    /// The callback of the running call.
    callback: Mutex<Option<Arc<dyn Callback>>>,
}

impl ExclusiveTurn {
    fn callback(&self) -> MutexGuard<'_, Option<Arc<dyn Callback>>> {
        self.callback.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of one call.
#[derive(Debug)]
pub(crate) enum Turn {
    #[expect(dead_code, reason = "the turn ends when the guard is dropped")]
    Shared(OwnedRwLockReadGuard<()>),
    Exclusive(RunningCall),
}

impl Turns {
    /// Waits for the turn of a call. `callback` receives the requests of the server for the call.
    /// The wait ends with the caller's future.
    pub(crate) async fn wait(
        &self,
        client: TurnClient,
        answers_requests: bool,
        callback: Option<Arc<dyn Callback>>,
    ) -> Turn {
        loop {
            let mut other_waits = pin!(self.other_waits.notified());
            other_waits.as_mut().enable();
            let Some(turn) = self.joinable(&client) else { break };
            tokio::select! {
                biased;
                // The turn ends after the running call.
                () = other_waits => {}
                call = RunningCall::start(turn, callback.clone()) => return Turn::Exclusive(call),
            }
        }
        let waiting = Waiting::new(&self.waiting);
        self.other_waits.notify_waiters();
        let lock = self.lock.clone();
        let gate = Gate::new(self, &client.principal);
        let first_of_principal = gate.gate.lock().await;
        if !answers_requests {
            return Turn::Shared(lock.read_owned().await);
        }
        let guard = lock.write_owned().await;
        drop(first_of_principal);
        drop((gate, waiting));
        let turn = Arc::new(ExclusiveTurn {
            client,
            _guard: guard,
            running: Arc::new(Semaphore::new(1)),
            callback: Mutex::default(),
        });
        *self.exclusive() = Arc::downgrade(&turn);
        Turn::Exclusive(RunningCall::start(turn, callback).await)
    }

    /// Returns a callback for a call at the server: the client has [`MAX_ANSWER_TIME_WHILE_AWAITED`]
    /// for each request of the server, and more time only while no call waits.
    pub(crate) fn limited(&self, callback: Arc<dyn Callback>) -> Arc<dyn Callback> {
        Arc::new(LimitedCallback { callback, waiting: self.waiting.clone() })
    }

    /// Returns whether calls wait for the end of a turn.
    pub(crate) fn are_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn gates(&self) -> MutexGuard<'_, HashMap<Principal, Arc<tokio::sync::Mutex<()>>>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> MutexGuard<'_, Weak<ExclusiveTurn>> {
        self.exclusive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the turn that the client has, if no other call waits for its end.
    fn joinable(&self, client: &TurnClient) -> Option<Arc<ExclusiveTurn>> {
        let turn = self.exclusive().upgrade()?;
        (!self.are_awaited() && turn.client == *client).then_some(turn)
    }

    /// Returns the callback of the running call of the client whose turn it is, if `is_possible` for
    /// the principal.
    pub(crate) fn callback(
        &self,
        is_possible: impl FnOnce(&Principal) -> bool,
    ) -> Option<Arc<dyn Callback>> {
        let turn = self.exclusive().upgrade().filter(|turn| is_possible(&turn.client.principal))?;
        turn.callback().clone()
    }
}

/// Counts a waiting call until the guard is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The gate of a principal, which exists as long as a call uses it.
struct Gate<'a> {
    turns: &'a Turns,
    principal: Principal,
    gate: Arc<tokio::sync::Mutex<()>>,
}

impl<'a> Gate<'a> {
    fn new(turns: &'a Turns, principal: &Principal) -> Self {
        let gate = turns.gates().entry(principal.clone()).or_default().clone();
        Self { turns, principal: principal.clone(), gate }
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        let mut gates = self.turns.gates();
        // The table and this value have it.
        if Arc::strong_count(&self.gate) <= 2 {
            gates.remove(&self.principal);
        }
    }
}

/// A call within the turn of its client. The call keeps the turn while it waits for input.
#[derive(Debug)]
pub(crate) struct RunningCall {
    turn: Arc<ExclusiveTurn>,
    callback: Option<Arc<dyn Callback>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl RunningCall {
    async fn start(turn: Arc<ExclusiveTurn>, callback: Option<Arc<dyn Callback>>) -> Self {
        let mut call = Self { turn, callback, permit: None };
        call.resume().await;
        call
    }

    /// Lets other calls of the client run.
    fn pause(&mut self) {
        if self.permit.is_some() {
            *self.turn.callback() = None;
            self.permit = None;
        }
    }

    /// Waits until no other call of the client runs.
    async fn resume(&mut self) {
        if self.permit.is_none() {
            // The semaphore is never closed.
            self.permit = self.turn.running.clone().acquire_owned().await.ok();
            self.turn.callback().clone_from(&self.callback);
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.pause();
    }
}

/// The turn of a call that can be parked, once the call has its turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParkableTurn(Arc<Mutex<Option<Turn>>>);

impl ParkableTurn {
    fn cell(&self) -> MutexGuard<'_, Option<Turn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, turn: Option<Turn>) {
        *self.cell() = turn;
    }

    /// Lets other calls of the client run while this call waits for input.
    pub(crate) fn pause(&self) {
        if let Some(Turn::Exclusive(call)) = &mut *self.cell() {
            call.pause();
        }
    }

    /// Waits until no other call of the client runs.
    pub(crate) async fn resume(&self) {
        let turn = self.cell().take();
        let turn = match turn {
            Some(Turn::Exclusive(mut call)) => {
                call.resume().await;
                Some(Turn::Exclusive(call))
            }
            other => other,
        };
        self.set(turn);
    }
}

#[cfg(test)]
mod tests;

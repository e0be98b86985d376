//! How the clients of a host share one server.

mod open_tasks;
mod subscriptions;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_host::CallHold;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, SetOnce};
use tokio::time::Instant;

use crate::error::RpcError;
use crate::question_owners::QuestionOwners;
use subscriptions::ResourceSubscriptions;

pub(crate) use open_tasks::{MAX_OPEN_TASKS, OpenTask, OpenTasks, TaskHold};

/// Keeps the gateway from stopping a running server.
pub(crate) type RunningProcess = Arc<OwnedRwLockReadGuard<ProcessState>>;

/// A start in progress, with its outcome for all requests that wait for it.
pub(crate) type StartCell = Arc<SetOnce<Result<RunningProcess, RpcError>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    Running,
    /// The gateway stopped the server, or has not started it: its next use starts it.
    Stopped,
}

/// The use of one server, which stays the same when the server restarts.
#[derive(Debug)]
pub(crate) struct ServerUse {
    pub(crate) question_owners: Arc<QuestionOwners>,
    pub(crate) open_tasks: OpenTasks,
    pub(crate) subscriptions: ResourceSubscriptions,
    /// Held for reading by each use, and for writing during a stop or a start. `None` for a server
    /// that the gateway neither starts nor stops.
    process: Option<Arc<RwLock<ProcessState>>>,
    is_stoppable: bool,
    start: Mutex<Option<StartCell>>,
    last_used: Mutex<Instant>,
    /// How often the gateway stopped the server because of its memory.
    memory_stops: AtomicUsize,
}

impl ServerUse {
    /// Creates the use of a server that its host starts. `is_stoppable` is whether the gateway may stop
    /// the server while nobody uses it.
    pub(crate) fn new(is_stoppable: bool) -> Self {
        Self::with_process(is_stoppable.then_some(ProcessState::Running), is_stoppable)
    }

    /// Creates the use of a server that its first use starts.
    pub(crate) fn unstarted(is_stoppable: bool) -> Self {
        Self::with_process(Some(ProcessState::Stopped), is_stoppable)
    }

    fn with_process(process: Option<ProcessState>, is_stoppable: bool) -> Self {
        Self {
            question_owners: Arc::default(),
            open_tasks: OpenTasks::default(),
            subscriptions: ResourceSubscriptions::default(),
            process: process.map(|process| Arc::new(RwLock::new(process))),
            is_stoppable,
            start: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
            memory_stops: AtomicUsize::new(0),
        }
    }

    /// Returns the start in progress; `None` in place of the turn if another request began it. The
    /// outcome reaches all requests that wait, however many of them leave.
    pub(crate) fn join_start(self: &Arc<Self>) -> (StartCell, Option<StartingServer>) {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = &*start {
            return (cell.clone(), None);
        }
        let cell = StartCell::default();
        *start = Some(cell.clone());
        (cell.clone(), Some(StartingServer { server_use: self.clone(), cell }))
    }

    /// Returns the state of the process, for a server that the gateway starts or stops.
    pub(crate) fn process(&self) -> Option<&Arc<RwLock<ProcessState>>> {
        self.process.as_ref()
    }

    /// Returns a hold for a task that a call in flight created.
    pub(crate) fn hold(&self, host_use: Arc<()>, call: Option<Arc<dyn CallHold>>) -> TaskHold {
        // A stop that waits for the end of the call ends the task, too.
        let process = self.process.clone().and_then(|process| process.try_read_owned().ok());
        TaskHold { _process: process, _host_use: host_use, _call: call }
    }

    /// Ends the hold of a task whose client needs the server no more. The server counts as used now.
    pub(crate) fn release_task(&self, id: &str) {
        self.open_tasks.remove(id);
        self.touch();
    }

    fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns the process for a stop, if nobody uses the server, no resource has a subscriber, and no
    /// task is open.
    pub(crate) fn take_unused(&self) -> Option<OwnedRwLockWriteGuard<ProcessState>> {
        self.open_tasks.remove_expired();
        let guard = self.process.clone().filter(|_| self.is_stoppable)?.try_write_owned().ok()?;
        (self.subscriptions.is_empty() && *guard == ProcessState::Running).then_some(guard)
    }

    /// Returns the time of the end of the last use.
    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the server stops because of its memory, although calls are in flight.
    pub(crate) fn count_memory_stop(&self) {
        self.memory_stops.fetch_add(1, Ordering::Relaxed);
    }
}

/// The only start of a server. Dropping the value without an outcome fails the requests that wait.
#[derive(Debug)]
pub(crate) struct StartingServer {
    server_use: Arc<ServerUse>,
    cell: StartCell,
}

impl StartingServer {
    /// Ends the start for all requests that wait.
    pub(crate) fn finish(self, outcome: Result<RunningProcess, RpcError>) {
        self.set(outcome);
    }

    fn set(&self, outcome: Result<RunningProcess, RpcError>) {
        // Only this value sets the cell, the first time.
        let _ = self.cell.set(outcome);
        *self.server_use.start.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for StartingServer {
    fn drop(&mut self) {
        if !self.cell.initialized() {
            self.set(Err(RpcError::closing()));
        }
    }
}

/// A use of a running server: the gateway does not stop the server until the value and its clones are
/// dropped.
#[derive(Clone, Debug)]
pub(crate) struct InUse {
    server_use: Arc<ServerUse>,
    process: Option<RunningProcess>,
    /// The number of stops because of memory at the start of the use.
    memory_stops: usize,
    /// Counts the uses of all servers of a host.
    _host_use: Arc<()>,
}

impl InUse {
    pub(crate) fn new(
        server_use: Arc<ServerUse>,
        process: Option<RunningProcess>,
        host_use: Arc<()>,
    ) -> Self {
        let memory_stops = server_use.memory_stops.load(Ordering::Relaxed);
        Self { server_use, process, memory_stops, _host_use: host_use }
    }

    pub(crate) fn is_of(&self, server_use: &Arc<ServerUse>) -> bool {
        Arc::ptr_eq(&self.server_use, server_use)
    }

    /// Returns whether the gateway stopped the server during the use because of its memory.
    pub(crate) fn is_stopped_for_memory(&self) -> bool {
        self.server_use.memory_stops.load(Ordering::Relaxed) != self.memory_stops
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.server_use.touch();
        }
    }
}

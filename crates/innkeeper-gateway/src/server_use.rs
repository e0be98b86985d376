//! How the clients of a host share one server.

mod open_tasks;
mod subscriptions;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_host::CallHold;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::time::Instant;

use crate::question_owners::QuestionOwners;

pub(crate) use open_tasks::{MAX_OPEN_TASKS, OpenTask, OpenTasks, TaskHold};
use subscriptions::ResourceSubscriptions;

/// Whether the gateway stopped a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProcessState {
    #[default]
    Running,
    Stopped,
}

/// The use of one server, which stays the same when the server restarts.
#[derive(Debug)]
pub(crate) struct ServerUse {
    pub(crate) question_owners: Arc<QuestionOwners>,
    pub(crate) open_tasks: OpenTasks,
    pub(crate) subscriptions: ResourceSubscriptions,
    /// Held for reading by each use, and for writing during a stop or a start. `None` for a server
    /// that the gateway never stops.
    process: Option<Arc<RwLock<ProcessState>>>,
    last_used: Mutex<Instant>,
    /// How often the gateway stopped the server because of its memory.
    memory_stops: AtomicUsize,
}

impl ServerUse {
    pub(crate) fn new(is_stoppable: bool) -> Self {
        Self {
            question_owners: Arc::default(),
            open_tasks: OpenTasks::default(),
            subscriptions: ResourceSubscriptions::default(),
            process: is_stoppable.then(Arc::default),
            last_used: Mutex::new(Instant::now()),
            memory_stops: AtomicUsize::new(0),
        }
    }

    /// Returns the state of the process, for a server that the gateway may stop.
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
        let guard = self.process.clone()?.try_write_owned().ok()?;
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

/// A use of a running server: the gateway does not stop the server until the value is dropped.
#[derive(Debug)]
pub(crate) struct InUse {
    server_use: Arc<ServerUse>,
    process: Option<OwnedRwLockReadGuard<ProcessState>>,
    /// The number of stops because of memory at the start of the use.
    memory_stops: usize,
    /// Counts the uses of all servers of a host.
    _host_use: Arc<()>,
}

impl InUse {
    pub(crate) fn new(
        server_use: Arc<ServerUse>,
        process: Option<OwnedRwLockReadGuard<ProcessState>>,
        host_use: Arc<()>,
    ) -> Self {
        let memory_stops = server_use.memory_stops.load(Ordering::Relaxed);
        Self { server_use, process, memory_stops, _host_use: host_use }
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

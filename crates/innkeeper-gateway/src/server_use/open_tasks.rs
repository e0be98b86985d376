//! The tasks at one server that may still run.
//!
//! The gateway does not stop the server while it has such a task, and sends the notifications about
//! the task to the client that created it. Each task has a maximum time here, and may run on after it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use innkeeper_host::CallHold;
use tokio::sync::OwnedRwLockReadGuard;
use tokio::time::Instant;

use super::ProcessState;
use crate::client::Client;
use crate::principal::Principal;
use crate::quota::Reservation;
use crate::task_ids::TaskIdPair;

/// Maximum number of open tasks of all clients.
pub(crate) const MAX_OPEN_TASKS: usize = 1_024;

/// Maximum time for which an open task keeps its server from stopping.
const MAX_OPEN_TIME: Duration = Duration::from_hours(1);

/// Time for the client to read the result of a task that has ended.
const RESULT_TIME: Duration = Duration::from_mins(5);

/// Keeps a server and its host from stopping.
#[derive(Debug)]
pub(crate) struct TaskHold {
    pub(super) _process: Option<OwnedRwLockReadGuard<ProcessState>>,
    pub(super) _host_use: Arc<()>,
    /// The call that created the task: a request of the server may belong to the task.
    pub(super) _call: Option<Arc<dyn CallHold>>,
}

/// A task that may still run.
#[derive(Debug)]
pub(crate) struct OpenTask {
    pub(crate) ids: TaskIdPair,
    pub(crate) principal: Principal,
    /// The connection or session that created the task, if there was one.
    pub(crate) client: Weak<Client>,
    connection: Option<u64>,
    expires: Instant,
    _counted: Reservation,
    _hold: TaskHold,
}

impl OpenTask {
    /// Creates a task with the lifetime that the server reports.
    pub(crate) fn new(
        ids: TaskIdPair,
        principal: Principal,
        client: Weak<Client>,
        connection: Option<u64>,
        lifetime: Option<Duration>,
        counted: Reservation,
        hold: TaskHold,
    ) -> Self {
        let expires = Instant::now() + lifetime.unwrap_or(MAX_OPEN_TIME).min(MAX_OPEN_TIME);
        Self { ids, principal, client, connection, expires, _counted: counted, _hold: hold }
    }
}

/// The open tasks of one server, by the ids of the server.
#[derive(Debug, Default)]
pub(crate) struct OpenTasks(Mutex<HashMap<String, OpenTask>>);

impl OpenTasks {
    fn tasks(&self) -> MutexGuard<'_, HashMap<String, OpenTask>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task. A server that gives one id to several principals has no notifications about it.
    pub(crate) fn add(&self, mut task: OpenTask) {
        let mut tasks = self.tasks();
        let earlier = tasks.get(&task.ids.of_server);
        if earlier.is_some_and(|earlier| earlier.principal != task.principal) {
            task.client = Weak::new();
        }
        tasks.insert(task.ids.of_server.clone(), task);
    }

    pub(crate) fn find(&self, id: &str) -> Option<(TaskIdPair, Option<Arc<Client>>)> {
        let tasks = self.tasks();
        let task = tasks.get(id)?;
        Some((task.ids.clone(), task.client.upgrade()))
    }

    /// Removes a task whose client needs the server no more.
    pub(crate) fn remove(&self, id: &str) {
        self.tasks().remove(id);
    }

    /// Records that a task has ended, and that its client may still read the result.
    pub(crate) fn end(&self, id: &str) {
        if let Some(task) = self.tasks().get_mut(id) {
            task.expires = task.expires.min(Instant::now() + RESULT_TIME);
        }
    }

    /// Removes all tasks of a server that has ended.
    pub(crate) fn clear(&self) {
        self.tasks().clear();
    }

    /// Removes the tasks whose time is over.
    pub(crate) fn remove_expired(&self) {
        let now = Instant::now();
        self.tasks().retain(|_, task| task.expires > now);
    }

    /// Removes the tasks of an earlier process of the server.
    pub(crate) fn remove_lost(&self, connection: Option<u64>) {
        self.tasks().retain(|_, task| task.connection == connection);
    }
}

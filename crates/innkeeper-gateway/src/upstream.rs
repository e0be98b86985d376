//! A host behind the gateway, with the servers that the gateway stopped.

mod dormant;
mod servers;
mod users;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_host::{Host, ServerState, ShutdownReport};

use self::dormant::DormantServers;
use self::servers::HostServers;
use self::users::HostUsers;
use crate::principal::Principal;
use crate::quota::Reservation;

pub(crate) use self::dormant::StoppedServers;

/// The number of the next host.
static NEXT_HOST: AtomicU64 = AtomicU64::new(1);

/// A host with its servers in use.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// A number that no other host of the process has.
    pub(crate) number: u64,
    pub(crate) host: Host,
    /// The hosts whose servers more clients share: servers of this host may depend on them.
    pub(crate) wider: Vec<Arc<Self>>,
    pub(crate) servers: HostServers,
    pub(crate) dormant: DormantServers,
    pub(crate) users: HostUsers,
    processes: Mutex<HashMap<Arc<str>, Reservation>>,
    /// Whether another replica can continue with the remote sessions of the host.
    can_move: AtomicBool,
}

impl Upstream {
    /// Creates the host of all clients, whose servers run.
    pub(crate) fn new(
        host: Host,
        stoppable: Arc<HashSet<String>>,
        processes: HashMap<Arc<str>, Reservation>,
    ) -> Self {
        let names: Vec<Arc<str>> = host.status().into_keys().collect();
        let upstream = Self {
            number: NEXT_HOST.fetch_add(1, Ordering::Relaxed),
            host,
            wider: Vec::new(),
            servers: HostServers::new(names, stoppable, false),
            dormant: DormantServers::default(),
            users: HostUsers::new(Principal::local_user()),
            processes: Mutex::new(processes),
            can_move: AtomicBool::new(false),
        };
        for name in &*upstream.servers.names() {
            upstream.remember(name);
        }
        upstream
    }

    /// Creates a host whose servers start at their first use.
    pub(crate) fn unstarted(
        host: Host,
        owner: Principal,
        wider: Vec<Arc<Self>>,
        stoppable: Arc<HashSet<String>>,
    ) -> Self {
        let names: Vec<Arc<str>> = host.status().into_keys().collect();
        Self {
            number: NEXT_HOST.fetch_add(1, Ordering::Relaxed),
            host,
            dormant: DormantServers::unstarted(&names),
            servers: HostServers::new(names, stoppable, !wider.is_empty()),
            wider,
            users: HostUsers::new(owner),
            processes: Mutex::default(),
            can_move: AtomicBool::new(false),
        }
    }

    /// Remembers the definitions of a ready server that the gateway may stop.
    pub(crate) fn remember(&self, name: &Arc<str>) {
        if self.servers.is_stoppable(name)
            && let Some(catalog) = self.host.catalog().only(name)
        {
            self.dormant.remember(name, catalog);
        }
    }

    /// Keeps the definitions of a server that is about to stop, or that ended. Returns whether the
    /// server was ready.
    pub(crate) fn keep_definitions(&self, name: &Arc<str>) -> bool {
        self.remember(name);
        self.dormant.keep_definitions(name)
    }

    /// Removes the open tasks whose time is over, and those of servers that have ended.
    pub(crate) fn remove_ended_tasks(&self) {
        for (name, server_use) in &*self.servers.uses() {
            server_use.open_tasks.remove_expired();
            server_use.open_tasks.remove_lost(self.connection_number(name));
        }
    }

    /// Returns the number of the connection to a server that is ready.
    pub(crate) fn connection_number(&self, server: &str) -> Option<u64> {
        self.host.catalog().server(server)?.connection_number()
    }

    /// Reads the names of the servers again, after a reload of the host. The definitions of removed
    /// servers are forgotten.
    pub(crate) fn read_names(&self) {
        self.servers.set_names(self.host.status().into_keys().collect());
        for name in self.dormant.stopped().keys().filter(|name| !self.servers.contains(name)) {
            self.dormant.forget_definitions(name);
        }
    }

    /// Records whether Redis has the remote sessions of the host, for another replica.
    pub(crate) fn set_can_move(&self, can_move: bool) {
        self.can_move.store(can_move, Ordering::Release);
    }

    /// Leaves the remote sessions to another replica, if Redis has them: the host does not end them at
    /// their servers.
    pub(crate) fn leave_remote_sessions(&self) {
        if self.can_move.load(Ordering::Acquire) {
            self.host.hand_over_remote_sessions();
        }
    }

    /// Returns the place of a server in its configuration: hosts that more clients share come first.
    pub(crate) fn position(&self, name: &str) -> (usize, usize) {
        (self.wider.len(), self.servers.position(name).unwrap_or(usize::MAX))
    }

    /// Returns the reservations of the processes, by server.
    pub(crate) fn processes(&self) -> MutexGuard<'_, HashMap<Arc<str>, Reservation>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shuts the host down. Another call waits for the same end.
    pub(crate) async fn shut_down(&self) -> ShutdownReport {
        let report = self.host.shutdown().await;
        self.processes().clear();
        report
    }

    /// Releases the reservations of servers that ended by themselves. Returns whether there were any.
    pub(crate) fn release_ended(&self) -> bool {
        let status = self.host.status();
        let mut processes = self.processes();
        let before = processes.len();
        processes.retain(|name, _| {
            // A reload can have removed the server.
            status.get(name).is_some_and(|server| {
                server.pid.is_some()
                    || !matches!(server.state, ServerState::Unavailable | ServerState::Shutdown)
            })
        });
        processes.len() < before
    }
}

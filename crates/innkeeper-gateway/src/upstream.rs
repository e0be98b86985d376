//! A host behind the gateway, with the servers that the gateway stopped.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use innkeeper_host::{Catalog, Host, ServerState, ShutdownReport};
use tokio::time::Instant;

use crate::principal::Principal;
use crate::quota::Reservation;
use crate::server_use::ServerUse;

/// The definitions of the servers that the gateway stopped, by name: clients still see them.
pub(crate) type StoppedServers = HashMap<Arc<str>, Arc<Catalog>>;

/// The servers that never started, with whether a start failed.
pub(crate) type UnstartedServers = HashMap<Arc<str>, bool>;

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
    /// The principal whose share the processes use: the local user for servers that several principals
    /// share.
    pub(crate) owner: Principal,
    /// The names of all servers, in the order of the configuration.
    names: ArcSwap<Vec<Arc<str>>>,
    /// The servers that the gateway may stop.
    stoppable: ArcSwap<HashSet<String>>,
    uses: Mutex<HashMap<Box<str>, Arc<ServerUse>>>,
    stopped: ArcSwap<StoppedServers>,
    unstarted: ArcSwap<UnstartedServers>,
    /// The servers that never ended after they had started.
    first_starts: Mutex<HashSet<Arc<str>>>,
    /// The last definitions of the servers that the gateway may stop: a server that ends by itself
    /// leaves the catalog before the gateway knows.
    last: Mutex<StoppedServers>,
    /// A reservation for each process.
    processes: Mutex<HashMap<Arc<str>, Reservation>>,
    /// Each use of a server has a clone.
    use_count: Arc<()>,
    /// The principal of the first client.
    principal: OnceLock<Principal>,
    has_several_principals: AtomicBool,
    /// Whether another replica can continue with the remote sessions of the host.
    can_move: AtomicBool,
    pub(crate) started: Instant,
}

impl Upstream {
    /// Creates the host of all clients, whose servers run.
    pub(crate) fn new(
        host: Host,
        stoppable: Arc<HashSet<String>>,
        processes: HashMap<Arc<str>, Reservation>,
    ) -> Self {
        let owner = Principal::local_user();
        let upstream = Self::with_processes(host, owner, Vec::new(), stoppable, processes);
        for name in &**upstream.names.load() {
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
        let upstream = Self::with_processes(host, owner, wider, stoppable, HashMap::new());
        let names = upstream.names();
        let unstarted = names.iter().map(|name| (name.clone(), false)).collect();
        upstream.unstarted.store(Arc::new(unstarted));
        upstream.first_starts().extend(names.iter().cloned());
        upstream
    }

    fn with_processes(
        host: Host,
        owner: Principal,
        wider: Vec<Arc<Self>>,
        stoppable: Arc<HashSet<String>>,
        processes: HashMap<Arc<str>, Reservation>,
    ) -> Self {
        let names = host.status().into_keys().collect();
        Self {
            number: NEXT_HOST.fetch_add(1, Ordering::Relaxed),
            host,
            wider,
            owner,
            names: ArcSwap::from_pointee(names),
            stoppable: ArcSwap::new(stoppable),
            uses: Mutex::default(),
            stopped: ArcSwap::default(),
            unstarted: ArcSwap::default(),
            first_starts: Mutex::default(),
            last: Mutex::default(),
            processes: Mutex::new(processes),
            use_count: Arc::default(),
            principal: OnceLock::new(),
            has_several_principals: AtomicBool::new(false),
            can_move: AtomicBool::new(false),
            started: Instant::now(),
        }
    }

    /// Remembers the definitions of a ready server that the gateway may stop.
    pub(crate) fn remember(&self, name: &Arc<str>) {
        if self.stoppable.load().contains(&**name)
            && let Some(catalog) = self.host.catalog().only(name)
        {
            self.last().insert(name.clone(), Arc::new(catalog));
        }
    }

    fn last(&self) -> MutexGuard<'_, StoppedServers> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the use of a server, which stays the same when the server restarts.
    pub(crate) fn server_use(&self, name: &str) -> Arc<ServerUse> {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.entry(name.into())
            .or_insert_with(|| {
                let is_stoppable = self.stoppable.load().contains(name);
                Arc::new(match self.starts_on_use() {
                    true => ServerUse::unstarted(is_stoppable),
                    false => ServerUse::new(is_stoppable),
                })
            })
            .clone()
    }

    /// Removes the open tasks whose time is over, and those of servers that have ended.
    pub(crate) fn remove_ended_tasks(&self) {
        for (name, server_use) in &*self.uses.lock().unwrap_or_else(PoisonError::into_inner) {
            server_use.open_tasks.remove_expired();
            server_use.open_tasks.remove_lost(self.connection_number(name));
        }
    }

    /// Returns the number of the connection to a server that is ready.
    pub(crate) fn connection_number(&self, server: &str) -> Option<u64> {
        self.host.catalog().server(server)?.connection_number()
    }

    /// Returns the names of all servers, in the order of the configuration.
    pub(crate) fn names(&self) -> Arc<Vec<Arc<str>>> {
        self.names.load_full()
    }

    /// Reads the names of the servers again, after a reload of the host. The definitions of removed
    /// servers are forgotten.
    pub(crate) fn read_names(&self) {
        let names: Vec<Arc<str>> = self.host.status().into_keys().collect();
        self.names.store(Arc::new(names));
        for name in self.stopped().keys().filter(|name| !self.has_server(name)) {
            self.forget_definitions(name);
        }
    }

    /// Sets the servers that the gateway may stop, of which the later ones are not in use yet.
    pub(crate) fn set_stoppable(&self, stoppable: Arc<HashSet<String>>) {
        self.stoppable.store(stoppable);
    }

    /// Returns whether a server belongs to the host.
    pub(crate) fn has_server(&self, name: &str) -> bool {
        self.names.load().iter().any(|known| **known == *name)
    }

    /// Records that a client of a principal uses the host.
    pub(crate) fn record_principal(&self, principal: &Principal) {
        if self.principal.get_or_init(|| principal.clone()) != principal {
            self.has_several_principals.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether clients of several principals used the host.
    pub(crate) fn has_several_principals(&self) -> bool {
        self.has_several_principals.load(Ordering::Relaxed)
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
        let index = self.names.load().iter().position(|known| **known == *name);
        (self.wider.len(), index.unwrap_or(usize::MAX))
    }

    /// Returns the servers that the gateway stopped.
    pub(crate) fn stopped(&self) -> Arc<StoppedServers> {
        self.stopped.load_full()
    }

    /// Returns whether the gateway stopped a server.
    pub(crate) fn is_stopped(&self, name: &str) -> bool {
        self.stopped.load().contains_key(name)
    }

    /// Returns whether the first use of each server starts it.
    fn starts_on_use(&self) -> bool {
        !self.wider.is_empty()
    }

    fn first_starts(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.first_starts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a server that its first use starts has not ended since.
    pub(crate) fn is_first_start(&self, name: &str) -> bool {
        self.first_starts().contains(name)
    }

    /// Records the end of a server, or of any server.
    pub(crate) fn record_end(&self, name: Option<&str>) {
        self.first_starts().retain(|known| name.is_some_and(|name| **known != *name));
    }

    /// Returns whether a server never started.
    pub(crate) fn is_unstarted(&self, name: &str) -> bool {
        self.unstarted.load().contains_key(name)
    }

    /// Returns whether a server never started although a use started it.
    pub(crate) fn has_failed(&self, name: &str) -> bool {
        self.unstarted.load().get(name) == Some(&true)
    }

    /// Records the first start of a server, or that it failed.
    pub(crate) fn record_start(&self, name: &Arc<str>, is_ready: bool) {
        if !self.is_unstarted(name) {
            return;
        }
        self.unstarted.rcu(|unstarted| {
            let mut unstarted = UnstartedServers::clone(unstarted);
            if is_ready {
                unstarted.remove(name);
            } else {
                unstarted.insert(name.clone(), true);
            }
            unstarted
        });
    }

    /// Keeps the definitions of a server that is about to stop, or that ended. Returns whether the
    /// server was ready.
    pub(crate) fn keep_definitions(&self, name: &Arc<str>) -> bool {
        self.remember(name);
        let Some(catalog) = self.last().get(name).cloned() else { return false };
        self.stopped.rcu(|stopped| {
            let mut stopped = StoppedServers::clone(stopped);
            stopped.insert(name.clone(), catalog.clone());
            stopped
        });
        true
    }

    /// Forgets the definitions of a server that is ready again.
    pub(crate) fn forget_definitions(&self, name: &str) {
        self.stopped.rcu(|stopped| {
            let mut stopped = StoppedServers::clone(stopped);
            stopped.remove(name);
            stopped
        });
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
        let has_ended = |name: &Arc<str>| {
            // A reload can have removed the server.
            status.get(name).is_none_or(|server| {
                server.pid.is_none()
                    && matches!(server.state, ServerState::Unavailable | ServerState::Shutdown)
            })
        };
        let mut processes = self.processes();
        let before = processes.len();
        processes.retain(|name, _| !has_ended(name));
        processes.len() < before
    }

    /// Returns a token that counts as a use of the host.
    pub(crate) fn host_use(&self) -> Arc<()> {
        self.use_count.clone()
    }

    /// Returns whether a call runs or waits for input of its client.
    pub(crate) fn is_used(&self) -> bool {
        Arc::strong_count(&self.use_count) > 1
    }
}

//! Starts servers at their use, and stops those that nobody uses.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use innkeeper_host::error::RestartError;
use innkeeper_host::{ProcessTable, ServerState};
use tokio::sync::OwnedRwLockWriteGuard;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use super::Servers;
use super::settings::ServerSettings;
use super::sharing::ViewKey;
use crate::error::RpcError;
use crate::offering::OfferedServer;
use crate::principal::Principal;
use crate::process_limits::ProcessLimitExceeded;
use crate::quota::Reservation;
use crate::server_use::{InUse, ProcessState, RunningProcess, ServerUse};
use crate::upstream::Upstream;

/// Maximum interval of the search for idle servers.
const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum interval of the search for idle servers.
const MIN_INTERVAL: Duration = Duration::from_millis(20);

/// Time for the processes of a server that closed its output to end.
const EXIT_TIME: Duration = Duration::from_secs(2);

/// A server that nobody uses, taken for its stop.
struct UnusedServer {
    upstream: Arc<Upstream>,
    name: Arc<str>,
    process: OwnedRwLockWriteGuard<ProcessState>,
}

/// What can end so that another process can start.
enum Reclaimable {
    Server(UnusedServer),
    View(ViewKey),
}

/// Stops idle servers, and keeps the memory of all servers within its maximum. Runs until the gateway
/// ends.
pub(super) async fn stop_idle_servers(servers: Weak<Servers>) {
    let interval = {
        let Some(servers) = servers.upgrade() else { return };
        match servers.settings().shortest_idle_timeout() {
            Some(shortest) => (shortest / 4).clamp(MIN_INTERVAL, MAX_INTERVAL),
            None if servers.starts.limits.memory().is_some() => MAX_INTERVAL,
            None => return,
        }
    };
    loop {
        sleep(interval).await;
        let Some(servers) = servers.upgrade() else { return };
        let idle = servers.unused_servers().into_iter().filter(|server| {
            let limit = servers.settings().idle_timeout(&server.name);
            limit.is_some_and(|limit| server.last_used().elapsed() >= limit)
        });
        join_all(idle.map(UnusedServer::stop)).await;
        if servers.starts.limits.memory().is_some() {
            servers.limit_memory().await;
        }
    }
}

impl UnusedServer {
    fn last_used(&self) -> Instant {
        self.upstream.servers.server_use(&self.name).last_used()
    }

    /// Stops the server. Clients still see its definitions. Returns whether it has stopped.
    async fn stop(mut self) -> bool {
        let Self { upstream, name, process } = &mut self;
        // A server that was never ready has no definitions.
        if !upstream.keep_definitions(name) {
            return false;
        }
        match upstream.host.stop_server(name).await {
            Ok(()) => {
                **process = ProcessState::Stopped;
                upstream.processes().remove(name);
                tracing::info!(server = &**name, "idle server stopped");
                true
            }
            Err(error) => {
                upstream.dormant.forget_definitions(name);
                tracing::debug!(server = &**name, %error, "idle server not stopped");
                false
            }
        }
    }
}

impl Servers {
    /// Returns the ready servers that nobody uses and that no running server depends on.
    fn unused_servers(&self) -> Vec<UnusedServer> {
        let upstreams = self.upstreams();
        let settings = self.settings();
        let mut unused = Vec::new();
        for upstream in &upstreams {
            let catalog = upstream.host.catalog();
            let names = upstream.servers.names();
            for name in names.iter().filter(|name| catalog.server(name).is_some()) {
                if let Some(process) = upstream.servers.server_use(name).take_unused()
                    && !upstreams.iter().any(|other| depends_on(other, upstream, name, &settings))
                {
                    let upstream = upstream.clone();
                    let name = name.clone();
                    unused.push(UnusedServer { upstream, name, process });
                }
            }
        }
        unused
    }

    /// Treats a server with an idle timeout that ended by itself as stopped, unless the host restarts
    /// it: its next call starts it.
    pub(super) fn stop_ended(self: &Arc<Self>, upstream: &Arc<Upstream>, name: Arc<str>) {
        let server_use = upstream.servers.server_use(&name);
        let Some(process) = server_use.process().filter(|_| self.settings().starts_on_use(&name))
        else {
            return;
        };
        let servers = self.clone();
        let upstream = upstream.clone();
        let process = process.clone();
        self.tasks.spawn(async move {
            // The calls in flight end with the server.
            let mut process = process.write_owned().await;
            let has_ended = timeout(EXIT_TIME, async {
                while upstream.host.status().get(&name).is_some_and(|server| server.pid.is_some()) {
                    sleep(MIN_INTERVAL).await;
                }
                let status = upstream.host.status();
                status.get(&name).is_some_and(|server| server.state == ServerState::Unavailable)
            });
            let has_ended = has_ended.await.unwrap_or_default();
            if has_ended && *process == ProcessState::Running && upstream.keep_definitions(&name) {
                *process = ProcessState::Stopped;
                upstream.processes().remove(&name);
                drop(process);
                servers.notify_changes(&upstream);
            }
        });
    }

    /// Reserves the process of a server that started without the gateway, for example after a crash.
    pub(super) fn count_process(&self, upstream: &Upstream, name: &Arc<str>) {
        let server_use = upstream.servers.server_use(name);
        if server_use.process().is_some_and(|process| process.try_read().is_err()) {
            // The gateway starts the server, with a reservation.
            return;
        }
        let mut processes = upstream.processes();
        if self.settings().has_process(name) && !processes.contains_key(name) {
            let reserved = self.starts.limits.reserve_running(&upstream.users.owner);
            processes.extend(reserved.map(|reserved| (name.clone(), reserved)));
        }
    }

    /// Returns a use of the server of a call. Takes a lock only if the gateway starts or stops the
    /// server.
    pub(crate) async fn use_offered(
        self: &Arc<Self>,
        server: &OfferedServer,
    ) -> Result<InUse, RpcError> {
        let OfferedServer { upstream, server_use, name, in_use, .. } = server;
        if let Some(in_use) = in_use {
            return Ok(in_use.clone());
        }
        match server_use.process() {
            None => Ok(InUse::new(server_use.clone(), None, upstream.users.host_use())),
            Some(_) => self.use_server(upstream, name, None).await,
        }
    }

    /// Returns a use of a server. Starts the server if it does not run for the gateway, with a process
    /// that is reserved already if there is one; the start continues without the request that it is for.
    pub(super) fn use_server(
        self: &Arc<Self>,
        upstream: &Arc<Upstream>,
        name: &Arc<str>,
        reserved: Option<Reservation>,
    ) -> Pin<Box<dyn Future<Output = Result<InUse, RpcError>> + Send>> {
        let servers = self.clone();
        let upstream = upstream.clone();
        let name = name.clone();
        // Boxed, because the start of a server uses its dependencies.
        Box::pin(async move {
            let server_use = upstream.servers.server_use(&name);
            let host_use = upstream.users.host_use();
            let Some(process) = server_use.process().cloned() else {
                return Ok(InUse::new(server_use, None, host_use));
            };
            let guard = process.read_owned().await;
            let process = match *guard {
                ProcessState::Running => Arc::new(guard),
                ProcessState::Stopped => {
                    drop(guard);
                    let (outcome, turn) = server_use.join_start();
                    if let Some(turn) = turn {
                        let starting = servers.clone();
                        let server_use = server_use.clone();
                        servers.tasks.spawn(async move {
                            let start =
                                starting.start_server(&upstream, &name, &server_use, reserved);
                            turn.finish(start.await);
                        });
                    }
                    outcome.wait().await.clone()?
                }
            };
            Ok(InUse::new(server_use, Some(process), host_use))
        })
    }

    /// Starts a server after its dependencies. Only one start of a server runs at a time.
    async fn start_server(
        self: &Arc<Self>,
        upstream: &Arc<Upstream>,
        name: &Arc<str>,
        server_use: &ServerUse,
        reserved: Option<Reservation>,
    ) -> Result<RunningProcess, RpcError> {
        let Some(process) = server_use.process().cloned() else {
            return Err(RpcError::not_started(name, &"the gateway does not start it"));
        };
        let guard = process.clone().read_owned().await;
        if *guard == ProcessState::Running {
            // An earlier start ended after the request had looked. Its calls may be in flight, so that the
            // lock for writing would wait for their end.
            return Ok(Arc::new(guard));
        }
        drop(guard);
        let mut process = process.write_owned().await;
        let mut dependencies = Vec::new();
        for dependency in self.settings().dependencies(name) {
            let mut hosts = std::iter::once(upstream).chain(&upstream.wider);
            if let Some(owner) = hosts.find(|host| host.servers.contains(dependency)) {
                dependencies.push(self.use_server(owner, &dependency.as_str().into(), None).await?);
            }
        }
        let reserved = match reserved {
            None if self.settings().has_process(name) => {
                Some(self.reserve_process(&upstream.users.owner, name).await?)
            }
            reserved => reserved,
        };
        let turn = self.starts.turns.acquire(&upstream.users.owner).await;
        let started = upstream.host.restart_server(name).await;
        drop(turn);
        upstream.dormant.record_start(name, started.is_ok());
        started.map_err(|error| match error {
            RestartError::Shutdown if self.has_closed() => RpcError::closing(),
            RestartError::Failed(failure) => {
                RpcError::not_started(name, &failure.summary_with_last_words())
            }
            RestartError::UnknownServer(_) | RestartError::Shutdown => {
                RpcError::not_started(name, &error)
            }
        })?;
        *process = ProcessState::Running;
        upstream.processes().extend(reserved.map(|reserved| (name.clone(), reserved)));
        upstream.dormant.forget_definitions(name);
        Ok(Arc::new(process.downgrade()))
    }

    /// Reserves the process of a server. Ends what nobody uses until it fits: what belongs to the same
    /// principal if that has its share.
    pub(super) async fn reserve_process(
        &self,
        owner: &Principal,
        name: &str,
    ) -> Result<Reservation, RpcError> {
        loop {
            if self.starts.limits.memory().is_some() {
                self.measure_memory().await;
            }
            let exceeded = match self.starts.limits.try_reserve(owner) {
                Ok(reserved) => return Ok(reserved),
                Err(exceeded) => exceeded,
            };
            let of = match exceeded {
                ProcessLimitExceeded::Own { .. } => Some(owner),
                ProcessLimitExceeded::Total { .. } | ProcessLimitExceeded::Memory { .. } => None,
            };
            if !self.reclaim(of).await {
                tracing::warn!(server = name, client = %owner, %exceeded, "server not started");
                return Err(RpcError::process_limit(name, exceeded));
            }
        }
    }

    /// Ends the servers that were unused for the longest time: those of a principal, or of all. Returns
    /// whether there were any.
    async fn reclaim(&self, owner: Option<&Principal>) -> bool {
        let is_of = |of: &Principal| owner.is_none_or(|owner| owner == of);
        let upstreams = self.upstreams();
        let upstreams = upstreams.iter().filter(|upstream| is_of(&upstream.users.owner));
        let released = upstreams.filter(|upstream| upstream.release_ended()).count();
        if released > 0 || self.wait_for_ending_host(is_of).await || self.end_unviewed_hosts(is_of)
        {
            return true;
        }
        let servers = self.unused_servers().into_iter();
        let servers = servers.filter(|server| is_of(&server.upstream.users.owner));
        let servers = servers.map(|server| (server.last_used(), Reclaimable::Server(server)));
        let view = self.least_recent_view(is_of);
        let view = view.map(|(key, last_used)| (last_used, Reclaimable::View(key)));
        match servers.chain(view).min_by_key(|(last_used, _)| *last_used) {
            None => return false,
            Some((_, Reclaimable::Server(server))) => {
                if !server.stop().await {
                    return false;
                }
            }
            Some((_, Reclaimable::View(key))) => self.end_view(&key),
        }
        true
    }

    /// Stops servers until their memory is within its maximum: first those that nobody uses, then
    /// the largest one, whose calls fail.
    async fn limit_memory(&self) {
        while self.measure_memory().await.is_some_and(|usage| usage.exceeds) {
            if self.reclaim(None).await {
                continue;
            }
            let Some(MemoryUsage { exceeds: true, largest: Some((upstream, name, bytes)) }) =
                self.measure_memory().await
            else {
                return;
            };
            tracing::error!(
                server = &*name,
                bytes,
                "server stopped: the server processes exceed `serve.limits.memory`"
            );
            if !self.stop_used(&upstream, &name).await {
                return;
            }
        }
    }

    /// Stops a server although calls are in flight. Returns whether it has stopped.
    async fn stop_used(&self, upstream: &Arc<Upstream>, name: &Arc<str>) -> bool {
        let server_use = upstream.servers.server_use(name);
        let Some(process) = server_use.process().cloned() else { return false };
        upstream.keep_definitions(name);
        server_use.count_memory_stop();
        self.observers.parked_calls.cancel_at(&server_use);
        server_use.open_tasks.clear();
        // The calls in flight end with the server; further calls wait, and start it again.
        let (mut process, stopped) =
            tokio::join!(process.write_owned(), upstream.host.stop_server(name));
        if stopped.is_err() {
            return false;
        }
        *process = ProcessState::Stopped;
        upstream.processes().remove(name);
        true
    }

    /// Measures the memory of all servers. Returns `None` on systems that do not report it.
    async fn measure_memory(&self) -> Option<MemoryUsage> {
        let table = spawn_blocking(ProcessTable::read).await.ok()??;
        let mut used = 0;
        let mut largest = None;
        for upstream in self.upstreams() {
            for (name, usage) in upstream.host.process_usage(&table) {
                let bytes = usage.resident_bytes;
                used += bytes;
                if largest.as_ref().is_none_or(|(_, _, most)| bytes > *most) {
                    largest = Some((upstream.clone(), name, bytes));
                }
            }
        }
        Some(MemoryUsage { exceeds: self.starts.limits.record_memory(used), largest })
    }
}

struct MemoryUsage {
    exceeds: bool,
    /// The largest server with its memory in bytes.
    largest: Option<(Arc<Upstream>, Arc<str>, u64)>,
}

/// Returns whether a running server of a host may use the server `name` of `owner`.
fn depends_on(
    host: &Arc<Upstream>,
    owner: &Arc<Upstream>,
    name: &str,
    settings: &ServerSettings,
) -> bool {
    let can_use =
        Arc::ptr_eq(host, owner) || host.wider.iter().any(|wider| Arc::ptr_eq(wider, owner));
    can_use
        && host.servers.names().iter().any(|dependent| {
            settings.depends_on(dependent, name)
                && !host.dormant.is_stopped(dependent)
                && !host.dormant.is_unstarted(dependent)
        })
}

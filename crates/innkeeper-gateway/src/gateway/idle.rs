//! Stops servers that nobody uses, and starts them again at their next use.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use innkeeper_host::{ProcessTable, ServerState};
use innkeeper_protocol::envelope::code;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use super::GatewayInner;
use super::sharing::ViewKey;
use crate::error::{ErrorKind, RpcError};
use crate::offering::OfferedServer;
use crate::server_use::{InUse, ProcessState, ServerUse};
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
pub(super) async fn stop_idle_servers(gateway: Weak<GatewayInner>) {
    let interval = {
        let Some(gateway) = gateway.upgrade() else { return };
        match gateway.servers.shortest_idle_timeout() {
            Some(shortest) => (shortest / 4).clamp(MIN_INTERVAL, MAX_INTERVAL),
            None if gateway.process_limits.memory().is_some() => MAX_INTERVAL,
            None => return,
        }
    };
    loop {
        sleep(interval).await;
        let Some(gateway) = gateway.upgrade() else { return };
        let idle = gateway.unused_servers().into_iter().filter(|server| {
            let limit = gateway.servers.idle_timeout(&server.name);
            limit.is_some_and(|limit| server.last_used().elapsed() >= limit)
        });
        join_all(idle.map(UnusedServer::stop)).await;
        if gateway.process_limits.memory().is_some() {
            gateway.limit_memory().await;
        }
    }
}

impl UnusedServer {
    fn last_used(&self) -> Instant {
        self.upstream.server_use(&self.name).last_used()
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
                upstream.permits().remove(name);
                tracing::info!(server = &**name, "idle server stopped");
                true
            }
            Err(error) => {
                upstream.forget_definitions(name);
                tracing::debug!(server = &**name, %error, "idle server not stopped");
                false
            }
        }
    }
}

impl GatewayInner {
    /// Returns the ready servers that nobody uses and that no running server depends on.
    fn unused_servers(&self) -> Vec<UnusedServer> {
        let upstreams = self.upstreams();
        let mut unused = Vec::new();
        for upstream in &upstreams {
            let catalog = upstream.host.catalog();
            let ready = upstream.names().iter().filter(|name| catalog.server(name).is_some());
            for name in ready {
                let has_dependent = || {
                    upstreams.iter().any(|other| {
                        let can_use = Arc::ptr_eq(other, upstream)
                            || other.wider.iter().any(|wider| Arc::ptr_eq(wider, upstream));
                        let dependents = other.names().iter().filter(|dependent| {
                            self.servers.depends_on(dependent, name) && !other.is_stopped(dependent)
                        });
                        can_use && dependents.count() > 0
                    })
                };
                if let Some(process) = upstream.server_use(name).take_unused()
                    && !has_dependent()
                {
                    let (upstream, name) = (upstream.clone(), name.clone());
                    unused.push(UnusedServer { upstream, name, process });
                }
            }
        }
        unused
    }

    /// Treats a server with an idle timeout that ended by itself as stopped, unless the host restarts
    /// it: its next call starts it.
    pub(super) fn stop_ended(self: &Arc<Self>, upstream: &Arc<Upstream>, name: Arc<str>) {
        let server_use = upstream.server_use(&name);
        let Some(process) = server_use.process().filter(|_| self.servers.starts_on_use(&name))
        else {
            return;
        };
        let (gateway, upstream, process) = (self.clone(), upstream.clone(), process.clone());
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
                upstream.permits().remove(&name);
                drop(process);
                gateway.notify_changes(&upstream);
            }
        });
    }

    /// Reserves the process of a server that started without the gateway, for example after a crash.
    pub(super) fn count_process(&self, upstream: &Upstream, name: &Arc<str>) {
        let server_use = upstream.server_use(name);
        if server_use.process().is_some_and(|process| process.try_read().is_err()) {
            // The gateway starts the server, with a permit.
            return;
        }
        let mut permits = upstream.permits();
        if self.servers.has_process(name) && !permits.contains_key(name) {
            let permit = self.process_limits.reserve_running(1).pop();
            permits.extend(permit.map(|permit| (name.clone(), permit)));
        }
    }

    /// Returns a use of the server of a call. Takes a lock only if the gateway may stop the server.
    pub(crate) async fn use_offered(
        self: &Arc<Self>,
        server: &OfferedServer,
    ) -> Result<InUse, RpcError> {
        let OfferedServer { upstream, server_use, name, .. } = server;
        match server_use.process() {
            None => Ok(InUse::new(server_use.clone(), None, upstream.host_use())),
            Some(_) => self.use_server(upstream, name).await,
        }
    }

    /// Returns a use of a server. Starts the server if the gateway stopped it; the start continues
    /// without the request that it is for.
    pub(super) fn use_server(
        self: &Arc<Self>,
        upstream: &Arc<Upstream>,
        name: &Arc<str>,
    ) -> Pin<Box<dyn Future<Output = Result<InUse, RpcError>> + Send>> {
        let (gateway, upstream, name) = (self.clone(), upstream.clone(), name.clone());
        // Boxed, because the start of a server uses its dependencies.
        Box::pin(async move {
            let server_use = upstream.server_use(&name);
            let host_use = upstream.host_use();
            let Some(process) = server_use.process().cloned() else {
                return Ok(InUse::new(server_use, None, host_use));
            };
            let guard = process.read_owned().await;
            let guard = match *guard {
                ProcessState::Running => guard,
                ProcessState::Stopped => {
                    drop(guard);
                    gateway.start_stopped(upstream, name, server_use.clone()).await?
                }
            };
            Ok(InUse::new(server_use, Some(guard), host_use))
        })
    }

    async fn start_stopped(
        self: &Arc<Self>,
        upstream: Arc<Upstream>,
        name: Arc<str>,
        server_use: Arc<ServerUse>,
    ) -> Result<OwnedRwLockReadGuard<ProcessState>, RpcError> {
        let (done, started) = oneshot::channel();
        let gateway = self.clone();
        self.tasks.spawn(async move {
            let result = gateway.start_in_turn(&upstream, &name, &server_use).await;
            // The request may have been cancelled.
            drop(done.send(result));
        });
        started.await.unwrap_or_else(|_| Err(RpcError::closing()))
    }

    async fn start_in_turn(
        self: &Arc<Self>,
        upstream: &Arc<Upstream>,
        name: &Arc<str>,
        server_use: &ServerUse,
    ) -> Result<OwnedRwLockReadGuard<ProcessState>, RpcError> {
        let not_started = |error: &dyn std::fmt::Display| {
            let data = json!({ "kind": "unavailable", "server": &**name, "mayHaveRun": false });
            let message = format!("server `{name}` did not start: {error}");
            let (kind, data) = (ErrorKind::Unavailable, to_raw_value(&data).ok());
            RpcError { kind, code: code::INTERNAL_ERROR, message, data }
        };
        let Some(process) = server_use.process().cloned() else {
            return Err(not_started(&"the gateway does not stop it"));
        };
        let mut process = process.write_owned().await;
        if *process == ProcessState::Running {
            return Ok(process.downgrade());
        }
        let mut dependencies = Vec::new();
        for dependency in self.servers.dependencies(name) {
            let mut hosts = std::iter::once(upstream).chain(&upstream.wider);
            if let Some(owner) = hosts.find(|host| host.has_server(dependency)) {
                dependencies.push(self.use_server(owner, &dependency.as_str().into()).await?);
            }
        }
        let permit = self.reserve_processes(1).await?.pop();
        upstream.host.restart_server(name).await.map_err(|error| not_started(&error))?;
        *process = ProcessState::Running;
        upstream.permits().extend(permit.map(|permit| (name.clone(), permit)));
        upstream.forget_definitions(name);
        Ok(process.downgrade())
    }

    /// Reserves a number of processes. Ends what nobody uses until they fit.
    pub(super) async fn reserve_processes(
        &self,
        count: usize,
    ) -> Result<Vec<OwnedSemaphorePermit>, RpcError> {
        loop {
            if count > 0 && self.process_limits.memory().is_some() {
                self.measure_memory().await;
            }
            let exceeded = match self.process_limits.try_reserve(count) {
                Ok(permits) => return Ok(permits),
                Err(exceeded) => exceeded,
            };
            if !self.reclaim().await {
                tracing::warn!(%exceeded, "server not started");
                return Err(RpcError::new(code::INTERNAL_ERROR, exceeded.to_string()));
            }
        }
    }

    /// Ends the servers that were unused for the longest time. Returns whether there were any.
    async fn reclaim(&self) -> bool {
        let released = self.upstreams().iter().filter(|upstream| upstream.release_ended()).count();
        if released > 0 || self.wait_for_ending_host().await || self.end_unviewed_hosts() {
            return true;
        }
        let servers = self.unused_servers().into_iter();
        let servers = servers.map(|server| (server.last_used(), Reclaimable::Server(server)));
        let view = self.least_recent_view();
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
            if self.reclaim().await {
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
        let server_use = upstream.server_use(name);
        let Some(process) = server_use.process().cloned() else { return false };
        upstream.keep_definitions(name);
        server_use.count_memory_stop();
        self.parked_calls.cancel_at(&server_use);
        server_use.open_tasks.clear();
        // The calls in flight end with the server; further calls wait, and start it again.
        let (mut process, stopped) =
            tokio::join!(process.write_owned(), upstream.host.stop_server(name));
        if stopped.is_err() {
            return false;
        }
        *process = ProcessState::Stopped;
        upstream.permits().remove(name);
        true
    }

    /// Measures the memory of all servers. Returns `None` on systems that do not report it.
    async fn measure_memory(&self) -> Option<MemoryUsage> {
        let table = spawn_blocking(ProcessTable::read).await.ok()??;
        let (mut used, mut largest) = (0, None);
        for upstream in self.upstreams() {
            for (name, usage) in upstream.host.process_usage(&table) {
                let bytes = usage.resident_bytes;
                used += bytes;
                if largest.as_ref().is_none_or(|(_, _, most)| bytes > *most) {
                    largest = Some((upstream.clone(), name, bytes));
                }
            }
        }
        Some(MemoryUsage { exceeds: self.process_limits.record_memory(used), largest })
    }
}

/// The memory of all servers.
struct MemoryUsage {
    exceeds: bool,
    /// The largest server with its memory in bytes.
    largest: Option<(Arc<Upstream>, Arc<str>, u64)>,
}

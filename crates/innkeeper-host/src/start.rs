//! Starts all servers in dependency order, and restarts single servers.

mod restart;
mod restart_policy;
mod silence;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_config::{Config, RestartPolicy};
use tokio::sync::{SetOnce, mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use crate::audit::AuditEvent;
use crate::connection::log_level;
use crate::error::{ServerFailure, StartError, StartFailureReason, StartPhase, UnavailableReason};
use crate::event::REPORTED_TARGET;
use crate::lifecycle::ServerState;
use crate::registry::Registry;
use crate::server::launch::{Launcher, StartDeadline};
use crate::server::{FailedStart, Server, ServerHandle};
use crate::shutdown;
use crate::supervise::{follow_changes, supervise};
use crate::tasks::TaskGroup;
pub(crate) use restart::{RestartTrigger, restart};
use restart_policy::restart_until_ready;

/// Time to collect further failures after the first failure, so that one start reports all
/// problems.
const FAILURE_WINDOW: Duration = Duration::from_secs(1);

/// The readiness of each server for its dependents, once known, with the deadline of their starts:
/// an interactive sign-in can move the deadline. Waiters wake in the order of the file, so that the
/// servers of one wave always start in the same order.
type DependencyReadiness = HashMap<Arc<str>, SetOnce<Option<Instant>>>;

/// Starts all servers, whose failures end no start, and returns when all are ready or have failed, or
/// after `wait`. The starts go on then.
pub(crate) async fn start_in_background(
    registry: &Arc<Registry>,
    launcher: &Arc<Launcher>,
    config: &Config,
    wait: Duration,
) {
    let (done, started) = oneshot::channel();
    let registry = registry.clone();
    let config = config.clone();
    let tasks = launcher.host.tasks.clone();
    let launcher = launcher.clone();
    tasks.spawn(async move {
        // No server is required.
        start_all(&registry, &launcher, &config).await.ok();
        done.send(()).ok();
    });
    timeout(wait, started).await.ok();
}

/// Starts all servers, or stops the started servers after a failure.
pub(crate) async fn start_all(
    registry: &Arc<Registry>,
    launcher: &Arc<Launcher>,
    config: &Config,
) -> Result<(), StartError> {
    let timeout = config.host.start_timeout;
    let limit = StartDeadline { deadline: Instant::now() + timeout, timeout };
    let servers = registry.servers();
    let mut board: DependencyReadiness =
        servers.iter().map(|server| (server.name.clone(), SetOnce::new())).collect();
    let invalid = registry.invalid_servers();
    board.extend(invalid.keys().map(|name| (name.clone(), SetOnce::new_with(Some(None)))));
    let board = Arc::new(board);
    registry.report_invalid_servers();
    let mut group = TaskGroup::new();
    for server in servers {
        let start = ServerStart {
            readiness: board.clone(),
            ..ServerStart::new(registry, launcher, &server)
        };
        // A box, because a task moves its future several times, and this one has 11 kB.
        let _ = group.spawn(Box::pin(start.run(limit)));
    }
    let mut failures = collect_failures(&mut group).await;
    drop(group);
    if failures.is_empty() {
        return Ok(());
    }
    failures.sort_by_key(|failure| config.servers.get_index_of(&*failure.server));
    shutdown::stop_all(registry, config, None).await;
    let failed: Vec<&str> = failures.iter().map(|failure| &*failure.server).collect();
    let failed = failed.join(",");
    tracing::error!(
        target: REPORTED_TARGET,
        severity = "critical",
        failed,
        "required servers failed to start; all servers stopped"
    );
    Err(StartError::Servers(failures))
}

/// Waits for all starts, or until [`FAILURE_WINDOW`] after the first failure of a required server.
async fn collect_failures(group: &mut TaskGroup<Result<(), ServerFailure>>) -> Vec<ServerFailure> {
    let mut failures: Vec<ServerFailure> = Vec::new();
    let mut deadline = None;
    loop {
        let next = match deadline {
            None => group.next().await,
            Some(deadline) => match timeout_at(deadline, group.next()).await {
                Ok(next) => next,
                Err(_) => return failures,
            },
        };
        match next {
            None => return failures,
            Some(Ok(())) => {}
            Some(Err(failure)) => {
                failures.push(failure);
                deadline.get_or_insert_with(|| Instant::now() + FAILURE_WINDOW);
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ServerStart {
    pub(crate) registry: Arc<Registry>,
    launcher: Arc<Launcher>,
    pub(crate) server: Arc<Server>,
    /// Readiness of the dependencies; servers without an entry are not waited for.
    readiness: Arc<DependencyReadiness>,
}

impl ServerStart {
    pub(crate) fn new(
        registry: &Arc<Registry>,
        launcher: &Arc<Launcher>,
        server: &Arc<Server>,
    ) -> Self {
        let registry = registry.clone();
        let launcher = launcher.clone();
        Self { registry, launcher, server: server.clone(), readiness: Arc::default() }
    }

    /// Starts an added server if its dependencies are ready.
    pub(crate) async fn start_added(
        mut self,
        mut limit: StartDeadline,
    ) -> Result<(), ServerFailure> {
        let server = self.server.clone();
        let _turn = server.restart_lock.lock().await;
        self.readiness = Arc::new(
            server
                .config()
                .dependencies
                .iter()
                .map(|name| {
                    let ready = self
                        .registry
                        .server(name)
                        .is_some_and(|dependency| dependency.status().state == ServerState::Ready);
                    (name.as_str().into(), SetOnce::new_with(Some(ready.then_some(limit.deadline))))
                })
                .collect(),
        );
        let result = self.start(&mut limit, server.config().required).await;
        result.inspect_err(|failure| {
            self.report_failure(failure);
            self.retry_later(failure);
        })
    }

    /// Runs the start. Fails only for a required server; an optional server becomes unavailable.
    async fn run(self, mut limit: StartDeadline) -> Result<(), ServerFailure> {
        // The host may be in use already.
        let _turn = self.server.restart_lock.lock().await;
        let result = tokio::select! {
            biased;
            () = self.registry.closed() => None,
            _ = self.server.removed.wait() => None,
            result = self.start(&mut limit, self.server.config().required) => Some(result),
        };
        if let Some(outcome) = self.readiness.get(&self.server.name) {
            // Each server starts once, so the outcome is set once.
            let _ = outcome.set(matches!(result, Some(Ok(()))).then_some(limit.deadline));
        }
        let Some(Err(failure)) = result else { return Ok(()) };
        self.report_failure(&failure);
        if self.server.config().required {
            return Err(failure);
        }
        self.retry_later(&failure);
        Ok(())
    }

    /// Tries again in the background, if the host revives the server and another start can succeed.
    fn retry_later(&self, failure: &ServerFailure) {
        if self.revives() && failure.may_succeed_later() {
            // Not with what the first start knows of the dependencies.
            let start = Self::new(&self.registry, &self.launcher, &self.server);
            self.launcher.host.tasks.spawn(restart_until_ready(start));
        }
    }

    fn report_failure(&self, failure: &ServerFailure) {
        let required = self.server.config().required;
        AuditEvent::StartFailed { required, error: failure }.emit(&failure.server);
        self.server.status().next_start.last_failure = FailedStart {
            hint: failure.hint(),
            needs_user_sign_in: failure.needs_user_sign_in(),
            stderr: failure.stderr.clone(),
        };
        let reason = UnavailableReason::NotStarted(failure.summary_with_last_words().into());
        self.registry.mark_unavailable(&self.server, reason);
    }

    async fn start(&self, limit: &mut StartDeadline, waits: bool) -> Result<(), ServerFailure> {
        let ready = self.wait_for_dependencies(limit).await;
        ready.map_err(|reason| self.not_launched(StartPhase::Dependencies, reason))?;
        let server_endpoint = self.server.endpoint();
        let server_endpoint =
            server_endpoint.map_err(|reason| self.not_launched(StartPhase::Launch, reason))?;
        let started = self.launcher.start(&self.server, &server_endpoint, limit, waits).await;
        let (running, entry, took) = started?;
        let (stop, stop_requests) = mpsc::channel(1);
        let handle = ServerHandle {
            pid: running.instance.id(),
            containment: running.instance.containment(),
            kill_handle: running.instance.kill_handle(),
            stop,
            stderr: running.stderr.clone(),
            http_session: running.http_session.clone(),
        };
        // A later start begins a session of its own.
        self.server.status().next_start.continued_session = None;
        if let Some(http_session) = &running.http_session {
            http_session.end_on_close();
        }
        let session = running.session.clone();
        let server_capabilities = running.capabilities.clone();
        let connection = entry.connection.clone();
        silence::watch_timeouts(self, &connection);
        // Before the tasks that can mark the server unavailable or changed.
        self.registry.mark_ready(&self.server, entry, handle, took);
        let level = self.launcher.client.log_levels.get(&self.server.name);
        log_level::update_detached(&connection, level);
        let tasks = &self.launcher.host.tasks;
        let next_start = Self::new(&self.registry, &self.launcher, &self.server);
        let registry = self.registry.clone();
        let server = self.server.clone();
        tasks.spawn(supervise(registry, server, running, stop_requests, move || {
            next_start.launcher.host.tasks.clone().spawn(restart_until_ready(next_start));
        }));
        let registry = self.registry.clone();
        let server = self.server.clone();
        tasks.spawn(follow_changes(registry, server, session, server_capabilities));
        Ok(())
    }

    fn not_launched(&self, phase: StartPhase, reason: StartFailureReason) -> ServerFailure {
        let server = self.server.name.clone();
        ServerFailure { server, phase, reason, stderr: String::new(), attempts: 0 }
    }

    /// Returns whether the host brings the server back although it may still be working, or was never
    /// ready.
    fn revives(&self) -> bool {
        self.launcher.client.revives_servers
            && self.server.config().lifecycle.restart != RestartPolicy::Never
    }

    /// Waits for the dependencies, whose starts have their own deadlines.
    async fn wait_for_dependencies(
        &self,
        limit: &mut StartDeadline,
    ) -> Result<(), StartFailureReason> {
        for dependency in &self.server.config().dependencies {
            if let Some((name, outcome)) = self.readiness.get_key_value(dependency.as_str()) {
                let Some(max_deadline) = *outcome.wait().await else {
                    return Err(StartFailureReason::Dependency(name.clone()));
                };
                limit.deadline = limit.deadline.max(max_deadline);
            }
        }
        Ok(())
    }
}

//! Starts all servers, dependencies first and all of them or none, and one of them again on request.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{SetOnce, mpsc};
use tokio::time::{Instant, timeout_at};

use crate::config::{Config, ConfigError, Environment, Problem, Severity, TransportConfig};
use crate::error::{Lost, Phase, RestartError, ServerFailure, StartError, StartReason};
use crate::registry::Registry;
use crate::server::launch::{Launcher, Limit, Way};
use crate::server::process::{self, Bounds, Launch};
use crate::server::{Handle, Server, follow_changes, supervise};
use crate::shutdown;
use crate::tasks::Group;
use crate::transport::Remote;

/// After one server has failed, how long the failures of others are gathered, so that one start
/// reports all that is wrong.
const GATHER: Duration = Duration::from_secs(1);

/// Whether each server can be depended on, once that is known. Those who wait are woken in the
/// order of the file, so that servers of one wave start in the same order every time.
type Board = HashMap<Arc<str>, SetOnce<bool>>;

/// How each server is reached.
pub(crate) type Launches = HashMap<Arc<str>, Arc<Way>>;

/// Starts everything or stops what was started.
pub(crate) async fn start_all(
    registry: &Arc<Registry>,
    launcher: Arc<Launcher>,
    launches: &Launches,
    config: &Config,
) -> Result<(), StartError> {
    let allowed = config.host.start_timeout;
    let limit = Limit { ends: Instant::now() + allowed, allowed };
    let board: Board =
        registry.servers().map(|server| (server.name.clone(), SetOnce::new())).collect();
    let board = Arc::new(board);
    let mut group = Group::new();
    for server in registry.servers() {
        let Some(launch) = launches.get(&server.name) else { continue };
        let start = Start {
            registry: registry.clone(),
            launcher: launcher.clone(),
            server: server.clone(),
            launch: launch.clone(),
            board: board.clone(),
        };
        drop(group.spawn(start.run(limit)));
    }
    let mut failures = gather(&mut group).await;
    drop(group);
    if failures.is_empty() {
        return Ok(());
    }
    let order = |failure: &ServerFailure| config.servers.get_index_of(&*failure.server);
    failures.sort_by_key(order);
    shutdown::stop_all(registry, config).await;
    Err(StartError::Servers(failures))
}

/// Waits for all starts, or shortly after the first failure of a required server.
async fn gather(group: &mut Group<Result<(), ServerFailure>>) -> Vec<ServerFailure> {
    let mut failures: Vec<ServerFailure> = Vec::new();
    let mut ends = None;
    loop {
        let next = match ends {
            None => group.next().await,
            Some(ends) => match timeout_at(ends, group.next()).await {
                Ok(next) => next,
                Err(_) => return failures,
            },
        };
        match next {
            None => return failures,
            Some(Ok(())) => {}
            Some(Err(failure)) => {
                failures.push(failure);
                ends.get_or_insert_with(|| Instant::now() + GATHER);
            }
        }
    }
}

/// The start of one server.
struct Start {
    registry: Arc<Registry>,
    launcher: Arc<Launcher>,
    server: Arc<Server>,
    launch: Arc<Way>,
    board: Arc<Board>,
}

impl Start {
    /// Fails only for a required server; an optional one is marked unavailable.
    async fn run(self, limit: Limit) -> Result<(), ServerFailure> {
        let result = self.start(limit).await;
        if let Some(outcome) = self.board.get(&self.server.name) {
            // Each server has one start, so the outcome is set once.
            drop(outcome.set(result.is_ok()));
        }
        let Err(failure) = result else { return Ok(()) };
        self.failed(&failure);
        if self.server.config.required { Err(failure) } else { Ok(()) }
    }

    fn failed(&self, failure: &ServerFailure) {
        let (server, required) = (&*failure.server, self.server.config.required);
        let error: &dyn std::error::Error = failure;
        tracing::error!(server, required, security = true, error, "start failed");
        let reason = format!("{} {}", failure.phase, failure.reason);
        self.registry.lost(&self.server, Lost::NotStarted(reason.into()));
    }

    async fn start(&self, limit: Limit) -> Result<(), ServerFailure> {
        let waited = timeout_at(limit.ends, self.dependencies()).await;
        let reason = waited.unwrap_or(Err(StartReason::StartLimit(limit.allowed)));
        reason.map_err(|reason| ServerFailure {
            server: self.server.name.clone(),
            phase: Phase::Dependencies,
            reason,
            stderr: String::new(),
            attempts: 0,
        })?;
        let started = self.launcher.start(&self.server, &self.launch, limit).await;
        let (running, shelf, took) = started?;
        let (stop, orders) = mpsc::channel(1);
        let handle = Handle {
            pid: running.body.id(),
            isolation: running.body.isolation(),
            killer: running.body.killer(),
            stop,
            stderr: running.stderr.clone(),
        };
        let (session, declared) = (running.session.clone(), running.declared.clone());
        let (registry, server) = (Arc::downgrade(&self.registry), Arc::downgrade(&self.server));
        // Its process may still be at work on what was asked of it: it runs until it is stopped.
        shelf.connection.silence.watch(move |calls| {
            if let (Some(registry), Some(server)) = (registry.upgrade(), server.upgrade()) {
                registry.lost(&server, Lost::Silent { calls });
            }
        });
        // Before the tasks that may find it lost or changed again.
        self.registry.ready(&self.server, shelf, handle, took);
        let tasks = &self.launcher.tasks;
        let (registry, server) = (self.registry.clone(), self.server.clone());
        tasks.spawn(supervise(registry, server, running, orders));
        let (registry, server) = (self.registry.clone(), self.server.clone());
        tasks.spawn(follow_changes(registry, server, session, declared));
        Ok(())
    }

    async fn dependencies(&self) -> Result<(), StartReason> {
        for dependency in &self.server.config.dependencies {
            if let Some((name, outcome)) = self.board.get_key_value(dependency.as_str())
                && !*outcome.wait().await
            {
                return Err(StartReason::Dependency(name.clone()));
            }
        }
        Ok(())
    }
}

/// Stops one server, whatever it is at, and starts it again.
pub(crate) async fn restart(
    registry: Arc<Registry>,
    launcher: Arc<Launcher>,
    launch: Arc<Way>,
    server: Arc<Server>,
    allowed: Duration,
) -> Result<(), RestartError> {
    let _turn = server.turn.lock().await;
    let again = async {
        drop(shutdown::stop_one(server.clone(), server.config.shutdown_timeout).await);
        registry.restarting(&server);
        let start = Start {
            registry: registry.clone(),
            launcher,
            server: server.clone(),
            launch,
            // What it depends on is let alone: it was started, and its state is its own.
            board: Arc::default(),
        };
        let result = start.start(Limit { ends: Instant::now() + allowed, allowed }).await;
        result.map_err(|failure| {
            start.failed(&failure);
            RestartError::Failed(Box::new(failure))
        })
    };
    tokio::select! {
        biased;
        () = registry.closed() => {
            // What was started meanwhile is killed; what was stopped before stays so.
            let stopped = server.status().stopped.clone();
            if let Some(report) = stopped {
                registry.stopped(&server, &report);
            }
            Err(RestartError::Shutdown)
        }
        result = again => result,
    }
}

/// Finds every program and makes every environment before anything is started (TR10.1, TR8.3).
pub(crate) fn prepare(config: &Config, parent: &Environment) -> Result<Launches, ConfigError> {
    let mut launches = HashMap::new();
    let mut problems = Vec::new();
    for (name, server) in &config.servers {
        let problem = |key: &str, message: String, hint: Option<String>| Problem {
            severity: Severity::Error,
            source: server.position.source.to_string(),
            line: server.position.line,
            column: server.position.column,
            key: format!("servers.{name}.{key}"),
            message,
            hint,
        };
        let TransportConfig::Stdio { command, args, env, unset_env, cwd } = &server.transport
        else {
            match Remote::of(&server.transport, parent) {
                Some(Ok(remote)) => {
                    launches.insert(name.as_str().into(), Arc::new(Way::Remote(remote)));
                }
                Some(Err((key, message))) => problems.push(problem(key, message, None)),
                None => {}
            }
            continue;
        };
        let declared = env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        let env = process::child_environment(parent, server.inherit_env, &declared.collect());
        let mut env = match env {
            Ok(env) => env,
            Err(error) => {
                problems.push(problem("env", error.to_string(), None));
                continue;
            }
        };
        env.retain(|(name, _)| !unset_env.iter().any(|unset| name == unset.as_str()));
        let cwd = cwd.as_ref().map(|cwd| cwd.expose().clone());
        let from = cwd.as_deref().or(parent.current_dir()).unwrap_or(Path::new("."));
        match process::resolve(command.expose(), &env, from) {
            Ok(program) => {
                let args = args.iter().map(|arg| arg.expose().into()).collect();
                let command = command.as_written().into();
                let bounds = Bounds::new(server.limits, server.sandbox.as_ref(), from);
                let launch = Launch { command, program, args, env, cwd, bounds };
                launches.insert(name.as_str().into(), Arc::new(Way::Child(launch)));
            }
            Err(error) => {
                let message = error.quoting(command.as_written()).to_string();
                let hint = "install it, or write its full path".to_owned();
                problems.push(problem("command", message, Some(hint)));
            }
        }
    }
    if problems.is_empty() { Ok(launches) } else { Err(ConfigError(problems)) }
}

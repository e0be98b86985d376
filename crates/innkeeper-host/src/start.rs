//! Starts all servers, dependencies first and all of them or none, and one of them again on request.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{SetOnce, mpsc};
use tokio::time::{Instant, timeout_at};

use crate::audit::Fact;
use crate::config::{
    Config, ConfigError, Environment, Problem, ServerConfig, Severity, TransportConfig,
};
use crate::error::{Lost, Phase, RestartError, ServerFailure, StartError, StartReason};
use crate::lifecycle::ServerState;
use crate::registry::Registry;
use crate::revive::revive;
use crate::server::absent::{Absent, Planned};
use crate::server::launch::{Launcher, Limit, Way};
use crate::server::process::{self, Bounds, Launch};
use crate::server::{Handle, Server, Settings, follow_changes, supervise};
use crate::shutdown;
use crate::tasks::Group;
use crate::transport::Remote;

/// After one server has failed, how long the failures of others are gathered, so that one start
/// reports all that is wrong.
const GATHER: Duration = Duration::from_secs(1);

/// Whether each server can be depended on, once that is known, and then until when those who do may
/// start: a person who signed in may have moved that. Those who wait are woken in the order of the
/// file, so that servers of one wave start in the same order every time.
type Board = HashMap<Arc<str>, SetOnce<Option<Instant>>>;

/// Starts everything or stops what was started.
pub(crate) async fn start_all(
    registry: &Arc<Registry>,
    launcher: &Arc<Launcher>,
    config: &Config,
) -> Result<(), StartError> {
    let allowed = config.host.start_timeout;
    let limit = Limit { ends: Instant::now() + allowed, allowed };
    let servers = registry.servers();
    let board: Board = servers.iter().map(|server| (server.name.clone(), SetOnce::new())).collect();
    let board = Arc::new(board);
    let mut group = Group::new();
    for server in servers {
        let start = Start { board: board.clone(), ..Start::of(registry, launcher, &server) };
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
    let failed: Vec<&str> = failures.iter().map(|failure| &*failure.server).collect();
    let failed = failed.join(",");
    tracing::error!(severity = "critical", failed, "nothing runs: required servers did not start");
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
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) registry: Arc<Registry>,
    launcher: Arc<Launcher>,
    pub(crate) server: Arc<Server>,
    /// What is not on it is not waited for.
    board: Arc<Board>,
}

impl Start {
    pub(crate) fn of(
        registry: &Arc<Registry>,
        launcher: &Arc<Launcher>,
        server: &Arc<Server>,
    ) -> Self {
        let (registry, launcher) = (registry.clone(), launcher.clone());
        Self { registry, launcher, server: server.clone(), board: Arc::default() }
    }

    /// Starts a server that has just been added, if those it depends on are ready.
    pub(crate) async fn added(mut self, mut limit: Limit) -> Result<(), ServerFailure> {
        let server = self.server.clone();
        let _turn = server.turn.lock().await;
        let outcome = |name: &String| {
            let ready = self
                .registry
                .server(name)
                .is_some_and(|dependency| dependency.status().state == ServerState::Ready);
            (name.as_str().into(), SetOnce::new_with(Some(ready.then_some(limit.ends))))
        };
        self.board = Arc::new(server.config().dependencies.iter().map(outcome).collect());
        let result = self.start(&mut limit, server.config().required).await;
        result.inspect_err(|failure| self.failed(failure))
    }

    /// Fails only for a required server; an optional one is marked unavailable.
    async fn run(self, mut limit: Limit) -> Result<(), ServerFailure> {
        let result = self.start(&mut limit, self.server.config().required).await;
        if let Some(outcome) = self.board.get(&self.server.name) {
            // Each server has one start, so the outcome is set once.
            drop(outcome.set(result.is_ok().then_some(limit.ends)));
        }
        let Err(failure) = result else { return Ok(()) };
        self.failed(&failure);
        if self.server.config().required { Err(failure) } else { Ok(()) }
    }

    fn failed(&self, failure: &ServerFailure) {
        let required = self.server.config().required;
        Fact::StartFailed { required, error: failure }.tell(&failure.server);
        let reason = format!("{} {}", failure.phase, failure.reason);
        self.registry.lost(&self.server, Lost::NotStarted(reason.into()));
    }

    async fn start(&self, limit: &mut Limit, waits: bool) -> Result<(), ServerFailure> {
        let not_launched = |phase, reason| ServerFailure {
            server: self.server.name.clone(),
            phase,
            reason,
            stderr: String::new(),
            attempts: 0,
        };
        let ready = self.dependencies(limit).await;
        ready.map_err(|reason| not_launched(Phase::Dependencies, reason))?;
        let way = self.server.way().map_err(|reason| not_launched(Phase::Launch, reason))?;
        let started = self.launcher.start(&self.server, &way, limit, waits).await;
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
        let again = Self::of(&self.registry, &self.launcher, &self.server);
        let fallen = move || again.launcher.tasks.clone().spawn(revive(again));
        let (registry, server) = (self.registry.clone(), self.server.clone());
        tasks.spawn(supervise(registry, server, running, orders, fallen));
        let (registry, server) = (self.registry.clone(), self.server.clone());
        tasks.spawn(follow_changes(registry, server, session, declared));
        Ok(())
    }

    /// Waits for those it depends on, whose starts have an end of their own.
    async fn dependencies(&self, limit: &mut Limit) -> Result<(), StartReason> {
        for dependency in &self.server.config().dependencies {
            if let Some((name, outcome)) = self.board.get_key_value(dependency.as_str()) {
                let Some(ends) = *outcome.wait().await else {
                    return Err(StartReason::Dependency(name.clone()));
                };
                limit.ends = limit.ends.max(ends);
            }
        }
        Ok(())
    }
}

/// Who wants a server started again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish {
    /// The application: whatever the server is at, with the settings that wait for that.
    Asked,
    /// Its configuration, since it was lost: with the settings it had, unless it has become ready
    /// more often than this.
    Lost {
        /// How often it had become ready.
        readies: u32,
    },
}

/// Stops one server and starts it again. What it depends on is let alone: it was started, and its
/// state is its own.
pub(crate) async fn restart(start: Start, wish: Wish) -> Result<(), RestartError> {
    let Start { registry, server, .. } = &start;
    let allowed = start.launcher.start_timeout;
    let _turn = server.turn.lock().await;
    if let Wish::Lost { readies } = wish
        && server.status().falls.readies() != readies
    {
        return Ok(());
    }
    let again = async {
        drop(shutdown::stop_one(server.clone(), server.config().shutdown_timeout).await);
        if matches!(wish, Wish::Asked) {
            server.take_up_pending();
        }
        registry.restarting(server);
        // Whoever asked was promised an end. A sign-in goes on, for the next one.
        let mut limit = Limit { ends: Instant::now() + allowed, allowed };
        let result = start.start(&mut limit, false).await;
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
                registry.stopped(server, &report);
            }
            Err(RestartError::Shutdown)
        }
        _ = server.removed.wait() => Err(RestartError::Unknown((&*server.name).into())),
        result = again => result,
    }
}

/// Finds the program and makes the environment of every server before any is started (TR10.1,
/// TR8.3). A program of a server that may be missing may be so too.
pub(crate) fn prepare<'c>(
    servers: impl IntoIterator<Item = &'c ServerConfig>,
    parent: &Environment,
) -> Result<Vec<Settings>, ConfigError> {
    let mut prepared = Vec::new();
    let mut problems = Vec::new();
    for server in servers {
        match way_to(server, parent) {
            Ok(way) => {
                problems.extend(way.problem().cloned());
                prepared.push(Settings { config: Arc::new(server.clone()), way });
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.iter().any(Problem::is_error) { Err(ConfigError(problems)) } else { Ok(prepared) }
}

fn way_to(server: &ServerConfig, parent: &Environment) -> Result<Planned, Problem> {
    let problem = |key: &str, message: String, hint: Option<String>| Problem {
        severity: Severity::Error,
        source: server.position.source.to_string(),
        line: server.position.line,
        column: server.position.column,
        key: format!("servers.{}.{key}", server.name),
        message,
        hint,
    };
    if let Some(remote) = Remote::of(&server.transport, parent) {
        let remote = remote.map_err(|(key, message)| problem(key, message, None))?;
        let helper = helper_of(server, parent);
        let helper = helper.map_err(|message| problem("headersHelper", message, None))?;
        return Ok(Planned::Known(Arc::new(Way::Remote(remote.with_helper(helper)))));
    }
    let TransportConfig::Stdio { command, args, env, unset_env, cwd } = &server.transport else {
        return Err(problem("type", "no way to reach it".to_owned(), None));
    };
    let declared = env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    let env = process::child_environment(parent, server.inherit_env, &declared.collect());
    let mut env = env.map_err(|error| problem("env", error.to_string(), None))?;
    env.retain(|(name, _)| !unset_env.iter().any(|unset| name == unset.as_str()));
    let cwd = cwd.as_ref().map(|cwd| cwd.expose().as_path());
    let from = cwd.or(parent.current_dir()).unwrap_or(Path::new(".")).to_owned();
    // What is looked for and what is started are in the same place. One's own directory is inherited:
    // it need not be one that can be entered again.
    let own = std::env::current_dir().is_ok_and(|own| own == from);
    let cwd = cwd.map(Path::to_owned).or_else(|| (!own).then(|| from.clone()));
    let found = process::resolve(command.expose(), &env, &from).map_err(|error| {
        let message = error.quoting(command.as_written()).to_string();
        problem("command", message, Some("install it, or write its full path".to_owned()))
    });
    let args = args.iter().map(|arg| arg.expose().into()).collect();
    let bounds = Bounds::new(server.limits, server.sandbox.as_ref(), &from);
    let launch = |program| {
        let command = command.as_written().into();
        Launch { command, program, args, env, cwd, bounds }
    };
    match found {
        Ok(program) => Ok(Planned::Known(Arc::new(Way::Child(launch(program))))),
        Err(problem) if server.required => Err(problem),
        Err(problem) => {
            let problem = Problem { severity: Severity::Warning, ..problem };
            let (command, launch) = (command.expose().clone(), launch(PathBuf::new()));
            Ok(Planned::Absent(Arc::new(Absent { command, from, launch, problem })))
        }
    }
}

/// The program that prints headers for a remote server: it gets the short list of variables and what
/// it is asked for.
fn helper_of(server: &ServerConfig, parent: &Environment) -> Result<Option<Launch>, String> {
    let Some((program, args)) = server.headers_helper.split_first() else { return Ok(None) };
    let about = [("INNKEEPER_SERVER".to_owned(), server.name.clone())];
    let env = process::child_environment(parent, false, &about.into());
    let env = env.map_err(|error| error.to_string())?;
    let from = parent.current_dir().unwrap_or(Path::new("."));
    let found = process::resolve(program.expose(), &env, from);
    let found = found.map_err(|error| error.quoting(program.as_written()).to_string())?;
    let (command, cwd) = (program.as_written().into(), parent.current_dir().map(Path::to_owned));
    let args = args.iter().map(|arg| arg.expose().into()).collect();
    let bounds = Bounds::default();
    Ok(Some(Launch { command, program: found, args, env, cwd, bounds }))
}

//! Starts all servers: dependencies first, the rest side by side, all of them or none.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout_at};

use crate::config::{Config, ConfigError, Environment, Problem, Severity, TransportConfig};
use crate::error::{Lost, Phase, ServerFailure, StartError, StartReason};
use crate::registry::Registry;
use crate::server::launch::Launcher;
use crate::server::process::{self, Launch};
use crate::server::{Handle, Server, follow_changes, supervise};
use crate::shutdown;
use crate::tasks::Group;

/// After one server has failed, how long the failures of others are gathered, so that one start
/// reports all that is wrong.
const GATHER: Duration = Duration::from_secs(1);

/// Whether a server can be depended on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Open,
    Ready,
    Failed,
}

type Board = HashMap<Arc<str>, watch::Sender<Outcome>>;

/// Checks all commands, then starts everything or stops what was started.
pub(crate) async fn start_all(
    registry: &Arc<Registry>,
    launcher: Arc<Launcher>,
    config: &Config,
    environment: &Environment,
) -> Result<(), StartError> {
    let launches = prepare(config, environment)?;
    let ends = Instant::now() + config.host.start_timeout;
    let board: Board = registry
        .servers()
        .map(|server| (server.name.clone(), watch::Sender::new(Outcome::Open)))
        .collect();
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
        group.spawn(start.run(ends, config.host.start_timeout));
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
    launch: Arc<Launch>,
    board: Arc<Board>,
}

impl Start {
    /// Fails only for a required server; an optional one is marked unavailable.
    async fn run(self, ends: Instant, limit: Duration) -> Result<(), ServerFailure> {
        let result = timeout_at(ends, self.start()).await.unwrap_or_else(|_| {
            Err(ServerFailure {
                server: self.server.name.clone(),
                phase: Phase::Handshake,
                reason: StartReason::StartLimit(limit),
                stderr: String::new(),
                attempts: 1,
            })
        });
        let outcome = if result.is_ok() { Outcome::Ready } else { Outcome::Failed };
        if let Some(sender) = self.board.get(&self.server.name) {
            sender.send_replace(outcome);
        }
        let Err(failure) = result else { return Ok(()) };
        let (server, required) = (&*failure.server, self.server.config.required);
        let error: &dyn std::error::Error = &failure;
        tracing::error!(server, required, security = true, error, "start failed");
        let reason = format!("{} {}", failure.phase, failure.reason);
        self.registry.lost(&self.server, Lost::NotStarted(reason.into()));
        if required { Err(failure) } else { Ok(()) }
    }

    async fn start(&self) -> Result<(), ServerFailure> {
        self.dependencies().await?;
        let (running, shelf, took) = self.launcher.start(&self.server, &self.launch).await?;
        let (stop, orders) = mpsc::channel(1);
        let handle = Handle {
            pid: running.process.id(),
            isolation: running.process.isolation(),
            killer: running.process.killer(),
            stop,
            stderr: running.stderr.clone(),
        };
        let tasks = &self.launcher.tasks;
        let (registry, server) = (self.registry.clone(), self.server.clone());
        let (session, declared) = (running.session.clone(), running.declared.clone());
        tasks.spawn(supervise(registry, server, running, orders));
        let (registry, server) = (self.registry.clone(), self.server.clone());
        tasks.spawn(follow_changes(registry, server, session, declared));
        self.registry.ready(&self.server, shelf, handle, took);
        Ok(())
    }

    async fn dependencies(&self) -> Result<(), ServerFailure> {
        for dependency in &self.server.config.dependencies {
            let Some((name, sender)) = self.board.get_key_value(dependency.as_str()) else {
                continue;
            };
            let mut outcome = sender.subscribe();
            let settled = outcome.wait_for(|outcome| *outcome != Outcome::Open).await;
            if !settled.is_ok_and(|outcome| *outcome == Outcome::Ready) {
                return Err(ServerFailure {
                    server: self.server.name.clone(),
                    phase: Phase::Dependencies,
                    reason: StartReason::Dependency(name.clone()),
                    stderr: String::new(),
                    attempts: 0,
                });
            }
        }
        Ok(())
    }
}

/// Finds every program and makes every environment before anything is started (TR10.1, TR8.3).
pub(crate) fn prepare(
    config: &Config,
    parent: &Environment,
) -> Result<HashMap<Arc<str>, Arc<Launch>>, ConfigError> {
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
            let kind = server.transport.kind();
            let message = format!("transport `{kind}` is not available yet");
            let hint = "this version starts servers of type `stdio` only".to_owned();
            problems.push(problem("type", message, Some(hint)));
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
                let launch = Launch { command, program, args, env, cwd };
                launches.insert(name.as_str().into(), Arc::new(launch));
            }
            Err(error) => {
                let hint = "install it, or write its full path".to_owned();
                problems.push(problem("command", error.to_string(), Some(hint)));
            }
        }
    }
    if problems.is_empty() { Ok(launches) } else { Err(ConfigError(problems)) }
}

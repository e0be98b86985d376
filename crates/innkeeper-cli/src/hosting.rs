//! Runs a command with a host: start with progress, work, orderly shutdown.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::server_requests::ServerRequestHandler;
use innkeeper_gateway::GatewayBuilder;
use innkeeper_host::error::UnavailableReason;
use innkeeper_host::{
    Config, Host, HostBuilder, Lock, LogLevel, ServerState, ServerStatus, ShutdownReport,
    Supervisor,
};

use tokio::sync::SetOnce;

use crate::attach::{self, Attached, RequestedItem};
use crate::configuration::{ConfigFiles, LoadedConfig, print_warnings};
use crate::context::{CommandContext, listen_for_signals};
use crate::exit::{CliError, CliExitCode};
use crate::output::{Output, Style, escape_inline};
use crate::own_paths::own_paths;
use crate::progress;
use crate::redirect_listener::RedirectListener;
use crate::secret_mask::SecretMask;
use crate::shutdown_notice::await_shutdown;
use crate::signals::RunOutcome;
use crate::start_failure::{sign_in_hint, start_error};
use crate::state_dir::state_dir;
use crate::trust;

/// What a command hands to the host before the servers start, because the handshake tells the
/// servers.
#[derive(Debug, Default)]
pub(crate) struct HostOptions {
    /// Answers the requests of servers. Default: none, and the servers get no capability.
    pub(crate) server_requests: Option<ServerRequestHandler>,
    /// The level that the servers get for their log messages. Default: none.
    pub(crate) log_level: Option<LogLevel>,
    /// The gateway whose callbacks the host gets. Default: none.
    pub(crate) gateway: Option<GatewayBuilder>,
    /// The item of the command, if a running gateway can serve the command. Default: none, and the
    /// command starts its servers.
    pub(crate) attached_item: Option<RequestedItem>,
    /// Set at the first signal, after which the operation ends by itself. Default: the first signal
    /// drops the operation.
    pub(crate) stop: Option<Arc<SetOnce<()>>>,
    /// Signs the user in where a server requires it. Default: none, and such a server does not start.
    pub(crate) browser: Option<RedirectListener>,
}

/// Works like [`with_host_options`], without options.
pub(crate) async fn with_host<T>(
    context: &mut CommandContext,
    loaded: LoadedConfig,
    operation: impl AsyncFnOnce(&Host, &mut Output) -> Result<T, CliError>,
) -> Result<(T, ShutdownReport), CliError> {
    with_host_options(context, loaded, HostOptions::default(), operation).await
}

/// Prints the warnings of the configuration, starts its servers if they are trusted, runs the operation,
/// and shuts down. The first signal stops the operation and starts an orderly shutdown; the second
/// kills all processes.
pub(crate) async fn with_host_options<T>(
    context: &mut CommandContext,
    loaded: LoadedConfig,
    mut options: HostOptions,
    operation: impl AsyncFnOnce(&Host, &mut Output) -> Result<T, CliError>,
) -> Result<(T, ShutdownReport), CliError> {
    let LoadedConfig { config, files } = loaded;
    print_warnings(&mut context.output, &config.warnings)?;
    // Before the signal listener starts, so that a signal ends the program at the prompt or while
    // it waits for a file.
    trust::ensure_trusted(context, &config, files.to_approve.as_deref())?;
    context.output.secret_mask().add_config(&config);
    // A command for one server needs all servers of its selection.
    let server_count = if config.origin.is_selection() { 0 } else { config.servers.len() };
    let builder = host_builder(context, config, &files, &options).await?;
    let signals = listen_for_signals(&mut context.signals, &mut context.output)?;
    let signs_in = options.browser.is_some();
    let builder = match options.browser.take() {
        Some(browser) => builder.user_agent(browser),
        None => builder,
    };
    // Progress lines would overwrite the sign-in URL.
    let progress = (!signs_in).then(|| progress::show_progress(&context.output, builder.events()));
    let started = signals.run_until_signal(builder.start()).await;
    if let Some(progress) = progress {
        progress.clear();
    }
    let host = match started {
        RunOutcome::Completed(Ok(host)) => host,
        RunOutcome::Completed(Err(error)) => return Err(start_error(&error, server_count)),
        RunOutcome::Interrupted(signal) => return Err(CliError::from_signal(signal)),
    };
    let worked = {
        let is_done = Cell::new(false);
        let operation = async {
            let value = operation(&host, &mut context.output).await;
            is_done.set(true);
            value
        };
        tokio::pin!(operation);
        let worked = signals.run_until_signal(&mut operation).await;
        match (worked, &options.stop) {
            (RunOutcome::Interrupted(signal), Some(stop)) => {
                // A second signal drops the operation.
                let _ = stop.set(());
                // A signal during its last step interrupts work that is done.
                if !is_done.get() {
                    let _ = signals.run_until_signal(operation).await;
                }
                RunOutcome::Interrupted(signal)
            }
            (worked, _) => worked,
        }
    };
    let is_interrupted = matches!(worked, RunOutcome::Interrupted(_));
    let shutdown = await_shutdown(&host, &mut context.output, is_interrupted, host.shutdown());
    let stopped = signals.run_until_signal(shutdown).await;
    let (report, stop_signal) = match stopped {
        RunOutcome::Completed(report) => (report, None),
        RunOutcome::Interrupted(signal) => {
            host.kill();
            (host.shutdown().await, Some(signal))
        }
    };
    let warned = warn_leftovers(&report, &mut context.output);
    // After a signal, the result of the operation is not used.
    match (worked, stop_signal) {
        (RunOutcome::Interrupted(signal), _) | (RunOutcome::Completed(_), Some(signal)) => {
            Err(CliError::from_signal(signal))
        }
        (RunOutcome::Completed(value), None) => {
            warned?;
            value.map(|value| (value, report))
        }
    }
}

/// How long `serve` waits for servers before it serves those that are ready: a client gives up after 30
/// to 60 s, and many clients read the lists only once.
const SERVE_START_WAIT: Duration = Duration::from_secs(10);

/// Returns the builder of the command's host. If a running gateway can serve the command, the only
/// server of the host is that of the gateway.
async fn host_builder(
    context: &CommandContext,
    config: Config,
    files: &ConfigFiles,
    options: &HostOptions,
) -> Result<HostBuilder, CliError> {
    let attached = match (&files.digest, &options.attached_item) {
        (Some(digest), Some(item)) => {
            attach::connect(&context.environment, digest, &config, item.clone()).await
        }
        _ => None,
    };
    let preparation = HostPreparation::new(context, files)?;
    let builder = match attached {
        Some(Attached { config, server, stream }) => {
            preparation.apply_to_remote(Host::builder(config).connect(server, stream))
        }
        None => preparation.apply(Host::builder(config)),
    };
    let builder = match &options.server_requests {
        Some(handler) => handler.register(builder),
        None => builder,
    };
    let builder = match options.log_level {
        Some(level) => builder.log_level(level),
        None => builder,
    };
    Ok(match &options.gateway {
        Some(gateway) => gateway.register(builder).start_wait(SERVE_START_WAIT),
        None => builder,
    })
}

/// Runs the operation as [`with_host_options`] does, with the servers that start. If a server fails that the
/// configuration requires, the exit code is 1; the operation reports the server. With `--strict`,
/// the operation does not run in this case.
pub(crate) async fn with_available_servers(
    context: &mut CommandContext,
    loaded: LoadedConfig,
    options: HostOptions,
    operation: impl AsyncFnOnce(&Host, &mut Output) -> Result<(), CliError>,
) -> Result<(), CliError> {
    if context.global.strict {
        return with_host_options(context, loaded, options, operation).await.map(drop);
    }
    let config = &loaded.config;
    let servers = config.servers.iter().map(|(name, server)| (name, server.required));
    let invalid = config.invalid.iter().map(|(name, server)| (name, server.required));
    let required: HashSet<String> = servers
        .chain(invalid)
        .filter(|(_, is_required)| *is_required)
        .map(|(name, _)| name.clone())
        .collect();
    let loaded = loaded.map(Config::with_optional_servers);
    with_host_options(context, loaded, options, async |host, output| {
        let is_incomplete =
            failed_servers(host).iter().any(|failed| required.contains(&*failed.name));
        operation(host, output).await?;
        if is_incomplete {
            return Err(CliError::without_message(CliExitCode::Failed));
        }
        Ok(())
    })
    .await
    .map(drop)
}

/// Prints a line for each server that failed to stderr.
pub(crate) fn print_failed_servers(host: &Host, output: &mut Output) -> io::Result<()> {
    for server in failed_servers(host) {
        let name = escape_inline(&server.name);
        output.labelled_status(Style::Strong, &name, &server.reason)?;
        for hint in &server.hints {
            output.labelled_status(Style::Hint, "  hint", hint)?;
        }
    }
    Ok(())
}

/// Returns why each server of the host is not available, with masks over secrets; `None` for a ready
/// server.
pub(crate) fn server_failures(
    host: &Host,
    secret_mask: &SecretMask,
) -> BTreeMap<String, Option<String>> {
    host.status()
        .iter()
        .map(|(name, status)| (name.to_string(), failure(status, secret_mask)))
        .collect()
}

fn failure(status: &ServerStatus, secret_mask: &SecretMask) -> Option<String> {
    match status.state {
        ServerState::Ready => None,
        ServerState::Starting | ServerState::Unavailable | ServerState::Shutdown => {
            let reason = status.reason.as_deref().unwrap_or("not started");
            Some(secret_mask.apply(reason).into_owned())
        }
    }
}

/// Adds a line for each server that failed to an error: one of these servers may have the item that
/// the error is about. The exit code is then that of failed work.
pub(crate) fn with_failed_servers(error: CliError, host: &Host) -> CliError {
    let failed = failed_servers(host);
    if failed.is_empty() {
        return error;
    }
    failed.into_iter().fold(error.into_failure(), |error, server| {
        let error = error.with_detail(format!("{}: {}", server.name, server.reason));
        server.hints.into_iter().fold(error, CliError::with_hint)
    })
}

pub(crate) struct FailedServer {
    pub(crate) name: Arc<str>,
    pub(crate) reason: String,
    /// What the user can do.
    pub(crate) hints: Vec<String>,
}

/// Returns the servers that failed, in the order of the status.
pub(crate) fn failed_servers(host: &Host) -> Vec<FailedServer> {
    let status = host.status().into_iter();
    let failed = status.filter(|(_, server)| server.state == ServerState::Unavailable);
    failed.map(|(name, server)| FailedServer::from_status(name, server)).collect()
}

impl FailedServer {
    fn from_status(name: Arc<str>, status: ServerStatus) -> Self {
        let reason = describe_failure(&status);
        let sign_in = status.needs_user_sign_in;
        let sign_in = sign_in.then(|| sign_in_hint(&name));
        Self { reason, hints: status.start_hint.into_iter().chain(sign_in).collect(), name }
    }
}

/// Returns the state of an unavailable server with its reason.
fn describe_failure(status: &ServerStatus) -> String {
    match &status.unavailable_reason {
        Some(UnavailableReason::NotStarted(reason)) => format!("failed: {reason}"),
        Some(reason @ UnavailableReason::InvalidConfiguration(_)) => format!("failed: {reason}"),
        Some(reason) => format!("unavailable: {reason}"),
        None => "unavailable".to_owned(),
    }
}

pub(crate) fn warn_leftovers(report: &ShutdownReport, output: &mut Output) -> io::Result<()> {
    for server in report.servers.iter().filter(|server| server.leftovers) {
        let text = format!("cannot terminate all processes of server `{}`", server.server);
        output.labelled_status(Style::Note, "warning", &text)?;
    }
    Ok(())
}

/// The options of every host of a command: supervisor, directories and pins.
#[derive(Debug)]
pub(crate) struct HostPreparation {
    supervisor: Supervisor,
    state: Option<PathBuf>,
    /// What no sandbox may write.
    own_paths: Vec<PathBuf>,
    /// The lock beside the configuration, if the file exists.
    lock: Option<Lock>,
}

impl HostPreparation {
    pub(crate) fn new(context: &CommandContext, files: &ConfigFiles) -> Result<Self, CliError> {
        let lock = files.read_lock()?;
        let state = state_dir(&context.environment);
        Ok(Self { supervisor: supervisor()?, state, own_paths: own_paths(context), lock })
    }

    /// Completes the builder of a host that starts servers.
    pub(crate) fn apply(&self, builder: HostBuilder) -> HostBuilder {
        let builder = match &self.state {
            Some(state) => builder
                .ledger(state.join("running"))
                .token_directory(state.join("tokens"))
                .handshake_notes(state.join("handshakes")),
            None => builder,
        };
        self.apply_to_remote(builder.protect(self.own_paths.iter().cloned()))
    }

    /// Completes the builder of a host whose servers another program started.
    fn apply_to_remote(&self, builder: HostBuilder) -> HostBuilder {
        let builder = builder.supervisor(self.supervisor.clone());
        match &self.lock {
            Some(lock) => builder.pins(lock.clone(), lock.policy),
            None => builder,
        }
    }
}

/// Returns the supervisor of the servers: the program that the library contains, else this
/// executable.
pub(crate) fn supervisor() -> Result<Supervisor, CliError> {
    Supervisor::embedded().map_or_else(Supervisor::this_program, Ok).map_err(|error| {
        CliError::failure("cannot determine the executable path").with_source(error)
    })
}

/// Returns the number of servers whose tools the model may call.
pub(crate) fn ready_servers(host: &Host) -> usize {
    host.status().values().filter(|status| status.state == ServerState::Ready).count()
}

//! Runs a command with a host: start with progress, work, orderly shutdown.

use std::io;
use std::path::PathBuf;

use innkeeper_host::{Config, Environment, Host, Lock, ShutdownReport, Supervisor};

use crate::commands::{CommandContext, listen_for_signals};
use crate::exit::CliError;
use crate::output::{Output, Style};
use crate::pins;
use crate::progress;
use crate::signals::RunOutcome;
use crate::start_failure::start_error;
use crate::trust;

/// Starts the servers of `config` if they are trusted, runs the operation, and shuts down. The
/// first signal stops the operation and starts an orderly shutdown; the second signal kills all
/// processes.
pub(crate) async fn with_host<T>(
    context: &mut CommandContext,
    config: Config,
    operation: impl AsyncFnOnce(&Host, &mut Output) -> Result<T, CliError>,
) -> Result<(T, ShutdownReport), CliError> {
    // Before the signal listener starts, so that a signal ends the program at the prompt or while
    // it waits for a file.
    trust::ensure_trusted(context, &config)?;
    let pinned = load_lock(context)?;
    let signals = listen_for_signals(&mut context.signals, &mut context.output)?;
    let server_count = config.servers.len();
    let builder = Host::builder(config).supervisor(supervisor()?);
    let builder = match state_dir(&context.environment) {
        Some(state) => builder.ledger(state.join("running")).token_directory(state.join("tokens")),
        None => builder,
    };
    let signs_in = context.redirect_listener.is_some();
    let builder = match context.redirect_listener.take() {
        Some(browser) => builder.user_agent(browser),
        None => builder,
    };
    let builder = match pinned {
        Some(lock) => {
            let policy = lock.policy;
            builder.pins(lock, policy)
        }
        None => builder,
    };
    // Progress lines would overwrite the sign-in URL.
    let progress = (!signs_in).then(|| progress::show_progress(builder.events()));
    let started = signals.run_until_signal(builder.start()).await;
    if let Some(progress) = progress {
        progress.clear();
    }
    let host = match started {
        RunOutcome::Completed(Ok(host)) => host,
        RunOutcome::Completed(Err(error)) => return Err(start_error(&error, server_count)),
        RunOutcome::Interrupted(signal) => return Err(CliError::from_signal(signal)),
    };
    let worked = signals.run_until_signal(operation(&host, &mut context.output)).await;
    let stopped = signals.run_until_signal(host.shutdown()).await;
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

fn warn_leftovers(report: &ShutdownReport, output: &mut Output) -> io::Result<()> {
    for server in report.servers.iter().filter(|server| server.leftovers) {
        let text = format!("cannot terminate all processes of server `{}`", server.server);
        output.labelled_status(Style::Note, "warning", &text)?;
    }
    Ok(())
}

/// Loads the lock beside the configuration, if the file exists.
fn load_lock(context: &CommandContext) -> Result<Option<Lock>, CliError> {
    context.lock_file.as_deref().map_or(Ok(None), pins::read_lock)
}

/// Returns this executable as the supervisor of the servers.
fn supervisor() -> Result<Supervisor, CliError> {
    Supervisor::this_program().map_err(|error| {
        CliError::failure("cannot determine the executable path").with_source(error)
    })
}

/// Returns the directory for the process ledger, tokens and trust decisions, after the XDG base
/// directory specification.
pub(crate) fn state_dir(environment: &Environment) -> Option<PathBuf> {
    let state = match environment.get("XDG_STATE_HOME").filter(|path| path.starts_with('/')) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(environment.home()?).join(".local/state"),
    };
    Some(state.join("innkeeper"))
}

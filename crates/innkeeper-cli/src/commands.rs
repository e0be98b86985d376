//! One module per command, with the context that the commands share.

mod add;
mod ask;
mod call;
mod chat;
mod check;
mod completions;
mod demo;
mod doctor;
mod edit_server;
mod export_retries;
mod extract;
mod golden;
mod graph;
mod import;
mod lock;
mod log_stats;
mod login;
mod model;
mod prompt;
mod read;
#[cfg(unix)]
mod record;
#[cfg(unix)]
mod replay;
mod run_recording;
mod schema;
mod serve;
mod tools;
mod why;

use std::path::PathBuf;

use innkeeper_host::Environment;

use crate::cli::{GlobalOptions, HostCommand};
use crate::exit::CliError;
use crate::output::Output;
use crate::redirect_listener::RedirectListener;
use crate::service_manager::ServiceManager;
use crate::signals::{SignalListener, StopSignal};

pub(crate) use ask::print_failure as print_ask_failure;
pub(crate) use completions::completions;
pub(crate) use export_retries::export_retries;
pub(crate) use extract::extract;
pub(crate) use golden::golden;
pub(crate) use import::import;
pub(crate) use log_stats::log_stats;
pub(crate) use model::model;
#[cfg(unix)]
pub(crate) use record::record;
#[cfg(unix)]
pub(crate) use replay::replay;

/// The shared state of all commands that load a configuration.
#[derive(Debug)]
pub(crate) struct CommandContext {
    pub(crate) global: GlobalOptions,
    pub(crate) environment: Environment,
    pub(crate) output: Output,
    /// Path of the lock that the servers are verified against; set when the configuration is
    /// loaded.
    pub(crate) lock_file: Option<PathBuf>,
    /// The configuration file whose servers need the approval of the user.
    pub(crate) discovered_config: Option<PathBuf>,
    /// The name of the socket of a running gateway; set when a configuration is loaded that commands
    /// can share.
    pub(crate) config_digest: Option<String>,
    /// The interface of the service manager; only `serve` uses it.
    pub(crate) service_manager: ServiceManager,
    /// The listener for the sign-in redirect; only `login` sets this field.
    pub(crate) redirect_listener: Option<RedirectListener>,
    /// The signal listener, once signals no longer end the process.
    pub(crate) signals: Option<SignalListener>,
}

impl CommandContext {
    /// Returns the first signal since the listener started.
    pub(crate) fn first_signal(&mut self) -> Option<StopSignal> {
        self.signals.as_mut().and_then(SignalListener::received)
    }
}

/// Starts the signal listener on the first call, with writer threads so that a blocked output
/// delays no signal.
pub(crate) fn listen_for_signals<'s>(
    signals: &'s mut Option<SignalListener>,
    output: &mut Output,
) -> Result<&'s mut SignalListener, CliError> {
    let listening = match signals.take() {
        Some(listening) => Ok(listening),
        None => output.start_writer_threads().and_then(|cuts| SignalListener::listen(cuts.into())),
    };
    let listening = listening
        .map_err(|error| CliError::failure("cannot listen for signals").with_source(error))?;
    Ok(signals.insert(listening))
}

/// Runs one command with a configuration.
pub(crate) async fn run(
    context: &mut CommandContext,
    command: HostCommand,
) -> Result<(), CliError> {
    match command {
        HostCommand::Check => check::run(context),
        HostCommand::Tools(args) => tools::run(context, &args).await,
        HostCommand::Call(args) => call::run(context, &args).await,
        HostCommand::Prompt(args) => prompt::run(context, &args).await,
        HostCommand::Read(args) => read::run(context, &args).await,
        HostCommand::Graph => graph::run(context),
        HostCommand::Schema => schema::run(context),
        HostCommand::Lock(args) => lock::run(context, &args).await,
        HostCommand::Login(args) => login::run(context, &args).await,
        HostCommand::Why(args) => why::run(context, &args).await,
        HostCommand::Add(args) => add::run(context, &args),
        HostCommand::Remove(args) => edit_server::remove(context, &args),
        HostCommand::Enable(args) => edit_server::set_enabled(context, &args, true),
        HostCommand::Disable(args) => edit_server::set_enabled(context, &args, false),
        HostCommand::Doctor => doctor::run(context).await,
        HostCommand::Ask(args) => ask::run(context, &args).await,
        HostCommand::Chat(args) => chat::run(context, &args).await,
        HostCommand::Serve(args) => serve::run(context, &args).await,
        HostCommand::Demo(args) => demo::run(context, &args).await,
    }
}

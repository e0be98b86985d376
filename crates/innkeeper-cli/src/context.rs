//! What the commands share: options, environment, output and signals.

use innkeeper_host::Environment;

use crate::cli::GlobalOptions;
use crate::exit::CliError;
use crate::output::Output;
use crate::service_manager::ServiceManager;
use crate::signals::{SignalListener, StopSignal};

/// The shared state of all commands that load a configuration.
#[derive(Debug)]
pub(crate) struct CommandContext {
    pub(crate) global: GlobalOptions,
    pub(crate) environment: Environment,
    pub(crate) output: Output,
    /// The interface of the service manager; only `serve` uses it.
    pub(crate) service_manager: ServiceManager,
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

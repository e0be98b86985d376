//! SIGINT and SIGTERM: an orderly exit on the first signal, an immediate exit on the second.

use std::future::Future;
use std::io;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::exit_code::CliExitCode;
use crate::output::WriteCanceller;

/// Capacity of the signal channel; a third signal has no further effect.
const SIGNAL_CAPACITY: usize = 2;

/// Time for the program to exit after a second signal. A kill takes milliseconds; work that still
/// waits after this time would wait forever.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// A signal that stops the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// Ctrl-C, or SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl StopSignal {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

impl From<StopSignal> for CliExitCode {
    fn from(signal: StopSignal) -> Self {
        match signal {
            StopSignal::Interrupt => Self::Interrupted,
            StopSignal::Terminate => Self::Terminated,
        }
    }
}

/// The outcome of work that a signal can interrupt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RunOutcome<T> {
    /// The work completed.
    Completed(T),
    /// A signal arrived first; the work, or its result, was dropped.
    Interrupted(StopSignal),
}

/// A listener for the signals of the process.
///
/// From the start of the listener on, signals no longer end the process, even after the listener is
/// dropped: the caller must race its work against the signals. A thread receives the signals, so
/// that they arrive while the work blocks.
#[derive(Debug)]
pub(crate) struct SignalListener {
    receiver: Receiver<StopSignal>,
    first_signal: Option<StopSignal>,
}

impl SignalListener {
    /// Starts the listener. The first signal cancels the writes of the given [`WriteCanceller`]s.
    /// After a second signal, the process exits within [`EXIT_GRACE`], unless the listener is
    /// dropped before.
    pub(crate) fn listen(cuts: Vec<WriteCanceller>) -> io::Result<Self> {
        let (sender, signal_receiver) = channel(SIGNAL_CAPACITY);
        let (ready, started) = sync_channel(1);
        let thread = std::thread::Builder::new().name("innkeeper-signals".to_owned());
        thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let listening = runtime.and_then(|runtime| {
                let listener = runtime.block_on(async { OsSignalStream::new() })?;
                Ok((runtime, listener))
            });
            match listening {
                Ok((runtime, listener)) => {
                    let _ = ready.send(Ok(()));
                    runtime.block_on(forward_signals(listener, &sender, &cuts));
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        })?;
        started.recv().map_err(io::Error::other)??;
        Ok(Self { receiver: signal_receiver, first_signal: None })
    }

    /// Returns the first signal received, if any.
    pub(crate) fn received(&mut self) -> Option<StopSignal> {
        self.first_signal = self.first_signal.or_else(|| self.receiver.try_recv().ok());
        self.first_signal
    }

    /// Waits for the next signal; cancel-safe.
    async fn next(&mut self) -> StopSignal {
        match self.receiver.recv().await {
            Some(signal) => {
                self.first_signal.get_or_insert(signal);
                signal
            }
            None => std::future::pending().await,
        }
    }

    /// Runs a future until the future completes or the next signal arrives.
    ///
    /// Callers use this function once for the work and again for the shutdown, which a second
    /// signal then interrupts. Work that blocked while a signal arrived counts as interrupted.
    pub(crate) async fn run_until_signal<T>(
        &mut self,
        future: impl Future<Output = T>,
    ) -> RunOutcome<T> {
        let value = tokio::select! {
            biased;
            signal = self.next() => return RunOutcome::Interrupted(signal),
            value = future => value,
        };
        match self.receiver.try_recv() {
            Ok(signal) => {
                self.first_signal.get_or_insert(signal);
                RunOutcome::Interrupted(signal)
            }
            Err(_) => RunOutcome::Completed(value),
        }
    }
}

/// Forwards signals until the receiver is dropped.
async fn forward_signals(
    mut listener: OsSignalStream,
    sender: &Sender<StopSignal>,
    cuts: &[WriteCanceller],
) {
    let first = listener.next().await;
    // The channel has capacity for both signals; a closed channel needs none.
    sender.try_send(first).unwrap_or_default();
    cuts.iter().for_each(WriteCanceller::cancel);
    let second = listener.next().await;
    sender.try_send(second).unwrap_or_default();
    if tokio::time::timeout(EXIT_GRACE, sender.closed()).await.is_err() {
        exit_process(first);
    }
}

#[expect(clippy::exit, clippy::disallowed_methods, reason = "the main thread does not return")]
fn exit_process(signal: StopSignal) {
    // The supervisors detect the exit of the host and terminate its servers.
    std::process::exit(CliExitCode::from(signal) as i32)
}

/// The signal streams of the operating system.
#[derive(Debug)]
struct OsSignalStream {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
    #[cfg(windows)]
    terminate: tokio::signal::windows::CtrlShutdown,
}

impl OsSignalStream {
    /// Must be called in a runtime with a signal driver.
    #[cfg(unix)]
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Must be called in a runtime with a signal driver.
    #[cfg(windows)]
    fn new() -> io::Result<Self> {
        use tokio::signal::windows::{ctrl_c, ctrl_shutdown};
        Ok(Self { interrupt: ctrl_c()?, terminate: ctrl_shutdown()? })
    }

    async fn next(&mut self) -> StopSignal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => StopSignal::Interrupt,
            Some(()) = self.terminate.recv() => StopSignal::Terminate,
            else => std::future::pending().await,
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::future::pending;

    use rustix::process::{Signal as Unix, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn work_runs_until_a_first_signal_interrupts_it_and_a_second_interrupts_the_shutdown() {
        let mut signals = SignalListener::listen(Vec::new()).unwrap();
        assert_eq!(signals.run_until_signal(async { 7 }).await, RunOutcome::Completed(7));
        assert_eq!(signals.received(), None);
        kill_process(getpid(), Unix::INT).unwrap();
        assert_eq!(
            signals.run_until_signal(pending::<()>()).await,
            RunOutcome::Interrupted(StopSignal::Interrupt)
        );
        let closing = async {
            kill_process(getpid(), Unix::TERM).unwrap();
            pending::<()>().await;
        };
        assert_eq!(
            signals.run_until_signal(closing).await,
            RunOutcome::Interrupted(StopSignal::Terminate)
        );
        assert_eq!(signals.received(), Some(StopSignal::Interrupt), "the first one names the code");
    }
}

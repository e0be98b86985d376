//! Ctrl-C and termination: the first asks for an orderly end, the second for an immediate one.

use std::future::Future;
use std::io;

/// A request from outside to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C, or SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// How work under signals ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended<T> {
    /// By itself.
    Done(T),
    /// A signal came first; the work was dropped where it stood.
    Cut(Signal),
}

/// Signals of the process from the moment of listening on.
///
/// While this lives, and after, the signals no longer end the process by themselves: whoever
/// listens must race its work against them.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
    #[cfg(windows)]
    terminate: tokio::signal::windows::CtrlShutdown,
}

impl Signals {
    /// Starts to listen; must be called within a runtime that drives signals.
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Starts to listen; must be called within a runtime that drives signals.
    #[cfg(windows)]
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::windows::{ctrl_c, ctrl_shutdown};
        Ok(Self { interrupt: ctrl_c()?, terminate: ctrl_shutdown()? })
    }

    /// Waits for the next signal; losing the race against other work loses no signal.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            Some(()) = self.terminate.recv() => Signal::Terminate,
            else => std::future::pending().await,
        }
    }

    /// Runs `work` until it ends or the next signal comes.
    ///
    /// Called once around the work and, when that was cut, once more around its orderly end,
    /// which a second signal then cuts.
    pub(crate) async fn guard<T>(&mut self, work: impl Future<Output = T>) -> Ended<T> {
        tokio::select! {
            biased;
            signal = self.next() => Ended::Cut(signal),
            value = work => Ended::Done(value),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::future::pending;

    use rustix::process::{Signal as Unix, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn work_runs_until_a_first_signal_cuts_it_and_a_second_cuts_the_orderly_end() {
        let mut signals = Signals::listen().unwrap();
        assert_eq!(signals.guard(async { 7 }).await, Ended::Done(7));
        kill_process(getpid(), Unix::INT).unwrap();
        assert_eq!(signals.guard(pending::<()>()).await, Ended::Cut(Signal::Interrupt));
        let closing = async {
            kill_process(getpid(), Unix::TERM).unwrap();
            pending::<()>().await;
        };
        assert_eq!(signals.guard(closing).await, Ended::Cut(Signal::Terminate));
    }
}

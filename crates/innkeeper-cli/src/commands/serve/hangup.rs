//! SIGHUP: a request to reload, or the end of the terminal.

use std::io::{self, IsTerminal as _};

/// The signals of one process.
#[derive(Debug)]
pub(super) struct Hangups {
    #[cfg(unix)]
    signals: tokio::signal::unix::Signal,
    /// Whether stderr was a terminal at the start.
    had_terminal: bool,
}

impl Hangups {
    /// From now on, SIGHUP does not end the process.
    #[cfg(unix)]
    pub(super) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let had_terminal = io::stderr().is_terminal();
        Ok(Self { signals: signal(SignalKind::hangup())?, had_terminal })
    }

    #[cfg(not(unix))]
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self { had_terminal: io::stderr().is_terminal() })
    }

    /// Waits for the next signal; cancel-safe.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        if self.signals.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Returns whether the terminal has closed: the system sends the same signal then.
    pub(super) fn has_lost_terminal(&self) -> bool {
        self.had_terminal && !io::stderr().is_terminal()
    }
}

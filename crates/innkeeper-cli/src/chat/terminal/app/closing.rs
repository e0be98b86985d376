//! Tells that the terminal is closed, such as by the end of its window or of a remote connection.

use std::future::poll_fn;
use std::io;

use crossterm::event::{Event, EventStream};
use futures_util::stream::StreamExt as _;

/// Waits for the end of the terminal. The system sends SIGHUP only to a session whose controlling
/// terminal ends, so that a thread waits for the end itself.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct TerminalEnd {
    hangup: tokio::signal::unix::Signal,
    end: tokio::sync::oneshot::Receiver<()>,
}

#[cfg(unix)]
impl TerminalEnd {
    pub(super) fn watch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = signal(SignalKind::hangup())?;
        let (sender, end) = tokio::sync::oneshot::channel();
        let thread = std::thread::Builder::new().name("innkeeper-terminal".to_owned());
        thread.spawn(move || {
            while !is_closed(None) {}
            // The chat may already be over.
            sender.send(()).unwrap_or_default();
        })?;
        Ok(Self { hangup, end })
    }

    /// Returns when the terminal is closed; cancel-safe.
    pub(super) async fn closed(&mut self) {
        tokio::select! {
            Some(()) = self.hangup.recv() => {}
            Ok(()) = &mut self.end, if !self.end.is_terminated() => {}
            else => std::future::pending().await,
        }
    }
}

/// Whether the terminal of stdin is closed; waits for the end without a timeout.
#[cfg(unix)]
fn is_closed(timeout: Option<&rustix::event::Timespec>) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
    let end = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    poll(&mut watched, timeout).is_ok() && watched[0].revents().intersects(end)
}

/// Elsewhere, the events of the terminal end with an error.
#[cfg(not(unix))]
#[derive(Debug)]
pub(super) struct TerminalEnd(());

#[cfg(not(unix))]
impl TerminalEnd {
    pub(super) fn watch() -> io::Result<Self> {
        Ok(Self(()))
    }

    pub(super) async fn closed(&mut self) {
        std::future::pending().await
    }
}

/// Returns the next event of the terminal; `None` if the terminal is closed. `EventStream` reads a
/// closed terminal again and again without an end.
pub(super) async fn next_event(events: &mut EventStream) -> Option<io::Result<Event>> {
    poll_fn(|context| {
        #[cfg(unix)]
        if is_closed(Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })) {
            return std::task::Poll::Ready(None);
        }
        events.poll_next_unpin(context)
    })
    .await
}

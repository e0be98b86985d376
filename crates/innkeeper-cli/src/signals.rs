//! Ctrl-C and termination: the first asks for an orderly end, the second for an immediate one.

use std::future::Future;
use std::io;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::exit::Code;
use crate::output::Cut;

/// Signals that may wait to be looked at; the third has nothing left to ask for.
const ROOM: usize = 2;

/// How long the program has to end by itself after a second signal. What kills takes milliseconds;
/// what still waits then would wait for ever.
const GRACE: Duration = Duration::from_secs(2);

/// A request from outside to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C, or SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// What it is called.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// How work under signals ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended<T> {
    /// By itself.
    Done(T),
    /// A signal came first; the work was dropped where it stood, or what it gave back.
    Cut(Signal),
}

/// Signals of the process from the moment of listening on.
///
/// While this lives, and after, the signals no longer end the process by themselves: whoever
/// listens must race its work against them. A thread of its own hears them, so that they are heard
/// while the work blocks.
#[derive(Debug)]
pub(crate) struct Signals {
    heard: Receiver<Signal>,
    first: Option<Signal>,
}

impl Signals {
    /// Starts to listen. The first signal cuts `cuts`; after a second one, the process ends in
    /// [`GRACE`] at the latest, unless this is dropped before.
    pub(crate) fn listen(cuts: Vec<Cut>) -> io::Result<Self> {
        let (tell, heard) = channel(ROOM);
        let (ready, started) = sync_channel(1);
        let thread = std::thread::Builder::new().name("innkeeper-signals".to_owned());
        thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let listening = runtime.and_then(|runtime| {
                let listener = runtime.block_on(async { Listener::new() })?;
                Ok((runtime, listener))
            });
            match listening {
                Ok((runtime, listener)) => {
                    drop(ready.send(Ok(())));
                    runtime.block_on(hear(listener, &tell, &cuts));
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        })?;
        started.recv().map_err(io::Error::other)??;
        Ok(Self { heard, first: None })
    }

    /// The first signal that came, if any has.
    pub(crate) fn came(&mut self) -> Option<Signal> {
        self.first = self.first.or_else(|| self.heard.try_recv().ok());
        self.first
    }

    /// Waits for the next signal; losing the race against other work loses no signal.
    async fn next(&mut self) -> Signal {
        match self.heard.recv().await {
            Some(signal) => {
                self.first.get_or_insert(signal);
                signal
            }
            None => std::future::pending().await,
        }
    }

    /// Runs `work` until it ends or the next signal comes.
    ///
    /// Called once around the work and, when that was cut, once more around its orderly end,
    /// which a second signal then cuts. Work that blocked while a signal came is cut as well.
    pub(crate) async fn guard<T>(&mut self, work: impl Future<Output = T>) -> Ended<T> {
        let value = tokio::select! {
            biased;
            signal = self.next() => return Ended::Cut(signal),
            value = work => value,
        };
        match self.heard.try_recv() {
            Ok(signal) => {
                self.first.get_or_insert(signal);
                Ended::Cut(signal)
            }
            Err(_) => Ended::Done(value),
        }
    }
}

/// Passes signals on until nobody wants them.
async fn hear(mut listener: Listener, tell: &Sender<Signal>, cuts: &[Cut]) {
    let first = listener.next().await;
    // There is room, and nobody to tell where nobody listens any more.
    tell.try_send(first).unwrap_or_default();
    cuts.iter().for_each(Cut::cut);
    let second = listener.next().await;
    tell.try_send(second).unwrap_or_default();
    if tokio::time::timeout(GRACE, tell.closed()).await.is_err() {
        leave(first);
    }
}

#[expect(clippy::exit, clippy::disallowed_methods, reason = "the main thread does not come back")]
fn leave(signal: Signal) {
    // The supervisors see their host go, and end what it started.
    std::process::exit(Code::from(signal) as i32)
}

/// What the system tells of signals.
#[derive(Debug)]
struct Listener {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
    #[cfg(windows)]
    terminate: tokio::signal::windows::CtrlShutdown,
}

impl Listener {
    /// Must be made within a runtime that drives signals.
    #[cfg(unix)]
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Must be made within a runtime that drives signals.
    #[cfg(windows)]
    fn new() -> io::Result<Self> {
        use tokio::signal::windows::{ctrl_c, ctrl_shutdown};
        Ok(Self { interrupt: ctrl_c()?, terminate: ctrl_shutdown()? })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            Some(()) = self.terminate.recv() => Signal::Terminate,
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
    async fn work_runs_until_a_first_signal_cuts_it_and_a_second_cuts_the_orderly_end() {
        let mut signals = Signals::listen(Vec::new()).unwrap();
        assert_eq!(signals.guard(async { 7 }).await, Ended::Done(7));
        assert_eq!(signals.came(), None);
        kill_process(getpid(), Unix::INT).unwrap();
        assert_eq!(signals.guard(pending::<()>()).await, Ended::Cut(Signal::Interrupt));
        let closing = async {
            kill_process(getpid(), Unix::TERM).unwrap();
            pending::<()>().await;
        };
        assert_eq!(signals.guard(closing).await, Ended::Cut(Signal::Terminate));
        assert_eq!(signals.came(), Some(Signal::Interrupt), "the first one names the code");
    }
}

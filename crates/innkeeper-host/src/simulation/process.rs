//! A process of the simulation: it can be waited for, asked to end and killed, as a real one.

use std::sync::Arc;

use tokio::sync::watch;

use crate::server::process::Exit;

/// What a process was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Signal {
    Nothing,
    Terminate,
    Kill,
}

/// How far it is with its life.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    Running,
    Exited(Exit),
    Gone(Exit),
}

/// The host's hold on a process; dropping it kills.
#[derive(Debug)]
pub(crate) struct Process {
    id: u32,
    signal: Arc<watch::Sender<Signal>>,
    state: watch::Receiver<State>,
}

/// Kills a process, if it still runs.
#[derive(Clone, Debug)]
pub(crate) struct Killer(Arc<watch::Sender<Signal>>);

impl Killer {
    pub(crate) fn kill(&self) {
        self.0.send_replace(Signal::Kill);
    }
}

/// The end of a process that lives it.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) signal: watch::Receiver<Signal>,
    pub(super) state: watch::Sender<State>,
}

impl Process {
    pub(super) fn new(id: u32) -> (Self, Life) {
        let (signal, told) = watch::channel(Signal::Nothing);
        let (tell, state) = watch::channel(State::Running);
        let life = Life { signal: told, state: tell };
        (Self { id, signal: Arc::new(signal), state }, life)
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        match *self.state.borrow() {
            State::Running => None,
            State::Exited(exit) | State::Gone(exit) => Some(exit),
        }
    }

    pub(crate) async fn exited(&mut self) -> Exit {
        drop(self.state.wait_for(|state| !matches!(state, State::Running)).await);
        self.exit().unwrap_or(Exit::Unknown)
    }

    pub(crate) async fn gone(&mut self) {
        drop(self.state.wait_for(|state| matches!(state, State::Gone(_))).await);
    }

    pub(crate) fn terminate(&self) {
        self.signal.send_if_modified(|signal| {
            let later = *signal < Signal::Terminate;
            *signal = (*signal).max(Signal::Terminate);
            later
        });
    }

    pub(crate) fn kill(&self) {
        self.killer().kill();
    }

    pub(crate) fn killer(&self) -> Killer {
        Killer(self.signal.clone())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

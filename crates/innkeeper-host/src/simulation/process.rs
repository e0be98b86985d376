//! A simulated process with wait, terminate and kill.

use std::sync::Arc;

use tokio::sync::watch;

use crate::process::ExitStatus;

/// The signal that the host sent to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProcessSignal {
    NotSent,
    Terminate,
    Kill,
}

/// The state of a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProcessState {
    Running,
    Exited(ExitStatus),
    TreeExited(ExitStatus),
}

/// The host's handle to a process. Kills the process when dropped.
#[derive(Debug)]
pub(crate) struct SimulatedProcess {
    id: u32,
    signal: Arc<watch::Sender<ProcessSignal>>,
    state: watch::Receiver<ProcessState>,
}

/// Kills a process if the process still runs.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedKillHandle(Arc<watch::Sender<ProcessSignal>>);

impl SimulatedKillHandle {
    pub(crate) fn kill(&self) {
        self.0.send_replace(ProcessSignal::Kill);
    }
}

/// The process's own end of the handle.
#[derive(Debug)]
pub(super) struct ProcessControl {
    pub(super) signal: watch::Receiver<ProcessSignal>,
    pub(super) state: watch::Sender<ProcessState>,
}

impl SimulatedProcess {
    pub(super) fn new(id: u32) -> (Self, ProcessControl) {
        let (signal, signal_receiver) = watch::channel(ProcessSignal::NotSent);
        let (state_sender, state) = watch::channel(ProcessState::Running);
        let control = ProcessControl { signal: signal_receiver, state: state_sender };
        (Self { id, signal: Arc::new(signal), state }, control)
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn exit(&self) -> Option<ExitStatus> {
        match *self.state.borrow() {
            ProcessState::Running => None,
            ProcessState::Exited(status) | ProcessState::TreeExited(status) => Some(status),
        }
    }

    pub(crate) async fn wait(&mut self) -> ExitStatus {
        drop(self.state.wait_for(|state| !matches!(state, ProcessState::Running)).await);
        self.exit().unwrap_or(ExitStatus::Unknown)
    }

    pub(crate) async fn wait_tree(&mut self) {
        drop(self.state.wait_for(|state| matches!(state, ProcessState::TreeExited(_))).await);
    }

    pub(crate) fn terminate(&self) {
        self.signal.send_if_modified(|signal| {
            let changed = *signal < ProcessSignal::Terminate;
            *signal = (*signal).max(ProcessSignal::Terminate);
            changed
        });
    }

    pub(crate) fn kill(&self) {
        self.kill_handle().kill();
    }

    pub(crate) fn kill_handle(&self) -> SimulatedKillHandle {
        SimulatedKillHandle(self.signal.clone())
    }
}

impl Drop for SimulatedProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

//! A simulated process with wait, terminate and kill.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use innkeeper_process::{ExitStatus, KillHandle, LaunchProbe, ProcessContainment, ServerProcess};
use tokio::sync::watch;

/// The signal that the host sent to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProcessSignal {
    NotSent,
    Terminate,
    Kill,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ProcessState {
    Running,
    Exited(ExitStatus),
    TreeExited(ExitStatus),
}

/// The host's handle to a process. Kills the process when dropped.
#[derive(Debug)]
pub(super) struct SimulatedProcess {
    id: u32,
    signal: Arc<watch::Sender<ProcessSignal>>,
    state: watch::Receiver<ProcessState>,
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
}

impl ServerProcess for SimulatedProcess {
    fn id(&self) -> u32 {
        self.id
    }

    fn containment(&self) -> ProcessContainment {
        ProcessContainment::Group
    }

    fn wait(&mut self) -> BoxFuture<'_, ExitStatus> {
        Box::pin(async {
            let _ = self.state.wait_for(|state| !matches!(state, ProcessState::Running)).await;
            self.exit_status().unwrap_or(ExitStatus::Unknown)
        })
    }

    fn exit_status(&self) -> Option<ExitStatus> {
        match *self.state.borrow() {
            ProcessState::Running => None,
            ProcessState::Exited(status) | ProcessState::TreeExited(status) => Some(status),
        }
    }

    fn terminate(&self) {
        self.signal.send_if_modified(|signal| {
            let changed = *signal < ProcessSignal::Terminate;
            *signal = (*signal).max(ProcessSignal::Terminate);
            changed
        });
    }

    fn kill(&self) {
        self.signal.send_replace(ProcessSignal::Kill);
    }

    fn wait_tree(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let _ = self.state.wait_for(|state| matches!(state, ProcessState::TreeExited(_))).await;
        })
    }

    fn kill_handle(&self) -> KillHandle {
        let signal = self.signal.clone();
        KillHandle::new(move || {
            signal.send_replace(ProcessSignal::Kill);
        })
    }

    fn has_started(&self, _launching: &mut LaunchProbe) -> Option<bool> {
        None
    }
}

impl Drop for SimulatedProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

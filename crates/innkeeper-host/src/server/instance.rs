//! A running server: a local process tree, a remote connection or an in-process connection.

use innkeeper_process::{ExitStatus, KillHandle, LaunchProbe, ProcessContainment, ServerProcess};
use tokio::sync::oneshot;

use super::in_process::InProcessConnection;

/// The part of a running server that must be terminated.
#[derive(Debug)]
pub(crate) enum ServerInstance {
    /// A child process with its descendants.
    Child(Box<dyn ServerProcess>),
    /// A connection; the receiver resolves when the connection ends, and is `None` afterwards.
    Connection(Option<oneshot::Receiver<()>>),
    /// A connection to a server in the process of the application.
    InProcess(InProcessConnection),
}

impl ServerInstance {
    pub(crate) fn id(&self) -> Option<u32> {
        self.child().map(ServerProcess::id)
    }

    /// Returns how the process tree is contained.
    pub(crate) fn containment(&self) -> Option<ProcessContainment> {
        self.child().map(ServerProcess::containment)
    }

    /// Returns a handle that can kill the tree.
    pub(crate) fn kill_handle(&self) -> Option<KillHandle> {
        self.child().map(ServerProcess::kill_handle)
    }

    fn child(&self) -> Option<&dyn ServerProcess> {
        match self {
            Self::Child(process) => Some(&**process),
            Self::Connection(_) | Self::InProcess(_) => None,
        }
    }

    /// Waits until the process exits. Never completes for a server without a process.
    pub(crate) async fn wait(&mut self) -> ExitStatus {
        match self {
            Self::Child(process) => process.wait().await,
            Self::Connection(_) | Self::InProcess(_) => std::future::pending().await,
        }
    }

    /// Kills the process tree, or drops the host's end of an in-process connection; a connection to
    /// a remote server ends with its session.
    pub(crate) fn kill(&self) {
        match self {
            Self::Child(process) => process.kill(),
            Self::Connection(_) => {}
            Self::InProcess(connection) => connection.disconnect(),
        }
    }

    /// Waits until the process tree or the connection is gone.
    pub(crate) async fn wait_tree(&mut self) {
        match self {
            Self::Child(process) => process.wait_tree().await,
            Self::Connection(ended) => {
                if let Some(open) = ended {
                    // The sender never sends; the receiver resolves when the sender is dropped.
                    let _dropped = open.await;
                    *ended = None;
                }
            }
            Self::InProcess(connection) => connection.ended().await,
        }
    }

    /// Returns whether a launcher has started the server itself; `None` if the system does not
    /// report it.
    pub(crate) fn has_started(&self, launching: &mut LaunchProbe) -> Option<bool> {
        self.child().and_then(|process| process.has_started(launching))
    }
}

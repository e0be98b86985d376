//! A running server: a local process tree or a remote connection.

use tokio::sync::oneshot;

use crate::process::{ExitStatus, KillHandle, LaunchProbe, ProcessContainment, ServerProcess};

/// The part of a running server that must be terminated.
#[derive(Debug)]
pub(crate) enum ServerInstance {
    /// A child process with its descendants.
    Child(Box<dyn ServerProcess>),
    /// A connection; the receiver resolves when the connection ends, and is `None` afterwards.
    Connection(Option<oneshot::Receiver<()>>),
}

impl ServerInstance {
    /// Returns the id of the server process.
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
            Self::Connection(_) => None,
        }
    }

    /// Waits until the process exits. The exit status of a remote server is unknown.
    pub(crate) async fn wait(&mut self) -> ExitStatus {
        match self {
            Self::Child(process) => process.wait().await,
            Self::Connection(_) => std::future::pending().await,
        }
    }

    /// Kills the process tree; a connection ends with its session.
    pub(crate) fn kill(&self) {
        if let Some(process) = self.child() {
            process.kill();
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
        }
    }

    /// Returns whether a launcher has started the server itself; `None` if the system does not
    /// report it.
    pub(crate) fn has_started(&self, launching: &mut LaunchProbe) -> Option<bool> {
        self.child().and_then(|process| process.has_started(launching))
    }
}

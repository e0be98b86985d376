//! What a server lives in: a process tree of this machine, or a connection to somewhere else.

use tokio::sync::oneshot;

use super::process::{Exit, Isolation, Killer, Launching, Process};

/// The part of a running server that has to be ended.
#[derive(Debug)]
pub(crate) enum Body {
    /// A child process and all it starts.
    Child(Process),
    /// A connection; it is over when the receiver's other end is gone, and that was seen.
    Connection(Option<oneshot::Receiver<()>>),
}

impl Body {
    /// The process id of the server itself.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child().map(Process::id)
    }

    /// What keeps the process tree together.
    pub(crate) fn isolation(&self) -> Option<Isolation> {
        self.child().map(Process::isolation)
    }

    /// A handle that can kill the tree.
    pub(crate) fn killer(&self) -> Option<Killer> {
        self.child().map(Process::killer)
    }

    fn child(&self) -> Option<&Process> {
        match self {
            Self::Child(process) => Some(process),
            Self::Connection(_) => None,
        }
    }

    /// Waits until the process has ended. The process of a remote server is not ours to see.
    pub(crate) async fn exited(&mut self) -> Exit {
        match self {
            Self::Child(process) => process.exited().await,
            Self::Connection(_) => std::future::pending().await,
        }
    }

    /// Kills the process tree; a connection ends with its session.
    pub(crate) fn kill(&self) {
        if let Some(process) = self.child() {
            process.kill();
        }
    }

    /// Waits until nothing is left.
    pub(crate) async fn gone(&mut self) {
        match self {
            Self::Child(process) => process.gone().await,
            Self::Connection(ended) => {
                if let Some(open) = ended {
                    // The other end is dropped, nothing is ever sent.
                    let _dropped = open.await;
                    *ended = None;
                }
            }
        }
    }

    /// Whether a launcher has started the server itself; `None` where that is not told.
    pub(crate) fn has_started(&self, launching: &mut Launching) -> Option<bool> {
        self.child().and_then(|process| process.has_started(launching))
    }
}

//! The report of one stopped server.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_process::{ExitStatus, ProcessStopStage};
use serde::Serialize;

/// The stage at which a server stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopStage {
    /// The server exited after its input was closed.
    OnEof,
    /// The server exited after SIGTERM.
    OnTerm,
    /// The server was killed.
    OnKill,
    /// The connection was closed; the host does not manage the process of a remote or in-process
    /// server.
    Disconnected,
    /// The server had already exited.
    AlreadyGone,
}

impl StopStage {
    /// Returns the name used in JSON and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnEof => "on-eof",
            Self::OnTerm => "on-term",
            Self::OnKill => "on-kill",
            Self::Disconnected => "disconnected",
            Self::AlreadyGone => "already-gone",
        }
    }
}

impl From<ProcessStopStage> for StopStage {
    fn from(stopped: ProcessStopStage) -> Self {
        match stopped {
            ProcessStopStage::OnEof => Self::OnEof,
            ProcessStopStage::OnTerm => Self::OnTerm,
            ProcessStopStage::OnKill => Self::OnKill,
        }
    }
}

/// The report of one stopped server.
#[derive(Clone, Debug)]
pub struct ServerStopReport {
    /// Name of the server.
    pub server: Arc<str>,
    /// Stage at which the server stopped.
    pub stage: StopStage,
    /// Exit status of the process; `None` for a remote or in-process server.
    pub exit: Option<ExitStatus>,
    /// Time from closing the input until the server was gone.
    pub took: Duration,
    /// Whether processes of its tree could not be terminated in time.
    pub leftovers: bool,
}

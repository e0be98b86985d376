//! Stops a server in stages: end of file, termination request, kill.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{ExitStatus, ServerProcess};

/// The stage at which a server stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessStopStage {
    /// The server exited after its input was closed.
    OnEof,
    /// The process tree exited after the termination request.
    OnTerm,
    /// The process tree was killed.
    OnKill,
}

/// The report of a stopped server.
#[derive(Clone, Copy, Debug)]
pub struct StopReport {
    /// Stage at which the server stopped.
    pub stage: ProcessStopStage,
    /// Exit status of the main process.
    pub exit: ExitStatus,
    /// Time from closing the input until the process tree was gone.
    pub took: Duration,
    /// Whether processes remained when the wait ended.
    pub leftovers: bool,
}

/// Stops a server within `grace` and `exit_grace`: calls `stdin` to close the input, sends a
/// termination request after half of the grace period, and kills the tree at its end. A killed tree
/// has `exit_grace` to exit.
///
/// Dropping the future leaves the process unchanged; dropping the process kills the tree.
pub async fn stop(
    process: &mut dyn ServerProcess,
    stdin: impl FnOnce(),
    grace: Duration,
    exit_grace: Duration,
) -> StopReport {
    let started = Instant::now();
    let half = grace / 2;
    stdin();
    let mut stage = ProcessStopStage::OnEof;
    if timeout(half, process.wait()).await.is_err() {
        stage = ProcessStopStage::OnTerm;
        process.terminate();
        if timeout(half, process.wait_tree()).await.is_err() {
            stage = ProcessStopStage::OnKill;
            process.kill();
        }
    }
    let leftovers = timeout(exit_grace, process.wait_tree()).await.is_err();
    let exit = process.exit_status().unwrap_or(ExitStatus::Unknown);
    StopReport { stage, exit, took: started.elapsed(), leftovers }
}

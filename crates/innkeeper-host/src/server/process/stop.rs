//! The staged stop of one server: end of file, then a request, then force.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{Exit, Process};

/// How long the tree may take to disappear once it was killed; the wait ends then, whatever the
/// system does, so that a shutdown stays within its grace and one second.
const KILL_LIMIT: Duration = Duration::from_secs(1);

/// What it took to stop a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::enum_variant_names, reason = "read as `stopped on end of file`")]
pub(crate) enum Stopped {
    /// It left when its input was closed.
    OnEof,
    /// The tree left when it was asked to.
    OnTerm,
    /// The tree was killed.
    OnKill,
}

/// How one server was stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopReport {
    /// What it took.
    pub(crate) how: Stopped,
    /// How its main process ended.
    pub(crate) exit: Exit,
    /// From the closing of its input until its tree was gone.
    pub(crate) took: Duration,
    /// Whether something was still there when the wait ended.
    pub(crate) leftovers: bool,
}

/// Stops a server within `grace` and one second: calls `stdin`, which closes its input; asks the
/// tree to end after half the grace; kills it after the other half.
///
/// Dropping the future leaves the process as it is; dropping the process kills the tree.
pub(crate) async fn stop(
    process: &mut Process,
    stdin: impl FnOnce(),
    grace: Duration,
) -> StopReport {
    let started = Instant::now();
    let half = grace / 2;
    stdin();
    let mut how = Stopped::OnEof;
    if timeout(half, process.exited()).await.is_err() {
        how = Stopped::OnTerm;
        process.terminate();
        if timeout(half, process.gone()).await.is_err() {
            how = Stopped::OnKill;
            process.kill();
        }
    }
    let leftovers = timeout(KILL_LIMIT, process.gone()).await.is_err();
    let exit = process.exit().unwrap_or(Exit::Unknown);
    StopReport { how, exit, took: started.elapsed(), leftovers }
}

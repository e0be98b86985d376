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

/// The durations of the stages of a stop.
#[derive(Clone, Copy, Debug)]
pub struct StopTimes {
    /// Time from the end of the input to the termination request.
    pub eof_grace: Duration,
    /// Time from the termination request to the kill.
    pub term_grace: Duration,
    /// Time for a killed tree to exit.
    pub exit_grace: Duration,
}

impl StopTimes {
    /// Divides a grace period into halves before and after the termination request.
    pub fn halves(grace: Duration, exit_grace: Duration) -> Self {
        Self { eof_grace: grace / 2, term_grace: grace / 2, exit_grace }
    }

    /// Moves the termination request to this time after the end of the input if it is later; the
    /// time of the kill stays.
    #[must_use]
    pub fn with_max_eof_grace(self, max: Duration) -> Self {
        let eof_grace = self.eof_grace.min(max);
        Self { eof_grace, term_grace: self.term_grace + (self.eof_grace - eof_grace), ..self }
    }
}

/// Stops a server in the given times: calls `stdin` to close the input, sends a termination request,
/// and kills the tree.
///
/// Dropping the future leaves the process unchanged; dropping the process kills the tree.
pub async fn stop(
    process: &mut dyn ServerProcess,
    stdin: impl FnOnce(),
    times: StopTimes,
) -> StopReport {
    let started = Instant::now();
    let StopTimes { eof_grace, term_grace, exit_grace } = times;
    stdin();
    let mut stage = ProcessStopStage::OnEof;
    if timeout(eof_grace, process.wait()).await.is_err() {
        stage = ProcessStopStage::OnTerm;
        process.terminate();
        if timeout(term_grace, process.wait_tree()).await.is_err() {
            stage = ProcessStopStage::OnKill;
            process.kill();
        }
    }
    let leftovers = timeout(exit_grace, process.wait_tree()).await.is_err();
    let exit = process.exit_status().unwrap_or(ExitStatus::Unknown);
    StopReport { stage, exit, took: started.elapsed(), leftovers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_termination_request_does_not_move_the_kill() {
        let seconds = Duration::from_secs;
        let times = StopTimes::halves(seconds(10), seconds(1));
        assert_eq!((times.eof_grace, times.term_grace), (seconds(5), seconds(5)));
        let earlier = times.with_max_eof_grace(seconds(1));
        assert_eq!((earlier.eof_grace, earlier.term_grace), (seconds(1), seconds(9)));
        let unchanged = times.with_max_eof_grace(seconds(6));
        assert_eq!((unchanged.eof_grace, unchanged.term_grace), (seconds(5), seconds(5)));
    }
}

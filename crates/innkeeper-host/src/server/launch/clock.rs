//! The deadlines of one server's start.

use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::STDERR_GRACE;
use crate::error::{CallError, CallErrorKind, StartFailureReason};
use crate::server::instance::ServerInstance;

/// A timeout with the deadline that results from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartDeadline {
    pub(crate) deadline: Instant,
    pub(crate) timeout: Duration,
}

/// The deadlines of one server's start. A package installation has a separate timeout: its time
/// counts neither against the server's timeout nor against the timeout of all servers.
pub(super) struct StartClock {
    pub(super) server_deadline: StartDeadline,
    pub(super) install_remaining: Duration,
    /// Timeout reported for an unfinished installation.
    pub(super) install_timeout: Duration,
    /// Deadline of all servers together.
    pub(super) overall_deadline: StartDeadline,
}

impl StartClock {
    /// Excludes the time since the given instant, which was spent on a package installation.
    pub(super) fn exclude_install_time(&mut self, install_started: Instant) {
        let elapsed = install_started.elapsed();
        self.server_deadline.deadline += elapsed;
        self.overall_deadline.deadline += elapsed;
        self.install_remaining = self.install_remaining.saturating_sub(elapsed);
    }

    pub(super) fn deadline(&self) -> Instant {
        self.server_deadline.deadline.min(self.overall_deadline.deadline)
    }

    /// Returns the reason for a start that timed out.
    pub(super) fn timeout_reason(&self) -> StartFailureReason {
        if self.overall_deadline.deadline < self.server_deadline.deadline {
            StartFailureReason::StartTimeout(self.overall_deadline.timeout)
        } else {
            StartFailureReason::TimedOut(self.server_deadline.timeout)
        }
    }
}

/// Runs a part of the start until the process exits or the deadline passes.
pub(super) async fn run_while_alive<T>(
    body: &mut ServerInstance,
    clock: &StartClock,
    operation: impl Future<Output = Result<T, CallError>>,
) -> Result<T, StartFailureReason> {
    tokio::pin!(operation);
    let result = tokio::select! {
        biased;
        result = timeout_at(clock.deadline(), &mut operation) => result,
        exit = body.wait() => {
            // Output written before the exit is still valid.
            let rest = timeout(STDERR_GRACE, &mut operation).await;
            return match rest {
                Ok(Ok(value)) => Ok(value),
                Ok(Err(error)) if error.kind() != CallErrorKind::Unavailable => {
                    Err(StartFailureReason::Call(Box::new(error)))
                }
                Ok(Err(_)) | Err(_) => Err(StartFailureReason::Exited(exit)),
            };
        }
    };
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if error.kind() == CallErrorKind::Unavailable && body.id().is_some() => {
            let exit = timeout(STDERR_GRACE, body.wait()).await;
            Err(exit.map_or_else(
                |_| StartFailureReason::Call(Box::new(error)),
                StartFailureReason::Exited,
            ))
        }
        Ok(Err(error)) if error.kind() == CallErrorKind::Timeout => Err(clock.timeout_reason()),
        Ok(Err(error)) => Err(StartFailureReason::Call(Box::new(error))),
        Err(_) => Err(clock.timeout_reason()),
    }
}

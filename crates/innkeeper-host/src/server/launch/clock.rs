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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn clock() -> StartClock {
        let hour = Duration::from_hours(1);
        let deadline = StartDeadline { deadline: Instant::now() + hour, timeout: hour };
        StartClock {
            server_deadline: deadline,
            install_remaining: hour,
            install_timeout: hour,
            overall_deadline: deadline,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_deadline_is_the_reason_and_an_installation_does_not_count() {
        let (mut clock, second) = (clock(), Duration::from_secs(1));
        assert!(matches!(clock.timeout_reason(), StartFailureReason::TimedOut(_)));
        clock.overall_deadline.deadline -= second;
        assert!(matches!(clock.timeout_reason(), StartFailureReason::StartTimeout(_)));
        let (before, install_started) = (clock.deadline(), Instant::now());
        assert_eq!(before, clock.overall_deadline.deadline);
        tokio::time::advance(second).await;
        clock.exclude_install_time(install_started);
        assert_eq!(clock.deadline(), before + second);
        assert_eq!(clock.server_deadline.deadline, before + second * 2);
        assert_eq!(clock.install_remaining, clock.install_timeout - second);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_end_of_the_process_explains_a_lost_connection_and_no_other_error() {
        use innkeeper_process::{Confinement, ProcessSpec, Supervisor, spawn};

        use crate::error::UnavailableReason;

        let server: Arc<str> = "fx".into();
        let lost = || CallError::Unavailable {
            server: server.clone(),
            reason: UnavailableReason::ClosedOutput,
            may_have_run: true,
            attempts: 1,
        };
        let late = || CallError::Timeout {
            server: server.clone(),
            item: "initialize".into(),
            timeout: Duration::from_secs(1),
            is_total: false,
        };
        for (script, error, expected) in [
            ("sleep 0.05; exit 3", lost(), "process ended with exit code 3"),
            ("exec sleep 60", lost(), "the server closed its output"),
            ("exec sleep 60", late(), "not ready within 3600 s"),
        ] {
            let spec = ProcessSpec {
                command: "sh".to_owned(),
                program: "/bin/sh".into(),
                args: vec!["-c".into(), script.into()],
                env: vec![("PATH".into(), "/usr/bin:/bin".into())],
                cwd: None,
                confinement: Confinement::default(),
            };
            let (process, _pipes) = spawn(&spec, &Supervisor::Group, None).await.unwrap();
            let mut instance = ServerInstance::Child(Box::new(process));
            let failed = async { Err::<(), _>(error) };
            let reason = run_while_alive(&mut instance, &clock(), failed).await.unwrap_err();
            assert!(reason.to_string().contains(expected), "{script}: {reason}");
            instance.kill();
        }
    }
}

//! Decides whether a failed launch is repeated, and after which delay.

use std::time::Duration;

use super::LaunchFailure;
use crate::backoff::doubled;

/// Maximum number of launches in one start (TR6.5: three retries after 1 s, 2 s and 4 s).
const MAX_LAUNCHES: u32 = 4;

/// First delay; each further delay is twice as long.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// First delay after a refused connection: three retries end after 1.75 s, enough for a server that
/// is about to listen.
const FIRST_CONNECT_DELAY: Duration = Duration::from_millis(250);

/// Returns the delay before the next launch after this number of launches, of which `last` is the
/// last one; `None` if another launch cannot help.
///
/// A program that wrote why it ended may still find what it needs a few seconds later, unless its
/// words say that the same launch fails again.
pub(super) fn relaunch_delay(launches: u32, last: &LaunchFailure) -> Option<Duration> {
    if launches >= MAX_LAUNCHES || !last.reason.is_transient(&last.stderr) {
        return None;
    }
    let first = if last.reason.is_refused() { FIRST_CONNECT_DELAY } else { FIRST_DELAY };
    Some(doubled(first, launches - 1, Duration::MAX).max(last.reason.requested_wait()))
}

#[cfg(test)]
mod tests {
    use innkeeper_process::ExitStatus;

    use super::*;
    use crate::error::{CallError, ConnectFailureKind};
    use crate::error::{StartFailureReason, StartPhase, UnavailableReason};

    fn exited(code: i32, stderr: &str) -> LaunchFailure {
        let reason = StartFailureReason::Exited(ExitStatus::Code(code));
        LaunchFailure { phase: StartPhase::Handshake, reason, stderr: stderr.to_owned() }
    }

    fn unreachable(kind: ConnectFailureKind) -> LaunchFailure {
        unavailable(UnavailableReason::Unreachable { kind, cause: "cause".into() })
    }

    fn unavailable(reason: UnavailableReason) -> LaunchFailure {
        let error = CallError::Unavailable {
            server: "web".into(),
            reason,
            may_have_run: false,
            attempts: 1,
        };
        let reason = StartFailureReason::Call(Box::new(error));
        LaunchFailure { phase: StartPhase::Handshake, reason, stderr: String::new() }
    }

    /// Returns the delays in milliseconds until no launch follows.
    fn delays(failure: &LaunchFailure) -> Vec<u128> {
        (1..)
            .map_while(|launches| relaunch_delay(launches, failure))
            .map(|delay| delay.as_millis())
            .collect()
    }

    /// Proves: TR6.5
    #[test]
    fn a_program_that_ends_is_launched_again_after_1_2_and_4_seconds_with_words_or_without() {
        for stderr in ["", "Error: no database", "panic: connect ECONNREFUSED 127.0.0.1:5432"] {
            assert_eq!(delays(&exited(1, stderr)), [1_000, 2_000, 4_000], "{stderr}");
        }
        let reason = StartFailureReason::Exited(ExitStatus::Signal(9));
        let phase = StartPhase::Handshake;
        let killed = LaunchFailure { phase, reason, stderr: "busy".to_owned() };
        assert_eq!(delays(&killed), [1_000, 2_000, 4_000]);
    }

    #[test]
    fn a_failure_that_the_same_launch_repeats_fails_at_the_first_launch() {
        let permanent = [
            "Error: BRAVE_API_KEY environment variable is required",
            "npm error code E404\nnpm error 404 Not Found - GET https://registry.example/x",
            "error: Failed to fetch\n  Caused by: invalid peer certificate: UnknownIssuer",
            "ModuleNotFoundError: No module named 'mcp'",
            "  File \"server.py\", line 3\n    def\nSyntaxError: invalid syntax",
            "usage: server [-h]\nserver: error: the following arguments are required: --root",
        ];
        for stderr in permanent {
            assert!(delays(&exited(1, stderr)).is_empty(), "{stderr}");
        }
    }

    #[test]
    fn a_refused_connection_is_repeated_for_less_than_two_seconds() {
        let refused = unreachable(ConnectFailureKind::Refused);
        assert_eq!(delays(&refused), [250, 500, 1_000]);
        for kind in [ConnectFailureKind::NameNotFound, ConnectFailureKind::Certificate] {
            assert!(delays(&unreachable(kind)).is_empty(), "{kind:?}");
        }
        assert_eq!(delays(&unreachable(ConnectFailureKind::Other)), [1_000, 2_000, 4_000]);
    }

    #[test]
    fn a_server_that_requests_a_wait_gets_it() {
        let retry_after = Some(Duration::from_secs(3));
        let busy = UnavailableReason::Busy { status: 429, retry_after, body: "".into() };
        assert_eq!(delays(&unavailable(busy)), [3_000, 3_000, 4_000]);
    }
}

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
/// last one and `before` the one before; `None` if another launch cannot help.
///
/// A program that ended by itself and wrote why is launched once more at once, because the program
/// may have rejected the first message. With the same words again, the failure is permanent.
pub(super) fn relaunch_delay(
    launches: u32,
    last: &LaunchFailure,
    before: Option<&LaunchFailure>,
) -> Option<Duration> {
    if launches >= MAX_LAUNCHES {
        return None;
    }
    if !last.reason.is_transient(&last.stderr) {
        return None;
    }
    if last.reason.is_refused() {
        return Some(doubled(FIRST_CONNECT_DELAY, launches - 1, Duration::MAX));
    }
    let Some(message) = last.last_message() else {
        return Some(doubled(FIRST_DELAY, launches - 1, Duration::MAX));
    };
    match before {
        None => Some(Duration::ZERO),
        Some(before) if before.last_message().as_ref() == Some(&message) => None,
        Some(_) => Some(doubled(FIRST_DELAY, launches.saturating_sub(2), Duration::MAX)),
    }
}

impl LaunchFailure {
    /// Returns how the process ended by itself and what it wrote last, without the digits, which
    /// vary with process ids, ports and times.
    fn last_message(&self) -> Option<String> {
        let line = self.reason.stderr_line(&self.stderr)?;
        let text = line.replace(|letter: char| letter.is_ascii_digit(), "");
        Some(format!("{}: {text}", self.reason))
    }
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
        let reason = UnavailableReason::Unreachable { kind, cause: "cause".into() };
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
    fn delays(failure: impl Fn(usize) -> LaunchFailure) -> Vec<u128> {
        let (mut last, mut before, mut delays) = (failure(0), None, Vec::new());
        while let Some(delay) = relaunch_delay(delays.len() as u32 + 1, &last, before.as_ref()) {
            delays.push(delay.as_millis());
            before = Some(std::mem::replace(&mut last, failure(delays.len())));
        }
        delays
    }

    /// Proves: TR6.5
    #[test]
    fn a_program_that_ends_without_a_word_is_launched_again_after_1_2_and_4_seconds() {
        assert_eq!(delays(|_| exited(1, "")), [1_000, 2_000, 4_000]);
        let killed = |_| {
            let reason = StartFailureReason::Exited(ExitStatus::Signal(9));
            LaunchFailure { phase: StartPhase::Handshake, reason, stderr: "busy".to_owned() }
        };
        assert_eq!(delays(killed), [1_000, 2_000, 4_000]);
    }

    #[test]
    fn a_program_that_ends_twice_with_the_same_words_is_not_launched_again() {
        assert_eq!(delays(|_| exited(1, "Error: no database")), [0]);
        let at = |launch: usize| exited(1, &format!("Error: pid {launch}1 at 10:0{launch} failed"));
        assert_eq!(delays(at), [0]);
        // A package runner reports an installation only once.
        let installed = |launch| match launch {
            0 => exited(1, "Installed 31 packages in 55ms\nError: no database"),
            _ => exited(1, "Error: no database"),
        };
        assert_eq!(delays(installed), [0]);
    }

    #[test]
    fn a_program_that_ends_with_other_words_or_another_code_is_launched_again() {
        let words = ["one", "two", "three", "four"];
        assert_eq!(delays(|launch| exited(1, words[launch])), [0, 1_000, 2_000]);
        let code = |launch| exited(if launch < 2 { 1 + launch as i32 } else { 2 }, "Error: x");
        assert_eq!(delays(code), [0, 1_000]);
    }

    #[test]
    fn a_missing_key_package_or_certificate_fails_at_the_first_launch() {
        let permanent = [
            "Error: BRAVE_API_KEY environment variable is required",
            "npm error code E404\nnpm error 404 Not Found - GET https://registry.example/x",
            "error: Failed to fetch\n  Caused by: invalid peer certificate: UnknownIssuer",
        ];
        for stderr in permanent {
            assert!(delays(|_| exited(1, stderr)).is_empty(), "{stderr}");
        }
    }

    #[test]
    fn a_refused_connection_is_repeated_for_less_than_two_seconds() {
        let refused = |_| unreachable(ConnectFailureKind::Refused);
        assert_eq!(delays(refused), [250, 500, 1_000]);
        for kind in [ConnectFailureKind::NameNotFound, ConnectFailureKind::Certificate] {
            assert!(delays(|_| unreachable(kind)).is_empty(), "{kind:?}");
        }
        assert_eq!(delays(|_| unreachable(ConnectFailureKind::Other)), [1_000, 2_000, 4_000]);
    }
}

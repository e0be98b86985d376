//! Excludes package installation from the start timeout of a server.

use std::path::Path;
use std::time::Duration;

use innkeeper_process::{LaunchProbe, ProcessSpec};
use tokio::time::{Instant, sleep_until, timeout};

use super::StartClock;
use super::clock::run_while_alive;
use crate::error::{CallError, StartFailureReason, StartPhase};
use crate::server::instance::ServerInstance;
use crate::session::Session;

/// Interval of the checks whether a package runner has started the server.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Programs that download a package before they run it.
const PACKAGE_RUNNERS: [&str; 7] = ["npx", "uvx", "pipx", "bunx", "pnpx", "dnx", "npm"];

/// Returns whether the program downloads packages before it runs them.
pub(super) fn is_package_runner(program: &Path) -> bool {
    let name = program.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    PACKAGE_RUNNERS.contains(&name)
}

/// Waits until a package runner has started the server, as its child (or the child of an
/// intermediate shell) or by `exec`, or until the server sends a message. This time does not count
/// against the server's timeout. Returns `false` at once if the system does not report processes:
/// then only the response of the server shows that it runs.
pub(super) async fn wait_for_server_process(
    body: &mut ServerInstance,
    session: &Session,
    launch: &ProcessSpec,
    clock: &mut StartClock,
) -> Result<bool, (StartPhase, StartFailureReason)> {
    let started = Instant::now();
    let mut launching = LaunchProbe::new(launch, &PACKAGE_RUNNERS);
    loop {
        match body.has_started(&mut launching) {
            Some(true) => break,
            Some(false) => {}
            None => return Ok(false),
        }
        if started.elapsed() >= clock.install_remaining {
            return Err((StartPhase::Install, StartFailureReason::TimedOut(clock.install_timeout)));
        }
        if Instant::now() >= clock.overall_deadline.deadline {
            return Err((
                StartPhase::Install,
                StartFailureReason::StartTimeout(clock.overall_deadline.timeout),
            ));
        }
        tokio::select! {
            biased;
            exit = body.wait() => return Err((StartPhase::Install, StartFailureReason::Exited(exit))),
            heard = timeout(POLL_INTERVAL, session.first_message()) => if heard.is_ok() {
                break;
            }
        }
    }
    clock.exclude_install_time(started);
    Ok(true)
}

/// Latest deadline of a handshake during an installation; [`handshake_during_install`] ends the
/// handshake earlier.
pub(super) fn latest_deadline(clock: &StartClock) -> Instant {
    let server_remaining = clock.server_deadline.deadline.saturating_duration_since(Instant::now());
    Instant::now() + clock.install_remaining + server_remaining
}

/// Runs a handshake while the state of the server process is unknown. Until the server sends a
/// message, the installation timeout applies.
pub(super) async fn handshake_during_install<T>(
    body: &mut ServerInstance,
    session: &Session,
    clock: &mut StartClock,
    handshake: impl Future<Output = Result<T, CallError>>,
) -> Result<T, (StartPhase, StartFailureReason)> {
    let started = Instant::now();
    let install_deadline = (started + clock.install_remaining).min(clock.overall_deadline.deadline);
    tokio::pin!(handshake);
    let early = tokio::select! {
        biased;
        result = &mut handshake => Some(result),
        () = session.first_message() => None,
        exit = body.wait() => return Err((StartPhase::Install, StartFailureReason::Exited(exit))),
        () = sleep_until(install_deadline) => {
            let reason = match clock.overall_deadline.deadline <= install_deadline {
                true => StartFailureReason::StartTimeout(clock.overall_deadline.timeout),
                false => StartFailureReason::TimedOut(clock.install_timeout),
            };
            return Err((StartPhase::Install, reason));
        }
    };
    clock.exclude_install_time(started);
    let rest = async {
        match early {
            Some(result) => result,
            None => handshake.await,
        }
    };
    run_while_alive(body, clock, rest).await.map_err(|reason| (StartPhase::Handshake, reason))
}

#[cfg(test)]
mod tests;

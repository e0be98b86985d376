//! Excludes package installation from the start timeout of a server.

use std::path::Path;
use std::time::Duration;

use innkeeper_process::{LaunchProbe, ProcessSpec};
use tokio::time::{Instant, sleep_until, timeout};

use super::clock::run_while_alive;
use super::{MAX_STDERR_BYTES, StartClock};
use crate::error::{CallError, StartFailureReason, StartPhase};
use crate::server::instance::ServerInstance;
use crate::session::Session;
use crate::stderr::StderrTail;
use crate::text::display_safe;

/// Interval of the checks whether a package runner has started the server.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Programs that download a package before they run it.
const PACKAGE_RUNNERS: [&str; 7] = ["npx", "uvx", "pipx", "bunx", "pnpx", "dnx", "npm"];

/// Package runners that report nothing while they install a package.
const SILENT_RUNNERS: [&str; 4] = ["npx", "npm", "bunx", "pnpx"];

/// Maximum number of bytes that a silent runner writes to start an installed package: `npx` writes
/// 0.14 MB of logs and cache entries, and more than 2 MB for each server that it installs.
const MAX_CACHE_CHECK_BYTES: u64 = 1 << 20;

/// First words of the lines in which uv and pipx report an installation.
const INSTALL_STEPS: [&str; 6] =
    ["Downloading ", "Building ", "Prepared ", "Installed ", "Updating ", "creating virtual env"];

/// Options of package runners whose value is a package.
const PACKAGE_OPTIONS: [&str; 4] = ["--package", "-p", "--from", "--spec"];

/// Options of package runners with a value that is no package.
const OPTIONS_WITH_VALUE: [&str; 8] =
    ["--python", "--with", "--index", "--index-url", "--cache-dir", "--registry", "--cache", "-c"];

/// Returns whether the program downloads packages before it runs them.
pub(super) fn is_package_runner(program: &Path) -> bool {
    PACKAGE_RUNNERS.contains(&program_name(program))
}

/// Returns the name of a program without its directory and extension.
pub(super) fn program_name(program: &Path) -> &str {
    program.file_stem().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Time after which the handshake starts although no server process is visible: the runner may
/// pass messages through pipes of its own.
const MAX_SILENT_WAIT: Duration = Duration::from_secs(30);

/// Observes a package runner until the server runs.
pub(super) struct InstallWatch<'a> {
    pub(super) launch: &'a ProcessSpec,
    pub(super) stderr: &'a StderrTail,
    /// Called once, when the runner installs a package.
    pub(super) report_install: &'a (dyn Fn() + Sync),
}

/// Waits until a package runner has started the server, as its child (or the child of an
/// intermediate shell) or by `exec`, or until the server sends a message. This time does not count
/// against the server's timeout. Returns `false` if the state of the server is unknown: at once if
/// the system does not report processes, and after [`MAX_SILENT_WAIT`]. Then only the response of
/// the server shows that it runs.
pub(super) async fn wait_for_server_process(
    body: &mut ServerInstance,
    session: &Session,
    watch: InstallWatch<'_>,
    clock: &mut StartClock,
) -> Result<bool, (StartPhase, StartFailureReason)> {
    let started = Instant::now();
    let mut launching = LaunchProbe::new(watch.launch, &PACKAGE_RUNNERS);
    let mut is_reported = false;
    let is_visible = loop {
        match body.has_started(&mut launching) {
            Some(true) => break true,
            Some(false) => {}
            None => return Ok(false),
        }
        if !is_reported && is_installing(watch.launch, launching.written_bytes(), watch.stderr) {
            is_reported = true;
            (watch.report_install)();
        }
        if started.elapsed() >= clock.install_remaining {
            return Err((StartPhase::Install, StartFailureReason::TimedOut(clock.install_timeout)));
        }
        if started.elapsed() >= MAX_SILENT_WAIT {
            break false;
        }
        tokio::select! {
            biased;
            exit = body.wait() => return Err((StartPhase::Install, StartFailureReason::Exited(exit))),
            heard = timeout(POLL_INTERVAL, session.first_message()) => if heard.is_ok() {
                break true;
            }
        }
    };
    clock.exclude_install_time(started);
    Ok(is_visible)
}

/// Returns whether a package runner installs a package: uv and pipx report each step; npm and the
/// runners like it are silent, and write the package to disk.
fn is_installing(launch: &ProcessSpec, written_bytes: u64, stderr: &StderrTail) -> bool {
    let is_silent = SILENT_RUNNERS.contains(&program_name(&launch.program));
    if is_silent && written_bytes > MAX_CACHE_CHECK_BYTES {
        return true;
    }
    let stderr = stderr.tail(MAX_STDERR_BYTES);
    stderr.lines().any(|line| INSTALL_STEPS.iter().any(|step| line.trim_start().starts_with(step)))
}

/// Returns the package that the arguments of a package runner name.
pub(super) fn package_name(launch: &ProcessSpec) -> Option<Box<str>> {
    let mut args = launch.args.iter().filter_map(|arg| arg.to_str()).peekable();
    if program_name(&launch.program) == "npm" || program_name(&launch.program) == "pipx" {
        args.next_if(|arg| ["exec", "x", "run", "start"].contains(arg));
    }
    while let Some(arg) = args.next() {
        let value = match arg.split_once('=') {
            Some((option, value)) if PACKAGE_OPTIONS.contains(&option) => Some(value),
            _ if PACKAGE_OPTIONS.contains(&arg) => args.next(),
            _ if OPTIONS_WITH_VALUE.contains(&arg) => {
                args.next();
                None
            }
            _ if arg.starts_with('-') => None,
            _ => Some(arg),
        };
        if let Some(package) = value {
            return Some(display_safe(package).into());
        }
    }
    None
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
    let install_deadline = started + clock.install_remaining;
    tokio::pin!(handshake);
    let early = tokio::select! {
        biased;
        result = &mut handshake => Some(result),
        () = session.first_message() => None,
        exit = body.wait() => return Err((StartPhase::Install, StartFailureReason::Exited(exit))),
        () = sleep_until(install_deadline) => {
            return Err((StartPhase::Install, StartFailureReason::TimedOut(clock.install_timeout)));
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

//! The time in which a package runner fetches a server, which is none of the server's own.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::{Clock, watched};
use crate::error::{CallError, Phase, StartReason};
use crate::server::body::Body;
use crate::server::process::{Launch, Launching};
use crate::server::session::Session;

/// How often it is looked whether a package runner has started the server.
const POLL: Duration = Duration::from_millis(50);

/// Programs that fetch a package before they run it.
const PACKAGE_RUNNERS: [&str; 7] = ["npx", "uvx", "pipx", "bunx", "pnpx", "dnx", "npm"];

/// Whether the program fetches packages before it runs them.
pub(super) fn runs_packages(program: &Path) -> bool {
    let name = program.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    PACKAGE_RUNNERS.contains(&name)
}

/// Waits until a package runner has started the server, as its child (or that of a shell around it)
/// or by becoming it, or until something is heard of the server. The time this takes does not count
/// against the server's own. Gives `false` at once where the system does not tell: then only the
/// server's answer does.
pub(super) async fn seen(
    body: &mut Body,
    session: &Session,
    launch: &Launch,
    clock: &mut Clock,
) -> Result<bool, (Phase, StartReason)> {
    let began = Instant::now();
    let mut launching = Launching::new(launch, &PACKAGE_RUNNERS);
    loop {
        match body.has_started(&mut launching) {
            Some(true) => break,
            Some(false) => {}
            None => return Ok(false),
        }
        if began.elapsed() >= clock.installs {
            return Err((Phase::Install, StartReason::TimedOut(clock.install_timeout)));
        }
        if Instant::now() >= clock.all.ends {
            return Err((Phase::Install, StartReason::StartLimit(clock.all.allowed)));
        }
        tokio::select! {
            biased;
            exit = body.exited() => return Err((Phase::Install, StartReason::Exited(exit))),
            heard = timeout(POLL, session.heard()) => if heard.is_ok() {
                break;
            }
        }
    }
    clock.installed(began);
    Ok(true)
}

/// No handshake that does not wait for the installation is done later; [`unseen`] ends it sooner.
pub(super) fn latest(clock: &Clock) -> Instant {
    let own = clock.own.ends.saturating_duration_since(Instant::now());
    Instant::now() + clock.installs + own
}

/// Runs a handshake that was begun without knowing whether the server runs. Until something is
/// heard of the server, the time is that of the installation.
pub(super) async fn unseen<T>(
    body: &mut Body,
    session: &Session,
    clock: &mut Clock,
    handshake: impl Future<Output = Result<T, CallError>>,
) -> Result<T, (Phase, StartReason)> {
    let began = Instant::now();
    let ends = (began + clock.installs).min(clock.all.ends);
    tokio::pin!(handshake);
    let early = tokio::select! {
        biased;
        result = &mut handshake => Some(result),
        () = session.heard() => None,
        exit = body.exited() => return Err((Phase::Install, StartReason::Exited(exit))),
        () = sleep_until(ends) => {
            let reason = match clock.all.ends <= ends {
                true => StartReason::StartLimit(clock.all.allowed),
                false => StartReason::TimedOut(clock.install_timeout),
            };
            return Err((Phase::Install, reason));
        }
    };
    clock.installed(began);
    let rest = async {
        match early {
            Some(result) => result,
            None => handshake.await,
        }
    };
    watched(body, clock, rest).await.map_err(|reason| (Phase::Handshake, reason))
}

#[cfg(test)]
mod tests;

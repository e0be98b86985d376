//! Starts a server, with retries of failed launches.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_process::ProcessSpec;
use tokio::time::{Instant, sleep};

use super::relaunch::relaunch_delay;
use super::{Endpoint, LaunchFailure, Launcher, StartClock, StartDeadline, StartedServer};
use crate::audit::AuditEvent;
use crate::catalog::CatalogEntry;
use crate::connection::handshake::HandshakeProbe;
use crate::error::{
    AuthErrorKind, CallError, ServerFailure, StartFailureReason, StartPhase, UnavailableReason,
};
use crate::event::HostEvent;
use crate::server::Server;
use crate::transport::TransportKind;

impl Launcher {
    /// Starts `server`. Repeats failed launches until the deadline of the server or of `all`
    /// servers, as long as a retry can help. With `waits`, the time of an interactive sign-in does
    /// not count, and the deadline of `all` moves accordingly. The wait for a slot never counts.
    /// Dropping the future kills the started processes.
    pub(crate) async fn start(
        &self,
        server: &Server,
        endpoint: &Endpoint,
        all: &mut StartDeadline,
        waits: bool,
    ) -> Result<(StartedServer, CatalogEntry, Duration), ServerFailure> {
        if let Endpoint::Child(launch) = endpoint {
            self.report_unapplied_settings(&server.name, launch);
        }
        let waiting = Instant::now();
        let mut slot = self.start_limits.slots.acquire().await;
        all.deadline += waiting.elapsed();
        let started = Instant::now();
        let timeout = server.config().lifecycle.init_timeout;
        let own_deadline = StartDeadline { deadline: started + timeout, timeout };
        let install_timeout = self.start_limits.install_timeout;
        let mut clock = StartClock {
            server_deadline: own_deadline,
            install_remaining: install_timeout,
            install_timeout,
            overall_deadline: *all,
        };
        // The HTTP+SSE transport exists only in the legacy era.
        let only =
            matches!(endpoint, Endpoint::Remote(remote) if remote.kind == TransportKind::Sse);
        let mut opening = match endpoint {
            _ if only => HandshakeProbe::InitializeOnly,
            Endpoint::Child(launch) if self.silent_servers.contains(launch) => {
                HandshakeProbe::InitializeFirst
            }
            Endpoint::Child(_) | Endpoint::Remote(_) | Endpoint::InProcess(_) => {
                HandshakeProbe::Discover
            }
        };
        let mut attempt = 1;
        let mut earlier_failure: Option<LaunchFailure> = None;
        let mut waited = false;
        loop {
            self.host.events.publish(HostEvent::Launching {
                server: server.name.clone(),
                program: endpoint.program_name(),
                attempt,
            });
            tracing::info!(server = &*server.name, attempt, "start");
            let signed_in = self.sign_in.sign_in_count(&server.name);
            let launched = self.launch(server, endpoint, opening, &mut clock).await;
            all.deadline = all.deadline.max(clock.overall_deadline.deadline);
            let mut miss = match launched {
                Ok((running, entry)) => return Ok((running, entry, started.elapsed())),
                Err(miss) => miss,
            };
            if let Some(time) = miss.reason.elapsed_timeout().filter(|_| !waited) {
                waited = true;
                let sign_in_result = match waits {
                    // The time of the sign-in does not count against the server's timeout, and other
                    // servers start in the meantime.
                    true => {
                        drop(slot);
                        let signed_in = self.sign_in.wait_sign_in_since(&server.name, signed_in);
                        let signed_in = signed_in.await;
                        slot = self.start_limits.slots.acquire().await;
                        signed_in
                    }
                    false if self.sign_in.is_signing_in(&server.name) => {
                        Some(Err(AuthErrorKind::Timeout(time)))
                    }
                    false => None,
                };
                match sign_in_result {
                    Some(Ok(())) => {
                        clock.server_deadline.deadline = Instant::now() + timeout;
                        all.deadline = all.deadline.max(clock.server_deadline.deadline);
                        clock.overall_deadline = *all;
                        continue;
                    }
                    Some(Err(error)) => miss.reason = sign_in_error(&server.name, error),
                    None => {}
                }
            }
            let delay = relaunch_delay(attempt, &miss)
                .filter(|delay| Instant::now() + *delay < clock.deadline())
                .filter(|_| endpoint.is_repeatable());
            let Some(delay) = delay else {
                return Err(server_failure(&server.name, miss, earlier_failure, attempt));
            };
            if !only && matches!(miss.phase, StartPhase::Handshake) {
                // The server may have exited because of `server/discover`; start with `initialize`.
                opening = HandshakeProbe::Initialize;
            }
            self.report_retry(server, delay, &miss);
            earlier_failure = Some(miss);
            sleep(delay).await;
            attempt += 1;
        }
    }

    /// Reports each limit and each part of the sandbox that has no effect on this system.
    fn report_unapplied_settings(&self, server: &Arc<str>, launch: &ProcessSpec) {
        for (key, reason) in launch.confinement.unapplied_settings(&self.supervisor) {
            AuditEvent::LimitNotApplied { key, reason: &reason }.emit(server);
            let server = server.clone();
            self.host.events.publish(HostEvent::LimitNotApplied { server, key, reason });
        }
    }

    fn report_retry(&self, server: &Server, delay: Duration, miss: &LaunchFailure) {
        let reason = miss.reason.stderr_line(&miss.stderr);
        let reason = reason.unwrap_or_else(|| miss.reason.to_string());
        let delay_s = delay.as_secs_f64();
        tracing::warn!(server = &*server.name, delay_s, reason, "launch failed, retrying");
        self.host.events.publish(HostEvent::LaunchRetry {
            server: server.name.clone(),
            delay,
            reason,
        });
    }
}

/// Returns the failure of a start: the last launch, or the launch before if the last launch timed
/// out, because the earlier reason is more specific.
fn server_failure(
    server: &Arc<str>,
    last: LaunchFailure,
    before: Option<LaunchFailure>,
    attempts: u32,
) -> ServerFailure {
    let before = before.filter(|_| last.reason.elapsed_timeout().is_some());
    let LaunchFailure { phase, reason, stderr } = before.unwrap_or(last);
    ServerFailure { server: server.clone(), phase, reason, stderr, attempts }
}

fn sign_in_error(server: &Arc<str>, failure: AuthErrorKind) -> StartFailureReason {
    let server = server.clone();
    let reason = UnavailableReason::Unauthorized(Box::new(failure));
    let error = CallError::Unavailable { server, reason, may_have_run: false, attempts: 1 };
    StartFailureReason::Call(Box::new(error))
}

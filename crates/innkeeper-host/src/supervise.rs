//! The task of a ready server: waits for its end and stops it on request.

mod list_refresh;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use innkeeper_process::StopTimes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::{StartFailureReason, UnavailableReason};
use crate::registry::Registry;
use crate::server::instance::ServerInstance;
use crate::server::launch::StartedServer;
use crate::server::{Server, ServerStopReport, StopRequest, StopStage};
pub(crate) use list_refresh::follow_changes;

/// Time to wait for the last output of an exited server, or for the exit of a server that closed
/// its output, before pending calls fail.
const OUTPUT_GRACE: Duration = Duration::from_millis(80);

/// Time for a remote or in-process server to receive the cancellation of its tasks: one or two round trips.
const TASK_CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum time between the end of the input and the termination request for a server that may still
/// process a cancelled call. Such a server does not notice the end of its input before the call ends.
const CANCELLED_CALL_GRACE: Duration = Duration::from_millis(500);

/// Time for a killed process tree to exit.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// Supervises a ready server until it fails or is stopped; calls `fallen` after a failure.
pub(crate) async fn supervise(
    registry: Arc<Registry>,
    server: Arc<Server>,
    mut running: StartedServer,
    mut stop_requests: mpsc::Receiver<StopRequest>,
    fallen: impl FnOnce() + Send,
) {
    let mut is_unavailable = false;
    let ready = server.status().entry.clone();
    let reporter =
        ready.and_then(|catalog_entry| catalog_entry.connection.instruments.telemetry.clone());
    let mut session = reporter.map(|reporter| reporter.start_session());
    let stop_request = tokio::select! {
        biased;
        order = stop_requests.recv() => order,
        lost = wait_until_unavailable(&mut running) => {
            is_unavailable = true;
            if let Some(session) = session.take() {
                session.fail(&lost);
            }
            running.session.close(lost.clone());
            if matches!(lost, UnavailableReason::Exited { .. }) {
                server.mark_exited();
            }
            let failed = lost.is_failure();
            if registry.mark_unavailable(&server, lost) && failed {
                fallen();
            }
            running.instance.kill();
            // A tree that survives the kill is reported when the server is stopped.
            if timeout(EXIT_GRACE, running.instance.wait_tree()).await.is_ok() {
                server.mark_exited();
            }
            stop_requests.recv().await
        }
    };
    let Some(request) = stop_request else { return };
    let (report, requesters) =
        stop_on_request(&server, &mut running, is_unavailable, request, stop_requests).await;
    registry.mark_stopped(&server, Some(&report));
    for done in requesters {
        // The requester may have stopped waiting; the server is stopped anyway.
        let _ = done.send(report.clone());
    }
}

/// Stops a server; a later request can shorten the grace period. Returns the report for all
/// requesters.
async fn stop_on_request(
    server: &Server,
    running: &mut StartedServer,
    is_unavailable: bool,
    request: StopRequest,
    mut further: mpsc::Receiver<StopRequest>,
) -> (ServerStopReport, Vec<oneshot::Sender<ServerStopReport>>) {
    let started = Instant::now();
    let StopRequest { grace, mut exit_grace, done } = request;
    let mut end = started + grace;
    let mut requesters = vec![done];
    loop {
        let shorter = async {
            while let Some(StopRequest { grace, exit_grace, done }) = further.recv().await {
                requesters.push(done);
                if let Some(earlier) = earlier_end(end, Instant::now() + grace) {
                    return (earlier, exit_grace);
                }
            }
            pending().await
        };
        let grace = end.saturating_duration_since(Instant::now());
        tokio::select! {
            biased;
            report = stop(server, running, is_unavailable, grace, exit_grace) => {
                return (ServerStopReport { took: started.elapsed(), ..report }, requesters);
            }
            limits = shorter => (end, exit_grace) = limits,
        }
    }
}

/// Returns the requested end if the request makes the grace period shorter.
fn earlier_end(end: Instant, requested: Instant) -> Option<Instant> {
    (requested < end).then_some(requested)
}

/// Waits until the server becomes unavailable and returns the most specific reason.
async fn wait_until_unavailable(running: &mut StartedServer) -> UnavailableReason {
    let StartedServer { instance, session, .. } = running;
    let (exit, lost) = tokio::select! {
        // A closed session knows the reason; the end of the output follows from it.
        biased;
        exit = instance.wait() => {
            session.stop_throttling();
            drop(timeout(OUTPUT_GRACE, session.output_ended()).await);
            (Ok(exit), UnavailableReason::ClosedOutput)
        }
        lost = session.closed() => (timeout(OUTPUT_GRACE, instance.wait()).await, lost),
        () = session.output_ended() => {
            (timeout(OUTPUT_GRACE, instance.wait()).await, UnavailableReason::ClosedOutput)
        }
    };
    let Ok(status) = exit else { return lost };
    let stderr = running.last_stderr(OUTPUT_GRACE).await;
    let line = StartFailureReason::Exited(status).stderr_line(&stderr);
    UnavailableReason::Exited { status, stderr_line: line.unwrap_or_default().into() }
}

async fn stop(
    server: &Server,
    running: &mut StartedServer,
    is_unavailable: bool,
    grace: Duration,
    exit_grace: Duration,
) -> ServerStopReport {
    let end = Instant::now() + grace;
    let session = running.session.clone();
    let close = move || {
        session.close(UnavailableReason::Shutdown);
        session.close_input();
    };
    let process = match &mut running.instance {
        ServerInstance::Child(process) => process,
        ServerInstance::Connection(_) | ServerInstance::InProcess(_) => {
            if !is_unavailable {
                // Tasks of a child process end with it; tasks of other servers continue unless
                // cancelled.
                running.session.cancel_tasks(TASK_CANCEL_TIMEOUT.min(grace)).await;
            }
            let end = disconnect_end(end, Instant::now(), exit_grace);
            return disconnect(server, close, &mut running.instance, is_unavailable, end).await;
        }
    };
    let mut times = StopTimes::halves(grace, exit_grace);
    if running.session.has_cancelled_requests() {
        times = times.with_max_eof_grace(CANCELLED_CALL_GRACE);
    }
    let report = innkeeper_process::stop(&mut **process, close, times).await;
    ServerStopReport {
        server: server.name.clone(),
        stage: if is_unavailable { StopStage::AlreadyGone } else { StopStage::from(report.stage) },
        exit: Some(report.exit),
        took: report.took,
        leftovers: report.leftovers,
    }
}

/// Returns the end of the wait for a server without a process, which has `exit_grace` at least.
fn disconnect_end(end: Instant, now: Instant, exit_grace: Duration) -> Instant {
    end.max(now + exit_grace)
}

/// Disconnects from a server without a process at `end` or earlier. An in-process server that
/// ignores the end of its input keeps running, but has lost its connection.
async fn disconnect(
    server: &Server,
    close: impl FnOnce(),
    connection: &mut ServerInstance,
    is_unavailable: bool,
    end: Instant,
) -> ServerStopReport {
    let started = Instant::now();
    close();
    let _ = timeout_at(end, connection.wait_tree()).await;
    connection.kill();
    let has_ended = connection.wait_tree().now_or_never().is_some();
    // A remote server that does not confirm the end of its session has no process here.
    let leftovers = !has_ended && matches!(connection, ServerInstance::InProcess(_));
    ServerStopReport {
        server: server.name.clone(),
        stage: if is_unavailable { StopStage::AlreadyGone } else { StopStage::Disconnected },
        exit: None,
        took: started.elapsed(),
        leftovers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_process_has_the_exit_grace_at_least() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        assert_eq!(disconnect_end(now, now, second), now + second);
        assert_eq!(disconnect_end(now + second, now, second / 2), now + second);
    }

    #[test]
    fn only_an_earlier_request_shortens_a_grace_period() {
        let (end, second) = (Instant::now(), Duration::from_secs(1));
        assert_eq!(earlier_end(end, end), None);
        assert_eq!(earlier_end(end, end + second), None);
        assert_eq!(earlier_end(end + second, end), Some(end));
    }
}

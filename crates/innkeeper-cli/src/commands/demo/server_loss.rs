//! The last part of the demo: a server is killed during a call, and restarts.

use std::time::Duration;

use innkeeper_host::{CallError, Host, HostEvent, ServerState};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::exit::CliError;
use crate::output::{Output, Style, escape_inline};

/// The server that is killed.
const SERVER: &str = "notes";

/// The call during which the server is killed.
const TOOL: &str = "notes.find_notes";

/// Maximum time until the call is sent, and until the server is ready again.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// Delay between two looks at the number of calls in flight.
const POLL_DELAY: Duration = Duration::from_millis(5);

/// What became of the call and of the server.
#[derive(Debug)]
pub(super) struct ServerLoss {
    /// The error of the call.
    error: String,
    /// The time until the server was ready again.
    restarted_after: Duration,
    /// The result of the same call after the restart.
    result: Value,
}

impl ServerLoss {
    /// Stops the server, sends a call, kills the server, and calls again after its restart.
    ///
    /// # Errors
    ///
    /// The call is not sent, the call succeeds, or the server does not restart in time.
    pub(super) async fn cause(host: &Host) -> Result<Self, CliError> {
        let pid = host.status().get(SERVER).and_then(|status| status.pid);
        let pid = pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let pid = pid.ok_or_else(|| failure("the process has no id"))?;
        let mut events = host.events();
        // A stopped process receives the call and cannot answer before it is killed.
        signal(pid, Signal::STOP)?;
        let call = async { host.call_tool(TOOL, json!({ "query": "" })).await };
        let kill = async {
            let sent = timeout(STEP_TIMEOUT, until_in_flight(host)).await;
            signal(pid, Signal::KILL)?;
            sent.map_err(|_| failure("the call was not sent"))
        };
        let (called, killed) = tokio::join!(call, kill);
        let lost_at = Instant::now();
        killed?;
        let error = match called {
            Err(error @ CallError::Unavailable { may_have_run: true, .. }) => {
                format!("{error}; the server may have run the request")
            }
            Err(error) => error.to_string(),
            Ok(_) => return Err(failure("the call of a killed server succeeded")),
        };
        let ready = async {
            loop {
                match events.recv().await {
                    Ok(HostEvent::Ready { server, .. }) if &*server == SERVER => return true,
                    Ok(_) => {}
                    Err(_) => return is_ready(host),
                }
            }
        };
        if !timeout(STEP_TIMEOUT, ready).await.unwrap_or(false) {
            return Err(failure("the server did not restart"));
        }
        let restarted_after = lost_at.elapsed();
        let result = host.call_tool(TOOL, json!({ "query": "" })).await;
        let result =
            result.map_err(|error| failure("no call after the restart").with_source(error))?;
        let result = serde_json::from_str(result.raw().get())
            .map_err(|error| failure("invalid result").with_source(error))?;
        Ok(Self { error, restarted_after, result })
    }

    pub(super) fn print(&self, output: &mut Output, number: usize) -> std::io::Result<()> {
        let number = output.paint(Style::Strong, &format!("{number}."));
        let tool = output.paint(Style::Good, TOOL);
        output.print_data(&format!("{number} {tool}  kill the server during the call"))?;
        output.print_data(&format!("     ← {}", escape_inline(&self.error)))?;
        let millis = self.restarted_after.as_millis();
        let notes = self.found_notes();
        output.print_data(&format!(
            "     ← the call was not repeated; `{SERVER}` restarted after {millis} ms and still has \
             {notes} note{}",
            if notes == 1 { "" } else { "s" }
        ))
    }

    /// Returns the outcome as JSON.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "server": SERVER,
            "tool": TOOL,
            "error": self.error,
            "restartedAfterMs": self.restarted_after.as_secs_f64() * 1000.0,
            "foundNotes": self.found_notes(),
        })
    }

    fn found_notes(&self) -> usize {
        self.result["structuredContent"]["notes"].as_array().map_or(0, Vec::len)
    }
}

fn failure(reason: &str) -> CliError {
    CliError::failure(format!("the demo cannot kill `{SERVER}` during a call: {reason}"))
}

fn signal(pid: Pid, signal: Signal) -> Result<(), CliError> {
    kill_process(pid, signal).map_err(|error| failure("no signal").with_source(error))
}

async fn until_in_flight(host: &Host) {
    while host.status().get(SERVER).is_none_or(|status| status.in_flight == 0) {
        sleep(POLL_DELAY).await;
    }
}

fn is_ready(host: &Host) -> bool {
    host.status().get(SERVER).is_some_and(|status| status.state == ServerState::Ready)
}

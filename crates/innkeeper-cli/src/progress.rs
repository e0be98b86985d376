//! Start progress on a terminal: one line per server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_host::{HostEvent, display_safe};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

use crate::output::Output;
use crate::progress_lines::{ProgressLines, SpinnerLine};
use crate::secret_mask::SecretMask;

/// Maximum number of characters of a reason on a line.
const MAX_REASON_CHARS: usize = 100;

type ServerLines = Arc<Mutex<HashMap<Arc<str>, SpinnerLine>>>;

#[derive(Debug)]
pub(crate) struct ProgressDisplay {
    servers: ServerLines,
    task: JoinHandle<()>,
}

/// Shows the events until [`ProgressDisplay::clear`]; shows nothing if stderr is no terminal.
pub(crate) fn show_progress(output: &Output, events: Receiver<HostEvent>) -> ProgressDisplay {
    let servers = ServerLines::default();
    let lines = output.progress_lines().clone();
    let mask = output.secret_mask().clone();
    #[expect(clippy::disallowed_methods, reason = "`ProgressDisplay` owns and stops this task")]
    let task = tokio::spawn(follow_events(events, lines, mask, servers.clone()));
    ProgressDisplay { servers, task }
}

impl ProgressDisplay {
    /// Removes the progress lines from the terminal.
    pub(crate) fn clear(self) {
        self.task.abort();
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

async fn follow_events(
    mut events: Receiver<HostEvent>,
    lines: ProgressLines,
    mask: SecretMask,
    servers: ServerLines,
) {
    loop {
        let event = match events.recv().await {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let Some((server, message, done)) = describe_event(&event) else { continue };
        let message = mask.apply(&message).into_owned();
        let mut servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
        if !servers.contains_key(server) {
            let Some(line) = lines.add_spinner("{spinner} {prefix}  {msg}") else { return };
            line.set_prefix(server.to_string());
            line.start();
            servers.insert(server.clone(), line);
        }
        let Some(line) = servers.get(server) else { continue };
        if done {
            line.finish_with_message(message);
        } else {
            line.set_message(message);
        }
    }
}

/// Returns the server of an event, its message, and whether its progress line is finished.
fn describe_event(event: &HostEvent) -> Option<(&Arc<str>, String, bool)> {
    Some(match event {
        HostEvent::Launching { server, program, attempt } => {
            let action = match program {
                Some(program) => format!("starting {}", short(program)),
                None => "connecting".to_owned(),
            };
            let attempt = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
            (server, format!("{action}{attempt}"), false)
        }
        HostEvent::Installing { server, package } => {
            let package = package.as_deref().unwrap_or("the package");
            (server, format!("installing {}", short(package)), false)
        }
        HostEvent::Handshake { server } => (server, "initializing".to_owned(), false),
        HostEvent::LaunchRetry { server, delay, reason } => {
            (server, format!("{}; retry in {} s", short(reason), delay.as_secs_f64()), false)
        }
        HostEvent::Ready { server, elapsed, tools } => {
            let plural = if *tools == 1 { "" } else { "s" };
            (server, format!("ready after {} ms, {tools} tool{plural}", elapsed.as_millis()), true)
        }
        HostEvent::Unavailable { server, reason } => (server, short(reason), true),
        _ => return None,
    })
}

fn short(reason: &str) -> String {
    display_safe(reason).chars().take(MAX_REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_step_of_a_start_is_described_and_only_the_last_ends_the_line() {
        let server: Arc<str> = "one".into();
        let server_name = || server.clone();
        let elapsed = Duration::from_millis(1500);
        let reason = || "\u{1b}[2Jno such program".to_owned();
        let describe = |event: HostEvent| {
            let (event_server, message, done) = describe_event(&event).unwrap();
            assert_eq!(**event_server, *server);
            (message, done)
        };
        let launching = |program: Option<&str>, attempt| {
            let program = program.map(Into::into);
            describe(HostEvent::Launching { server: server_name(), program, attempt }).0
        };
        assert_eq!(launching(Some("npx"), 1), "starting npx");
        assert_eq!(launching(Some("npx"), 2), "starting npx, attempt 2");
        assert_eq!(launching(None, 1), "connecting");
        let installing = |package: Option<&str>| {
            let package = package.map(Into::into);
            describe(HostEvent::Installing { server: server_name(), package })
        };
        assert_eq!(installing(Some("@scope/tool")), ("installing @scope/tool".to_owned(), false));
        assert_eq!(installing(None).0, "installing the package");
        assert!(!describe(HostEvent::Handshake { server: server_name() }).1);
        let retrying = HostEvent::LaunchRetry {
            server: server_name(),
            delay: Duration::from_secs(2),
            reason: reason(),
        };
        let (message, done) = describe(retrying);
        assert!(message.ends_with("no such program; retry in 2 s") && !done, "{message}");
        assert!(!message.contains('\u{1b}'), "{message}");
        let ready = |tools| describe(HostEvent::Ready { server: server_name(), elapsed, tools });
        assert_eq!(ready(1), ("ready after 1500 ms, 1 tool".to_owned(), true));
        assert_eq!(ready(2), ("ready after 1500 ms, 2 tools".to_owned(), true));
        let long = "x".repeat(MAX_REASON_CHARS + 1);
        let (message, done) =
            describe(HostEvent::Unavailable { server: server_name(), reason: long });
        assert_eq!((message.chars().count(), done), (MAX_REASON_CHARS, true));
    }
}

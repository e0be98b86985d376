//! Waits for the shutdown of a host, and says which servers the program waits for.

use std::future::Future;
use std::time::Duration;

use innkeeper_host::Host;
use tokio::time::timeout;

use crate::output::Output;

/// Time after which the program says what it waits for: servers that behave stop earlier.
const NOTICE_DELAY: Duration = Duration::from_secs(1);

/// Waits for a shutdown of the host. After [`NOTICE_DELAY`], a line on stderr names the servers that
/// are still running; `is_interrupted` says whether a signal has arrived before.
pub(crate) async fn await_shutdown<T>(
    host: &Host,
    output: &mut Output,
    is_interrupted: bool,
    shutdown: impl Future<Output = T>,
) -> T {
    tokio::pin!(shutdown);
    if let Ok(report) = timeout(NOTICE_DELAY, &mut shutdown).await {
        return report;
    }
    let status = host.status();
    let running = status.iter().filter(|(_, status)| status.pid.is_some());
    let running: Vec<&str> = running.map(|(name, _)| &**name).collect();
    if let Some(notice) = notice(&running, is_interrupted) {
        // A closed stderr does not end the shutdown.
        output.status(&notice).unwrap_or_default();
    }
    shutdown.await
}

fn notice(running: &[&str], is_interrupted: bool) -> Option<String> {
    let names: Vec<_> = running.iter().map(|name| format!("`{name}`")).collect();
    let (servers, them) = match running {
        [] => return None,
        [_] => ("server", "it"),
        _ => ("servers", "them"),
    };
    let again = if is_interrupted { " again" } else { "" };
    let names = names.join(", ");
    Some(format!("waiting for {servers} {names} to stop (Ctrl-C{again} to kill {them})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_names_the_running_servers_and_the_key() {
        let one = "waiting for server `a` to stop (Ctrl-C again to kill it)";
        assert_eq!(notice(&["a"], true).as_deref(), Some(one));
        let two = "waiting for servers `a`, `b` to stop (Ctrl-C to kill them)";
        assert_eq!(notice(&["a", "b"], false).as_deref(), Some(two));
        assert_eq!(notice(&[], true), None);
    }
}

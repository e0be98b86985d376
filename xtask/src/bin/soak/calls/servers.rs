//! The servers of the calls: seven over stdio, two over HTTP, one over a WebSocket.

use std::path::{Path, PathBuf};

use innkeeper_testkit::{Fixture, RemoteServer, fixture};
use serde_json::{Map, Value, json};
use tokio::runtime::Builder;

use crate::print_line;

/// The names of all servers; the names after the first [`STDIO_SERVER_COUNT`] are remote servers.
pub(super) const SERVER_NAMES: [&str; 10] =
    ["pipe0", "pipe1", "pipe2", "pipe3", "pipe4", "pipe5", "pipe6", "web0", "web1", "socket"];
/// Number of stdio servers.
pub(super) const STDIO_SERVER_COUNT: usize = 7;

/// Timeouts are part of the test and must not make a server unavailable.
const UNAVAILABLE_AFTER_TIMEOUTS: u32 = 1000;

/// The call log of a server.
pub(super) fn call_log_path(dir: &Path, name: &str) -> PathBuf {
    dir.join(name)
}

/// The configuration of all servers, with the given entries for the remote servers.
pub(super) fn config(dir: &Path, remote: &str) -> Result<Value, String> {
    let remote: Map<String, Value> = serde_json::from_str(remote)
        .map_err(|error| format!("invalid entries of the remote servers: {error}"))?;
    let stdio = SERVER_NAMES[..STDIO_SERVER_COUNT]
        .iter()
        .map(|name| ((*name).to_owned(), base_fixture(dir, name).config_entry()));
    let servers: Map<String, Value> = stdio.chain(remote).collect();
    Ok(json!({"servers": servers}))
}

/// Runs the remote servers until the end of the input, in a separate process, so that the resources
/// of the servers do not count as the host's.
pub(crate) fn serve_remotes(dir: &str) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start the runtime: {error}"))?;
    runtime.block_on(async {
        let (mut entries, mut remotes) = (Map::new(), Vec::new());
        for name in &SERVER_NAMES[STDIO_SERVER_COUNT..] {
            let plan = RemoteServer::for_fixture(base_fixture(Path::new(dir), name));
            let plan = if *name == "socket" { plan.websocket() } else { plan.streamable() };
            let remote = plan.start().await;
            entries.insert((*name).to_owned(), remote.config_entry());
            remotes.push(remote);
        }
        print_line(&Value::Object(entries).to_string());
        let input = tokio::task::spawn_blocking(|| std::io::stdin().lines().for_each(drop));
        input.await.map_err(|error| format!("stdin: {error}"))?;
        for remote in remotes {
            remote.stop().await;
        }
        Ok(())
    })
}

fn base_fixture(dir: &Path, name: &str) -> Fixture {
    let file = call_log_path(dir, name);
    fixture(name)
        .with("--tally", file.display())
        .config_key("unavailableAfterTimeouts", UNAVAILABLE_AFTER_TIMEOUTS)
}

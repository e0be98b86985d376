//! The ten servers: seven over stdio, two over HTTP, one over a WebSocket.

use std::path::{Path, PathBuf};

use innkeeper_testkit::{Fixture, Remote, fx};
use serde_json::{Map, Value, json};
use tokio::runtime::Builder;

use crate::say;

/// Their names; those behind the first [`STDIO`] are remote.
pub(super) const NAMES: [&str; 10] =
    ["pipe0", "pipe1", "pipe2", "pipe3", "pipe4", "pipe5", "pipe6", "web0", "web1", "socket"];
/// How many are reached over stdio.
pub(super) const STDIO: usize = 7;

/// Time-outs are asked for, so they say nothing of a server.
const TIMEOUTS: u32 = 1000;

/// The file in which a server notes what it ran.
pub(super) fn tally(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}

/// The configuration of all, given the entries of the remote ones.
pub(super) fn config(folder: &Path, remote: &str) -> Result<Value, String> {
    let remote: Map<String, Value> = serde_json::from_str(remote)
        .map_err(|error| format!("the entries of the remote servers: {error}"))?;
    let stdio = NAMES[..STDIO].iter().map(|name| ((*name).to_owned(), plain(folder, name).entry()));
    let servers: Map<String, Value> = stdio.chain(remote).collect();
    Ok(json!({"servers": servers}))
}

/// Runs the remote servers until the end of the input; a process of its own, so that what they take
/// is not the host's.
pub(crate) fn serve_remotes(folder: &str) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        let (mut entries, mut remotes) = (Map::new(), Vec::new());
        for name in &NAMES[STDIO..] {
            let plan = Remote::of(plain(Path::new(folder), name));
            let plan = if *name == "socket" { plan.websocket() } else { plan.streamable() };
            let remote = plan.start().await;
            entries.insert((*name).to_owned(), remote.entry());
            remotes.push(remote);
        }
        say(&Value::Object(entries).to_string());
        let input = tokio::task::spawn_blocking(|| std::io::stdin().lines().for_each(drop));
        input.await.map_err(|error| format!("stdin: {error}"))?;
        for remote in remotes {
            remote.stop().await;
        }
        Ok(())
    })
}

fn plain(folder: &Path, name: &str) -> Fixture {
    let file = tally(folder, name);
    fx(name).with("--tally", file.display()).key("unavailableAfterTimeouts", TIMEOUTS)
}

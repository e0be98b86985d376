//! Replicas of the program behind a proxy.

use std::collections::HashMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use innkeeper_testkit::{Fixture, Haproxy, Journal, fixture, free_port, mcp_json};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::program::innkeeper;

/// Duration of the leases of replicas.
pub(super) const LEASE: Duration = Duration::from_secs(3);

/// The secret of the replicas.
pub(super) const SECRET: &str = "a-secret-that-the-replicas-share-0123456789";

/// Keys of two principals, for the variables `ada` and `bob` of the configuration.
pub(super) const ADA_KEY: &str = "key-of-ada-0123456789abcdef0123456789";
pub(super) const BOB_KEY: &str = "key-of-bob-0123456789abcdef0123456789";

/// Number of progress messages of each call of the server `pr`.
pub(super) const PROGRESS_STEPS: u64 = 8;

/// Maximum time until a replica serves.
const START_TIME: Duration = Duration::from_secs(30);

/// Interval between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A replica with its addresses, which stay when it starts again.
#[derive(Debug)]
pub(super) struct Replica {
    child: Child,
    pub(super) address: SocketAddr,
    /// The address for the other replicas.
    pub(super) listen: SocketAddr,
    command: Command,
    log: PathBuf,
}

impl Drop for Replica {
    fn drop(&mut self) {
        // The replica may have exited already; the error is expected then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Replica {
    /// Starts a replica on free ports with the configuration of a directory.
    async fn start(directory: &Path, store: &str) -> Self {
        let (address, listen) = (free_port(), free_port());
        let listen_on = address.to_string();
        let args = ["serve", "--config", "mcp.json", "--listen", &listen_on, "--store", store];
        let mut command = innkeeper(&args, directory);
        command
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("MCP_REPLICA_LISTEN", listen.to_string())
            .env("MCP_REPLICA_SECRET", SECRET)
            .env("MCP_LEASE_SECONDS", LEASE.as_secs().to_string());
        Self::start_command(command, (address, listen), directory).await
    }

    /// Starts a replica that listens on two addresses. What it writes goes to a file in a directory.
    pub(super) async fn start_command(
        mut command: Command,
        (address, listen): (SocketAddr, SocketAddr),
        directory: &Path,
    ) -> Self {
        let log = directory.join(format!("replica-{}.log", address.port()));
        let child = spawn(&mut command, &log);
        let mut replica = Self { child, address, listen, command, log };
        replica.wait_serving().await;
        replica
    }

    /// Listens for other replicas at another address after its next start.
    pub(super) fn set_listen(&mut self, address: SocketAddr) {
        self.listen = address;
        self.command.env("MCP_REPLICA_LISTEN", address.to_string());
    }

    /// Sets the address at which other replicas reach the replica after its next start.
    pub(super) fn set_address(&mut self, address: SocketAddr) {
        self.command.env("MCP_REPLICA_URL", format!("http://{address}"));
    }

    /// Starts the replica again after its end.
    pub(super) async fn start_again(&mut self) {
        self.child = spawn(&mut self.command, &self.log);
        self.wait_serving().await;
    }

    async fn wait_serving(&mut self) {
        let deadline = Instant::now() + START_TIME;
        loop {
            let log = self.log();
            if log.contains("serving ") {
                return;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}: {log}");
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns what the replica wrote since its start.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the replica has ended.
    pub(super) async fn wait_end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + START_TIME;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the replica does not end: {}", self.log());
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Kills the replica.
    pub(super) async fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait_end().await;
    }
}

/// Starts a program whose stderr goes to a file.
fn spawn(command: &mut Command, log: &Path) -> Child {
    let log = File::create(log).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

/// Replicas behind a proxy.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) replicas: Vec<Replica>,
    pub(super) proxy: Haproxy,
    directory: TempDir,
}

impl Cluster {
    /// Starts replicas whose servers log what they receive.
    pub(super) async fn start(count: usize, store: &str, serve: &Value) -> Self {
        Self::start_with(count, store, serve, |server| server).await
    }

    /// Starts replicas with further settings of their servers.
    pub(super) async fn start_with(
        count: usize,
        store: &str,
        serve: &Value,
        with_settings: impl Fn(Fixture) -> Fixture,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let journal = path.join("journal");
        let progress =
            fixture("pr").with("--progress", PROGRESS_STEPS).with("--progress-delay", 60);
        let servers = [fixture("fx"), progress];
        let servers = servers.map(|server| with_settings(server.journal(&journal)));
        let mut config = mcp_json(servers);
        config["serve"] = serve.clone();
        Self::start_in(directory, count, store, &config).await
    }

    /// Starts replicas with a configuration.
    pub(super) async fn start_config(count: usize, store: &str, config: &Value) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), count, store, config).await
    }

    async fn start_in(directory: TempDir, count: usize, store: &str, config: &Value) -> Self {
        let path = directory.path();
        fs::write(path.join("mcp.json"), config.to_string()).unwrap();
        fs::write(path.join(".env"), format!("ada={ADA_KEY}\nbob={BOB_KEY}\n")).unwrap();
        let starting = (0..count).map(|_| Replica::start(path, store));
        let replicas = futures_util::future::join_all(starting).await;
        let addresses: Vec<_> = replicas.iter().map(|replica| replica.address).collect();
        Self { replicas, proxy: Haproxy::round_robin(&addresses), directory }
    }

    /// Returns the URL of a replica for clients.
    pub(super) fn url(&self, replica: usize) -> String {
        format!("http://{}/mcp", self.replicas[replica].address)
    }

    /// Waits until a call with a number arrived at a server.
    pub(super) async fn wait_executed(&self, number: u64) {
        let deadline = Instant::now() + START_TIME;
        while !self.executions().contains_key(&number) {
            assert!(Instant::now() < deadline, "call {number} does not arrive");
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns how often each call with a number arrived at a server.
    pub(super) fn executions(&self) -> HashMap<u64, usize> {
        executions(&self.directory.path().join("journal"))
    }
}

/// Returns how often each call with a number is in a journal.
pub(super) fn executions(journal: &Path) -> HashMap<u64, usize> {
    let journal = Journal::read_unchecked(journal);
    let calls = journal.entries.iter().filter(|entry| entry.method() == Some("tools/call"));
    let mut executions = HashMap::new();
    for call in calls {
        if let Some(number) = call.message["params"]["arguments"]["number"].as_u64() {
            *executions.entry(number).or_default() += 1;
        }
    }
    executions
}

/// Returns the settings of a gateway without limits for one client.
pub(super) fn open_settings() -> Value {
    json!({ "limits": { "connectionsPerAddress": 4000 } })
}

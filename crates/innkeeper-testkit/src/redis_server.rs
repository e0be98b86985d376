//! A Redis server for one test.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::free_port::free_port;

/// Maximum time until the server is ready or has ended, on a loaded machine.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Interval between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The directory of an installation, in the repository.
const INSTALLATION: &str = "../../target/tools/redis";

/// A running `redis-server` on a loopback port, with its files in a temporary directory. A drop kills
/// the server.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    address: SocketAddr,
    arguments: Vec<String>,
    dir: TempDir,
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // The server may have exited already; the error is expected then.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl RedisServer {
    /// Starts the server with additional arguments, for example `--appendonly yes`: without them, the
    /// server has no password and keeps nothing when it stops. The server exits with the thread that
    /// starts it.
    ///
    /// # Panics
    ///
    /// If no server is installed, or if the server does not become ready.
    #[must_use]
    pub fn start(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("no directory: {error}"));
        let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        // Another program can take the port before the server does.
        for _ in 0..10 {
            let address = free_port();
            if let Some(child) = start_child(address, &arguments, dir.path()) {
                return Self { child, address, arguments, dir };
            }
        }
        panic!("the server does not start:\n{}", log_text(dir.path()));
    }

    /// Returns the URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the server as an administrator does: what is to persist is on the disk afterwards.
    ///
    /// # Panics
    ///
    /// If the server does not end.
    pub fn stop(&mut self) {
        self.signal(Signal::TERM);
        let stopped = self.child.wait();
        stopped.unwrap_or_else(|error| panic!("the server does not end: {error}"));
    }

    /// Starts a server again that [`Self::stop`] ended, on the same port.
    ///
    /// # Panics
    ///
    /// If the server does not become ready.
    pub fn start_again(&mut self) {
        let started = start_child(self.address, &self.arguments, self.dir.path());
        self.child = started.unwrap_or_else(|| {
            panic!("the server does not start again:\n{}", log_text(self.dir.path()))
        });
    }

    /// Lets the server hang: the server accepts connections and does not answer.
    ///
    /// # Panics
    ///
    /// If the server has ended.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Ends the effect of [`Self::pause`].
    ///
    /// # Panics
    ///
    /// If the server has ended.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let sent = kill_process(Pid::from_child(&self.child), signal);
        sent.unwrap_or_else(|error| panic!("no signal to the server: {error}"));
    }
}

fn log_text(dir: &Path) -> String {
    fs::read_to_string(dir.join("log")).unwrap_or_default()
}

/// Starts the server and waits until the server is ready. Returns nothing if the server ends.
fn start_child(address: SocketAddr, arguments: &[String], dir: &Path) -> Option<Child> {
    drop(fs::remove_file(dir.join("log")));
    let mut command = server_command();
    command
        .args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--save", ""])
        .args(["--loglevel", "notice", "--logfile", "log", "--dir"])
        .arg(dir)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start Redis: {error}"));
    let tries = START_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis();
    for _ in 0..tries {
        if log_text(dir).contains("Ready to accept connections") {
            return Some(child);
        }
        let ended = child.try_wait();
        if ended.unwrap_or_else(|error| panic!("no state of the server: {error}")).is_some() {
            return None;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    drop(child.kill());
    panic!("the server was not ready within {START_TIMEOUT:?}:\n{}", log_text(dir));
}

/// Returns the command of the server in `PATH` or of the installed one.
#[expect(clippy::disallowed_methods, reason = "the test starts its own server")]
fn server_command() -> Command {
    // `setpriv` executes the server with a parent-death signal, so that the server also exits when
    // the test is killed and no destructor runs.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    let in_path = Command::new("redis-server").arg("--version").output();
    if in_path.is_ok_and(|version| version.status.success()) {
        command.arg("redis-server");
        return command;
    }
    let installation = Path::new(env!("CARGO_MANIFEST_DIR")).join(INSTALLATION);
    let program = installation.join("usr/bin/redis-server");
    assert!(program.is_file(), "no `redis-server`: run `cargo xtask install`");
    let libraries = library_dirs(&installation)
        .and_then(|dirs| std::env::join_paths(dirs).map_err(io::Error::other));
    let libraries = libraries.unwrap_or_else(|error| panic!("the libraries of Redis: {error}"));
    command.arg(program).env("LD_LIBRARY_PATH", libraries);
    command
}

/// Returns the directories of the libraries in an installation: one per architecture.
fn library_dirs(installation: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(installation.join("usr/lib"))?.map(|entry| Ok(entry?.path())).collect()
}

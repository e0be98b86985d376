//! A Redis server for one test.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::debian_program::{DebianProgram, free_port, signal};

const PROGRAM: DebianProgram =
    DebianProgram { name: "redis-server", home: "redis", dir: "usr/bin", version_arg: "--version" };

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
        let _ = self.child.kill();
        let _ = self.child.wait();
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
        signal(&self.child, Signal::TERM);
        let stopped = self.child.wait();
        stopped.unwrap_or_else(|error| panic!("the server does not end: {error}"));
    }

    /// Starts a server again that [`Self::stop`] or [`Self::kill`] ended, on the same port.
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

    /// Sends commands as text, each with a line end, and waits for the responses to all.
    ///
    /// # Panics
    ///
    /// If the server does not respond.
    pub fn send(&self, commands: &str) {
        let sent = TcpStream::connect(self.address).and_then(|mut stream| {
            stream.write_all(commands.as_bytes())?;
            // The server responds to everything that precedes the end.
            stream.shutdown(Shutdown::Write)?;
            stream.read_to_end(&mut Vec::new())
        });
        sent.unwrap_or_else(|error| panic!("no response of the server: {error}"));
    }

    /// Lets the server hang: the server accepts connections and does not answer.
    ///
    /// # Panics
    ///
    /// If the server has ended.
    pub fn pause(&self) {
        signal(&self.child, Signal::STOP);
    }

    /// Ends the effect of [`Self::pause`].
    ///
    /// # Panics
    ///
    /// If the server has ended.
    pub fn resume(&self) {
        signal(&self.child, Signal::CONT);
    }

    /// Ends the server at once.
    ///
    /// # Panics
    ///
    /// If the server does not end.
    pub fn kill(&mut self) {
        signal(&self.child, Signal::KILL);
        let ended = self.child.wait();
        ended.unwrap_or_else(|error| panic!("the server does not end: {error}"));
    }
}

fn log_text(dir: &Path) -> String {
    fs::read_to_string(dir.join("log")).unwrap_or_default()
}

/// Starts the server and waits until the server is ready. Returns nothing if the server ends.
fn start_child(address: SocketAddr, arguments: &[String], dir: &Path) -> Option<Child> {
    let _ = fs::remove_file(dir.join("log"));
    let mut command = PROGRAM.command();
    command
        .args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--save", ""])
        .args(["--loglevel", "notice", "--logfile", "log", "--dir"])
        .arg(dir)
        .args(arguments)
        .stderr(Stdio::null());
    PROGRAM.start(&mut command, || log_text(dir).contains("Ready to accept connections"))
}

/// A running `redis-server --sentinel` that makes a replica the primary when the primary ends. A drop
/// kills the sentinel.
#[derive(Debug)]
pub struct RedisSentinel {
    child: Child,
    _dir: TempDir,
}

impl Drop for RedisSentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RedisSentinel {
    /// Starts a sentinel that decides alone, half a second after the primary ended.
    ///
    /// # Panics
    ///
    /// If no Redis is installed, or if the sentinel does not start.
    #[must_use]
    pub fn start(primary: SocketAddr) -> Self {
        let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("no directory: {error}"));
        for _ in 0..10 {
            let path = dir.path();
            let port = free_port().port();
            let settings = format!(
                "bind 127.0.0.1\nport {port}\ndir {}\nlogfile log\n\
                 sentinel monitor primary 127.0.0.1 {} 1\n\
                 sentinel down-after-milliseconds primary 500\n\
                 sentinel failover-timeout primary 5000\n",
                path.display(),
                primary.port()
            );
            let file = path.join("sentinel.conf");
            fs::write(&file, settings).unwrap_or_else(|error| panic!("no settings: {error}"));
            let mut command = PROGRAM.command();
            command.arg(file).arg("--sentinel").stderr(Stdio::null());
            // A sentinel that knows no replica cannot make one the primary.
            if let Some(child) = PROGRAM.start(&mut command, || log_text(path).contains("+slave")) {
                return Self { child, _dir: dir };
            }
        }
        panic!("the sentinel does not start:\n{}", log_text(dir.path()));
    }
}

//! A haproxy for one test: in front of HTTP servers, or of the servers of one Redis.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::debian_program::{DebianProgram, free_port};

const PROGRAM: DebianProgram =
    DebianProgram { name: "haproxy", home: "haproxy", dir: "usr/sbin", version_arg: "-v" };

/// The settings of every proxy. A request is passed on once, and again only to a server whose
/// connection was refused.
const SETTINGS: &str = "\
global
  nbthread 1
  maxconn 4000
defaults
  timeout connect 2s
  timeout client 120s
  timeout server 120s
  timeout check 1s
  retries 1
  retry-on conn-failure
  no option redispatch
";

/// A running `haproxy` on a loopback port. A drop kills the proxy.
#[derive(Debug)]
pub struct Haproxy {
    child: Child,
    address: SocketAddr,
    _dir: TempDir,
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        // The proxy may have exited already; the error is expected then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Haproxy {
    /// Starts a proxy that passes each HTTP request to the next server, among those whose `/readyz`
    /// responds with status 200.
    ///
    /// # Panics
    ///
    /// If no proxy is installed, or if the proxy does not start.
    #[must_use]
    pub fn round_robin(servers: &[SocketAddr]) -> Self {
        let rules = "\
  mode http
  balance roundrobin
  option httpchk
  http-check send meth GET uri /readyz ver HTTP/1.1 hdr host localhost
  http-check expect status 200
  default-server check inter 250ms fall 2 rise 1
";
        Self::start(rules, servers)
    }

    /// Starts a proxy that passes all connections to the primary among the servers of a Redis, and
    /// closes the connections to a server that is no longer the primary.
    ///
    /// # Panics
    ///
    /// As [`Self::round_robin`].
    #[must_use]
    pub fn redis_primary(servers: &[SocketAddr]) -> Self {
        let rules = "\
  mode tcp
  balance first
  timeout client 1h
  timeout server 1h
  option tcp-check
  tcp-check connect
  tcp-check send info\\ replication\\r\\n
  tcp-check expect string role:master
  default-server check inter 100ms fall 1 rise 1 on-marked-down shutdown-sessions
";
        Self::start(rules, servers)
    }

    fn start(rules: &str, servers: &[SocketAddr]) -> Self {
        let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("no directory: {error}"));
        // Another program can take the port before the proxy does.
        for _ in 0..10 {
            let address = free_port();
            let servers = servers.iter().enumerate();
            let servers: Vec<String> =
                servers.map(|(number, server)| format!("  server s{number} {server}\n")).collect();
            let listen = format!("listen servers\n  bind {address}\n{rules}");
            let text = [SETTINGS, &listen, &servers.concat()].concat();
            let file = dir.path().join("haproxy.cfg");
            let log = dir.path().join("log");
            let written = fs::write(&file, text).and_then(|()| fs::File::create(&log));
            let log = written.unwrap_or_else(|error| panic!("no configuration: {error}"));
            let mut command = PROGRAM.command();
            command.arg("-db").arg("-f").arg(&file).stderr(Stdio::from(log));
            let child = PROGRAM.start(&mut command, || TcpStream::connect(address).is_ok());
            if let Some(child) = child {
                return Self { child, address, _dir: dir };
            }
        }
        let log = fs::read_to_string(dir.path().join("log")).unwrap_or_default();
        panic!("the proxy does not start:\n{log}");
    }

    /// Returns the address of the proxy.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

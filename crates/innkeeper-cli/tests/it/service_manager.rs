//! Tests of `serve` under a service manager: the test process holds the listening socket.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use innkeeper_testkit::{Fixture, Journal, ProcessTag, fixture, mcp_json, wait_gone};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::program::innkeeper;
use crate::serve::{HttpGateway, call_on};

/// Replaces the shell by the program, with stdin as the first socket of a service manager.
const START_WITH_SOCKET: &str =
    "exec 3<&0 </dev/null; LISTEN_FDS=${COUNT:-1} LISTEN_PID=$$ exec \"$0\" \"$@\"";

/// Returns a directory with the configuration of a server.
fn directory(server: Fixture) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mcp.json"), mcp_json([server]).to_string()).unwrap();
    directory
}

/// Returns the command of `serve` with a socket of this process.
fn serve_command(directory: &Path, socket: impl Into<OwnedFd>, args: &[&str]) -> Command {
    let args = [&["serve", "--config", "mcp.json"], args].concat();
    let program = innkeeper(&args, directory);
    #[expect(clippy::disallowed_methods, reason = "the shell passes a descriptor with a number")]
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", START_WITH_SOCKET])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(directory)
        .env_clear()
        .envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::from(socket.into()));
    shell
}

/// Clients that open a new connection for each call, until they are stopped.
#[derive(Default)]
struct Clients {
    stopped: AtomicBool,
    /// The process that answered each call, in the order of the results.
    pids: Mutex<Vec<u32>>,
}

impl Clients {
    fn run(&self, address: &str) {
        while !self.stopped.load(Ordering::Relaxed) {
            let stream = connect(address);
            let pid = call_on(stream, "", ("a.pid", &json!({})));
            self.pids.lock().unwrap().push(pid.parse().unwrap());
        }
    }

    /// Waits until a condition holds for the answers.
    fn wait_for(&self, condition: impl Fn(&[u32]) -> bool) {
        let started = Instant::now();
        while !condition(&self.pids.lock().unwrap()) {
            assert!(started.elapsed() < Duration::from_secs(60), "too few calls");
            thread::yield_now();
        }
    }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

#[test]
fn a_restart_with_a_handed_over_socket_drops_no_call() {
    let process_tag = ProcessTag::new();
    let directory = directory(fixture("a").process_tag(&process_tag));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = || {
        let socket = listener.try_clone().unwrap();
        HttpGateway::start(&mut serve_command(directory.path(), socket, &[]))
    };
    let first = serve();
    assert_eq!(first.address, address);
    let clients = Clients::default();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| clients.run(&address))).collect();
        clients.wait_for(|pids| pids.len() >= 20);
        let slow = connect(&address);
        let slow = scope.spawn(|| call_on(slow, "", ("a.sleep", &json!({ "ms": 1000 }))));
        let old = clients.pids.lock().unwrap()[0];
        first.start_termination();
        let second = serve();
        clients.wait_for(|pids| pids.iter().filter(|pid| **pid != old).count() >= 20);
        assert_eq!(first.wait(), Some(143));
        clients.stopped.store(true, Ordering::Relaxed);
        for client in threads {
            client.join().unwrap();
        }
        assert_eq!(slow.join().unwrap(), "slept");
        assert_eq!(second.terminate(), Some(143));
    });
    wait_gone(&process_tag, Duration::from_secs(1)).unwrap();
}

#[test]
fn a_handed_over_unix_socket_serves_http() {
    let directory = directory(fixture("a"));
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let gateway = HttpGateway::start(&mut serve_command(directory.path(), listener, &[]));
    assert!(gateway.address.ends_with(path.to_str().unwrap()), "{}", gateway.address);
    let stream = UnixStream::connect(&path).unwrap();
    assert_eq!(call_on(stream, "", ("a.echo", &json!({ "message": "hi" }))), "hi");
    assert_eq!(gateway.terminate(), Some(143));
}

#[test]
fn a_socket_that_serve_cannot_use_is_an_error_with_the_next_step() {
    let directory = directory(fixture("a"));
    let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
    let accepting = listener();
    let connected = TcpStream::connect(accepting.local_addr().unwrap()).unwrap();
    let datagram = UnixDatagram::unbound().unwrap();
    let network = TcpListener::bind("0.0.0.0:0").unwrap();
    let cases: [(OwnedFd, &[&str], &str, &str); 5] = [
        (listener().into(), &["--listen", "127.0.0.1:0"], "1", "remove `--listen`"),
        (listener().into(), &[], "2", "handed over 2 sockets (`http:https`)"),
        (connected.into(), &[], "1", "not a listening TCP or Unix socket"),
        (datagram.into(), &[], "1", "not a listening TCP or Unix socket"),
        (network.into(), &["--allow-unauthenticated"], "1", "0.0.0.0:"),
    ];
    for (socket, args, count, expected) in cases {
        let mut command = serve_command(directory.path(), socket, args);
        command.env("COUNT", count).env("LISTEN_FDNAMES", "http:https");
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = String::new();
        for line in BufReader::new(child.stderr.take().unwrap()).lines() {
            let line = line.unwrap();
            if line.starts_with("serving ") {
                child.kill().unwrap();
            }
            messages.push_str(&line);
        }
        assert_eq!(child.wait().unwrap().code(), Some(2), "{expected}: {messages}");
        assert!(messages.contains(expected), "{expected}: {messages}");
    }
}

#[test]
fn a_socket_for_another_process_is_not_used() {
    let directory = directory(fixture("a"));
    let args = ["serve", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let mut command = innkeeper(&args, directory.path());
    let gateway = HttpGateway::start(command.env("LISTEN_FDS", "1").env("LISTEN_PID", "1"));
    assert_eq!(call_on(connect(&gateway.address), "", ("a.echo", &json!({ "message": "x" }))), "x");
    gateway.terminate();
}

/// Attack: secrets | a server inherits all variables of the gateway | it gets neither the variables
/// of the service manager nor the listening socket | Secrets stay with their owner
#[test]
fn a_server_inherits_neither_the_variables_nor_the_socket_of_the_service_manager() {
    let notified = tempfile::tempdir().unwrap();
    let notify = notified.path().join("notify");
    let _receiver = UnixDatagram::bind(&notify).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let server = fixture("a").journal(&journal).config_key("inheritEnv", true);
    std::fs::write(directory.path().join("mcp.json"), mcp_json([server]).to_string()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = format!("socket:[{}]", rustix::fs::fstat(&listener).unwrap().st_ino);
    let mut command = serve_command(directory.path(), listener, &[]);
    command.env("NOTIFY_SOCKET", &notify).env("LISTEN_FDNAMES", "http").env("OTHER", "inherited");
    let gateway = HttpGateway::start(&mut command);
    let started = call_on(connect(&gateway.address), "", ("a.env", &json!({})));
    let started: Value = serde_json::from_str(&started).unwrap();
    let names: Vec<&String> = started["env"].as_object().unwrap().keys().collect();
    assert!(names.iter().any(|name| *name == "OTHER"), "{names:?}");
    let is_private = |name: &str| name.starts_with("LISTEN_") || name == "NOTIFY_SOCKET";
    assert!(!names.iter().any(|name| is_private(name)), "{names:?}");
    let pid = Journal::read_unchecked(&journal).pids()[0];
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    for descriptor in descriptors {
        let target = std::fs::read_link(descriptor.unwrap().path()).unwrap();
        assert_ne!(target.to_str(), Some(&*socket));
    }
    gateway.terminate();
}

/// A receiver of the messages to the service manager.
struct Notifications {
    receiver: UnixDatagram,
    directory: TempDir,
}

impl Notifications {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let receiver = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { receiver, directory }
    }

    fn serve(&self, directory: &Path) -> HttpGateway {
        let args = ["serve", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
        let mut command = innkeeper(&args, directory);
        HttpGateway::start(command.env("NOTIFY_SOCKET", self.directory.path().join("notify")))
    }

    fn next(&self) -> String {
        let mut buffer = [0; 1000];
        let length = self.receiver.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }
}

#[test]
fn the_service_manager_hears_when_all_required_servers_are_ready_and_when_the_gateway_stops() {
    let directory = directory(fixture("a"));
    let notifications = Notifications::new();
    let gateway = notifications.serve(directory.path());
    let ready = notifications.next();
    assert!(ready.starts_with("READY=1\nSTATUS=serving 1 server on http://"), "{ready}");
    assert_eq!(gateway.terminate(), Some(143));
    assert_eq!(notifications.next(), "STOPPING=1");
}

#[test]
fn a_gateway_without_a_required_server_is_not_announced_as_ready() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = mcp_json([fixture("a")]);
    let key = ["servers", "mcpServers"].into_iter().find(|key| file.get(*key).is_some()).unwrap();
    file[key]["absent"] = json!({ "command": "/nowhere/server" });
    std::fs::write(directory.path().join("mcp.json"), file.to_string()).unwrap();
    let notifications = Notifications::new();
    let gateway = notifications.serve(directory.path());
    let waiting = notifications.next();
    assert_eq!(waiting, "STATUS=required server `absent` is unavailable");
    gateway.terminate();
    assert_eq!(notifications.next(), "STOPPING=1", "there is no `READY=1` in between");
}

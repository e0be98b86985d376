//! Tests of `serve` whose configuration changes.

use std::process::Stdio;
use std::time::Duration;

use innkeeper_testkit::{ProcessTag, fixture, mcp_json};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::program::innkeeper;
use crate::serve::HttpGateway;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

struct Reloads {
    directory: TempDir,
    process_tag: ProcessTag,
}

impl Reloads {
    fn new(servers: &[&str]) -> Self {
        let new = Self { directory: tempfile::tempdir().unwrap(), process_tag: ProcessTag::new() };
        std::fs::create_dir(new.directory.path().join("run")).unwrap();
        new.write(servers);
        new
    }

    /// Replaces the configuration as editors do.
    fn write(&self, servers: &[&str]) {
        let servers = servers.iter().map(|name| fixture(name).process_tag(&self.process_tag));
        let new = self.directory.path().join("new.json");
        std::fs::write(&new, mcp_json(servers).to_string()).unwrap();
        std::fs::rename(&new, self.directory.path().join("mcp.json")).unwrap();
    }

    fn command(&self, options: &[&str]) -> std::process::Command {
        self.program(&[&["serve", "--config", "mcp.json"], options].concat())
    }

    fn program(&self, args: &[&str]) -> std::process::Command {
        let mut command = innkeeper(args, self.directory.path());
        let state = self.directory.path();
        command
            .env("XDG_RUNTIME_DIR", state.join("run"))
            .env("XDG_STATE_HOME", state.join("state"));
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    fn serve(&self, option: &[&str]) -> HttpGateway {
        let options = [&["--listen", "127.0.0.1:0"], option].concat();
        HttpGateway::start(&mut self.command(&options))
    }
}

fn tools(gateway: &HttpGateway) -> String {
    gateway.get("/tools").1
}

fn pid(gateway: &HttpGateway, server: &str) -> String {
    let path = format!("/tools/{server}.pid");
    let (_, body) = gateway.post(&path, "", &Value::Object(serde_json::Map::new()));
    let result: Value = serde_json::from_str(&body).unwrap();
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
}

fn wait_until(what: &str, is_done: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_done() {
        assert!(started.elapsed() < TEST_TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_changed_file_adds_and_removes_servers_and_the_others_keep_their_processes() {
    let reloads = Reloads::new(&["a", "b"]);
    let gateway = reloads.serve(&[]);
    let first = pid(&gateway, "a");
    reloads.write(&["a", "c"]);
    wait_until("the added server is offered", || tools(&gateway).contains("c.echo"));
    wait_until("the removed server is gone", || !tools(&gateway).contains("b.echo"));
    assert_eq!(pid(&gateway, "a"), first);
    pid(&gateway, "c");
    for server in ["a", "c"] {
        let tool = format!("{server}.echo");
        let called =
            reloads.program(&["call", "--config", "mcp.json", &tool, "message=hi"]).output();
        let called = called.unwrap();
        assert!(called.status.success(), "{called:?}");
    }
    std::fs::write(reloads.directory.path().join("mcp.json"), "{").unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(pid(&gateway, "a"), first, "a broken file changes nothing");
    assert_eq!(gateway.terminate(), Some(143));
}

#[test]
fn sighup_reloads_and_does_not_end_the_gateway() {
    let reloads = Reloads::new(&["a"]);
    let gateway = reloads.serve(&["--no-watch"]);
    let first = pid(&gateway, "a");
    reloads.write(&["a", "b"]);
    std::thread::sleep(Duration::from_secs(1));
    assert!(!tools(&gateway).contains("b.echo"), "nobody watches the file");
    gateway.signal(rustix::process::Signal::HUP);
    wait_until("the added server is offered", || tools(&gateway).contains("b.echo"));
    assert_eq!(pid(&gateway, "a"), first);
    assert_eq!(gateway.terminate(), Some(143));
}

#[test]
fn one_server_of_the_running_gateway_restarts_on_request() {
    let reloads = Reloads::new(&["a", "b"]);
    let gateway = reloads.serve(&[]);
    let before = [pid(&gateway, "a"), pid(&gateway, "b")];
    let restart = |server: &str| {
        reloads.command(&["--restart", server]).stdin(Stdio::null()).output().unwrap()
    };
    let restarted = restart("a");
    assert!(restarted.status.success(), "{restarted:?}");
    assert_ne!(pid(&gateway, "a"), before[0]);
    assert_eq!(pid(&gateway, "b"), before[1]);
    assert_eq!(restart("unknown").status.code(), Some(2));
    assert_eq!(gateway.terminate(), Some(143));
    let alone = restart("a");
    let stderr = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(stderr.contains("no `innkeeper serve` restarts this server"), "{stderr}");
}

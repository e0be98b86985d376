//! Tests of commands that use the servers of a running `serve`.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Output, Stdio};
use std::time::Duration;

use innkeeper_testkit::{Fixture, Journal, ProcessTag, fixture, mcp_json, wait_gone};
use tempfile::TempDir;

use crate::program::innkeeper;

/// A directory with a configuration, and a runtime directory.
struct TestEnv {
    directory: TempDir,
    process_tag: ProcessTag,
}

impl TestEnv {
    fn new(server: Fixture) -> Self {
        let test_env =
            Self { directory: tempfile::tempdir().unwrap(), process_tag: ProcessTag::new() };
        let server = server.process_tag(&test_env.process_tag).journal(&test_env.path("journal"));
        std::fs::write(test_env.path("mcp.json"), mcp_json([server]).to_string()).unwrap();
        std::fs::create_dir(test_env.path("run")).unwrap();
        test_env
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let args = [args, &["--config", "mcp.json"]].concat();
        let mut command = innkeeper(&args, self.directory.path());
        command.env("XDG_RUNTIME_DIR", self.path("run")).env("XDG_STATE_HOME", self.path("state"));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    /// Starts `serve`, and returns when the gateway is ready.
    fn serve(&self) -> Gateway {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0", "--no-watch"]);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut text = String::new();
        while !text.contains("further paths: ") {
            assert!(stderr.read_line(&mut text).unwrap() > 0, "the program ended: {text}");
        }
        Gateway { child, text, stderr }
    }

    fn sockets(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("run/innkeeper")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Returns how many server processes have started.
    fn starts(&self) -> usize {
        Journal::read_unchecked(&self.path("journal")).pids().len()
    }
}

/// A running `serve`.
struct Gateway {
    child: Child,
    /// What the program wrote until it was ready.
    text: String,
    /// Open until the end, so that the program can write.
    stderr: BufReader<ChildStderr>,
}

impl Gateway {
    fn signal(mut self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
        self.child.wait().unwrap();
    }

    fn terminate(self) {
        self.signal(rustix::process::Signal::TERM);
    }
}

impl Drop for Gateway {
    /// Ends the program of a failed test.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// The stderr without the lines of the log, which contain times.
fn messages(output: &Output) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    stderr.lines().filter(|line| !line.starts_with("20")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_command_with_the_configuration_of_a_running_gateway_starts_no_server() {
    let test_env = TestEnv::new(fixture("a"));
    let gateway = test_env.serve();
    for _ in 0..2 {
        let called = test_env.run(&["call", "a.pid"]);
        assert_eq!(called.status.code(), Some(0), "{}", messages(&called));
        let pid = Journal::read_unchecked(&test_env.path("journal")).pids()[0].to_string();
        assert!(String::from_utf8_lossy(&called.stdout).contains(&pid));
    }
    assert_eq!(test_env.starts(), 1);
    assert_eq!(test_env.sockets().len(), 1);
    assert_eq!(mode(&test_env.sockets()[0]), 0o600);
    assert_eq!(mode(&test_env.path("run/innkeeper")), 0o700);
    gateway.terminate();
    assert!(test_env.sockets().is_empty(), "the socket is removed");
    wait_gone(&test_env.process_tag, Duration::from_secs(1)).unwrap();
    assert_eq!(test_env.run(&["call", "a.pid"]).status.code(), Some(0));
    assert_eq!(test_env.starts(), 2);
}

#[test]
fn a_command_with_a_running_gateway_prints_what_it_prints_without() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new(fixture("a").with("--era", era));
        let gateway = test_env.serve();
        let commands: [&[&str]; 14] = [
            &["call", "a.echo", "message=hi"],
            &["call", "a.echo", "message=hi", "--json"],
            &["call", "a.add", "a=1", "b=2", "--output", "text"],
            &["call", "a.fail"],
            &["call", "a.fail", "--output", "text"],
            &["call", "a.echo"],
            &["call", "a.add", "a=x", "b=2"],
            &["call", "a.absent"],
            &["call", "a"],
            &["read", "a", "fx://a/item/7"],
            &["read", "fx://a/item/7", "--json"],
            &["read", "a", "fx://a/absent"],
            &["prompt", "a.greet", "name=Ada"],
            &["prompt", "a.absent"],
        ];
        for args in commands {
            let attached = test_env.run(args);
            let own = test_env.run(&[args, &["--no-attach"]].concat());
            assert_eq!(attached.status.code(), own.status.code(), "{era} {args:?}");
            assert_eq!(
                String::from_utf8_lossy(&attached.stdout),
                String::from_utf8_lossy(&own.stdout),
                "{era} {args:?}"
            );
            assert_eq!(messages(&attached), messages(&own), "{era} {args:?}");
        }
        gateway.terminate();
    }
}

#[test]
fn a_call_through_the_socket_gets_its_result_although_the_gateway_ends() {
    let test_env = TestEnv::new(fixture("a"));
    let gateway = test_env.serve();
    let mut command = test_env.command(&["call", "a.sleep", "ms:=1000"]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let call = command.spawn().unwrap();
    let journal = test_env.path("journal");
    while Journal::read_unchecked(&journal).count("tools/call") == 0 {
        std::thread::yield_now();
    }
    gateway.terminate();
    let called = call.wait_with_output().unwrap();
    assert_eq!(called.status.code(), Some(0), "{}", messages(&called));
    assert!(String::from_utf8_lossy(&called.stdout).contains("slept"));
    assert_eq!(test_env.starts(), 1, "the command used the gateway");
    assert!(test_env.sockets().is_empty());
    wait_gone(&test_env.process_tag, Duration::from_secs(1)).unwrap();
}

#[test]
fn a_command_with_another_configuration_or_other_options_starts_its_own_server() {
    let test_env = TestEnv::new(fixture("a"));
    let gateway = test_env.serve();
    let mut starts = 1;
    let mut assert_own = |test_env: &TestEnv, options: &[&str]| {
        let called = test_env.run(&[&["call", "a.pid"], options].concat());
        assert_eq!(called.status.code(), Some(0), "{options:?}: {}", messages(&called));
        starts += 1;
        assert_eq!(test_env.starts(), starts, "{options:?}");
    };
    for options in [
        &["--no-attach"][..],
        &["--strict"],
        &["--timeout", "7"],
        &["--log-level", "info"],
        &["--log-file", "log"],
    ] {
        assert_own(&test_env, options);
    }
    let file = test_env.path("mcp.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n")).unwrap();
    assert_own(&test_env, &[]);
    std::fs::write(&file, text).unwrap();
    test_env.run(&["call", "a.pid"]);
    assert_eq!(test_env.starts(), starts, "the first configuration again");
    let other = test_env.command(&["call", "a.pid"]).env("LANG", "C.other").output().unwrap();
    assert_eq!((other.status.code(), test_env.starts()), (Some(0), starts + 1), "a variable");
    gateway.terminate();
}

#[test]
fn a_socket_belongs_to_the_first_gateway_and_a_killed_one_leaves_it_to_the_next() {
    let test_env = TestEnv::new(fixture("a"));
    let first = test_env.serve();
    let second = test_env.serve();
    second.terminate();
    test_env.run(&["call", "a.pid"]);
    assert_eq!((test_env.starts(), test_env.sockets().len()), (2, 1));
    first.signal(rustix::process::Signal::KILL);
    assert_eq!(test_env.sockets().len(), 1, "a killed gateway leaves its socket");
    assert_eq!(test_env.run(&["call", "a.pid"]).status.code(), Some(0));
    assert_eq!(test_env.starts(), 3, "the command starts its own server");
    let third = test_env.serve();
    test_env.run(&["call", "a.pid"]);
    assert_eq!(test_env.starts(), 4);
    third.terminate();
}

/// Attack: sandbox | a sandboxed server connects to the socket of the gateway to call the tools of other
/// servers | the gateway closes the connection and says why; a confined command starts its own server |
/// Confinement holds
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_a_sandbox_confines_is_not_served() {
    let test_env = TestEnv::new(fixture("a"));
    let mut gateway = test_env.serve();
    assert_eq!(test_env.run(&["call", "a.pid"]).status.code(), Some(0));
    assert_eq!(test_env.starts(), 1, "a command without a sandbox");
    for starts in [2, 3] {
        // A child has the flag of the thread that starts it.
        let called = std::thread::scope(|scope| {
            let confined = scope.spawn(|| {
                rustix::thread::set_no_new_privs(true).unwrap();
                test_env.run(&["call", "a.pid"])
            });
            confined.join().unwrap()
        });
        assert_eq!(called.status.code(), Some(0), "{}", messages(&called));
        assert_eq!(test_env.starts(), starts, "a command in a sandbox");
    }
    gateway.stderr.read_line(&mut gateway.text).unwrap();
    assert!(gateway.text.contains("connection of a command rejected"), "{}", gateway.text);
    assert!(gateway.text.contains("no_new_privs"), "{}", gateway.text);
    gateway.terminate();
}

/// Attack: files | another user can open the directory of the sockets | the gateway opens no socket
/// and says so, and a command uses none | Isolation
#[test]
fn a_directory_that_others_can_open_gets_no_socket_and_is_not_used() {
    let test_env = TestEnv::new(fixture("a"));
    std::fs::create_dir(test_env.path("run/innkeeper")).unwrap();
    let set_mode = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(test_env.path("run/innkeeper"), permissions).unwrap();
    };
    set_mode(0o755);
    let gateway = test_env.serve();
    assert!(gateway.text.contains("other commands cannot use these servers"), "{}", gateway.text);
    assert!(test_env.sockets().is_empty());
    gateway.terminate();
    set_mode(0o700);
    let gateway = test_env.serve();
    set_mode(0o711);
    assert_eq!(test_env.run(&["call", "a.pid"]).status.code(), Some(0));
    assert_eq!(test_env.starts(), 3, "the command starts its own server");
    gateway.terminate();
}

//! Tests of signals in every state, such as a blocked write or a shutdown.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use innkeeper_testkit::{Fixture, Journal, ProcessTag, fixture, mcp_json, wait_gone};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::program::innkeeper;

/// A server with a journal, in a directory with its configuration.
struct TestEnv {
    folder: TempDir,
    nonce: ProcessTag,
}

impl TestEnv {
    fn new(server: Fixture) -> Self {
        let (dir, tag) = (tempfile::tempdir().unwrap(), ProcessTag::new());
        let server = server.process_tag(&tag).journal(&dir.path().join("journal"));
        std::fs::write(dir.path().join("mcp.json"), mcp_json([server]).to_string()).unwrap();
        Self { folder: dir, nonce: tag }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn journal(&self) -> Journal {
        Journal::read(&self.path().join("journal"))
    }

    fn spawn(&self, args: &[&str], stdout: Stdio, stderr: Stdio) -> Child {
        let mut command = innkeeper(&[args, &["--config", "mcp.json"]].concat(), self.path());
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn().unwrap()
    }

    /// Waits until the journal satisfies a condition.
    #[track_caller]
    fn wait_for(&self, description: &str, happened: impl Fn(&Journal) -> bool) {
        for _ in 0..1_000 {
            if happened(&self.journal()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server had no {description}");
    }
}

fn send_signal(child: &Child, signal: &str) {
    #[expect(clippy::disallowed_methods, reason = "the signal comes from outside")]
    let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Returns the exit code of a program that must exit soon.
#[track_caller]
fn wait_exit_code(child: &mut Child) -> Option<i32> {
    for _ in 0..500 {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("the program did not end");
}

/// Returns both ends of a full pipe.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (read, write) = rustix::pipe::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&write).unwrap();
    rustix::fs::fcntl_setfl(&write, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&write, &[b'x'; 4096]).is_ok() {}
    while rustix::io::write(&write, b"x").is_ok() {}
    rustix::fs::fcntl_setfl(&write, flags).unwrap();
    (read, write)
}

/// Attack: terminal | the reader of the output stops reading, and a signal arrives | the program
/// ends with the code of the signal, and no process remains | No unbounded wait
#[test]
fn a_signal_ends_a_program_whose_output_nobody_reads() {
    for (signal, expected) in [("-INT", 130), ("-TERM", 143)] {
        let test_env = TestEnv::new(fixture("one"));
        let args = ["call", "one.big", "bytes=5000000"];
        let mut child = test_env.spawn(&args, Stdio::piped(), Stdio::null());
        let mut stdout = child.stdout.take().unwrap();
        // The test reads the first byte and no more.
        stdout.read_exact(&mut [0]).unwrap();
        send_signal(&child, signal);
        assert_eq!(wait_exit_code(&mut child), Some(expected));
        wait_gone(&test_env.nonce, Duration::from_secs(1)).unwrap();
        assert_eq!(test_env.journal().events("stdin_eof").len(), 1, "the server was asked to end");
    }
}

#[test]
fn a_signal_ends_a_program_whose_stderr_nobody_reads() {
    let test_env = TestEnv::new(fixture("one"));
    let (_read, write) = full_pipe();
    let mut child = test_env.spawn(&["call", "one.nothing"], Stdio::null(), write.into());
    test_env.wait_for("handshake", |journal| journal.count("initialize") > 0);
    // Then only the error report is left.
    wait_gone(&test_env.nonce, Duration::from_secs(5)).unwrap();
    send_signal(&child, "-TERM");
    assert_eq!(wait_exit_code(&mut child), Some(143));
}

#[test]
fn a_second_signal_ends_a_program_that_waits_for_something_else() {
    let test_env = TestEnv::new(fixture("one"));
    let call = |arguments: &str| format!(r#"{{"tool": "one.add", "params": {arguments}}}"#);
    let script = json!([
        {"text": call(r#"{"a": 2}"#)}, {"text": call(r#"{"a": 2, "b": 3}"#)}, {"text": "5"},
    ]);
    std::fs::write(test_env.path().join("script"), script.to_string()).unwrap();
    let fifo = test_env.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    // Opening a FIFO for writing blocks until a reader opens the FIFO.
    let line = "ask x --provider scripted --script script --tool-calling prompt --retries fifo";
    let args: Vec<_> = line.split(' ').collect();
    let mut child = test_env.spawn(&args, Stdio::piped(), Stdio::null());
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    send_signal(&child, "-INT");
    // Two signals at the same time can merge into one.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None, "it waits for the pipe");
    send_signal(&child, "-INT");
    assert_eq!(wait_exit_code(&mut child), Some(130));
    wait_gone(&test_env.nonce, Duration::from_secs(2)).unwrap();
}

#[test]
fn a_signal_during_the_shutdown_counts_and_nothing_is_written_after_it() {
    for (signal, expected) in [("-INT", 130), ("-TERM", 143)] {
        let server = fixture("one").switch("--ignore-eof").switch("--ignore-sigterm");
        let test_env = TestEnv::new(server);
        let mut child = test_env.spawn(&["lock"], Stdio::null(), Stdio::null());
        test_env.wait_for("end of its input", |journal| !journal.events("stdin_eof").is_empty());
        send_signal(&child, signal);
        assert_eq!(wait_exit_code(&mut child), Some(expected));
        assert!(!test_env.path().join("mcp.lock").exists());
        wait_gone(&test_env.nonce, Duration::from_secs(1)).unwrap();
    }
}

#[test]
fn with_json_an_interrupted_program_reports_it_in_its_one_value() {
    let test_env = TestEnv::new(fixture("one"));
    let args = ["call", "one.sleep", "ms=60000", "--json"];
    let mut child = test_env.spawn(&args, Stdio::piped(), Stdio::piped());
    test_env.wait_for("call", |journal| journal.count("tools/call") > 0);
    send_signal(&child, "-INT");
    assert_eq!(wait_exit_code(&mut child), Some(130));
    let output = child.wait_with_output().unwrap();
    let output_json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&output_json["error"]["exitCode"], &output_json["error"]["message"]),
        (&130.into(), &"terminated by SIGINT".into())
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Number of interrupted calls.
const INTERRUPTED_CALLS: usize = 100;

#[test]
fn a_signal_during_a_long_call_ends_the_program_within_a_second_and_leaves_no_process() {
    for number in 0..INTERRUPTED_CALLS {
        let test_env = TestEnv::new(fixture("one"));
        let mut child =
            test_env.spawn(&["call", "one.sleep", "ms=30000"], Stdio::null(), Stdio::piped());
        test_env.wait_for("call", |journal| journal.count("tools/call") > 0);
        let started = Instant::now();
        send_signal(&child, "-INT");
        assert_eq!(wait_exit_code(&mut child), Some(130));
        let took = started.elapsed();
        assert!(took < Duration::from_secs(1), "call {number}: {took:?}");
        wait_gone(&test_env.nonce, Duration::from_secs(1)).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn a_call_that_timed_out_does_not_delay_the_exit() {
    let test_env = TestEnv::new(fixture("one").switch("--ignore-eof"));
    let started = Instant::now();
    let args = ["call", "one.sleep", "ms=30000", "--timeout", "0.2"];
    let mut child = test_env.spawn(&args, Stdio::null(), Stdio::null());
    assert_eq!(wait_exit_code(&mut child), Some(1));
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    wait_gone(&test_env.nonce, Duration::from_secs(1)).unwrap();
}

#[test]
fn a_slow_stop_says_what_it_waits_for_and_a_second_signal_kills_the_server() {
    let server = fixture("one").switch("--ignore-eof").switch("--ignore-sigterm");
    let test_env = TestEnv::new(server.config_key("shutdownTimeout", 30));
    let args = ["call", "one.sleep", "ms=30000"];
    let mut child = test_env.spawn(&args, Stdio::null(), Stdio::piped());
    test_env.wait_for("call", |journal| journal.count("tools/call") > 0);
    let started = Instant::now();
    send_signal(&child, "-INT");
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "waiting for server `one` to stop (Ctrl-C again to kill it)\n");
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
    let signalled = Instant::now();
    send_signal(&child, "-INT");
    assert_eq!(wait_exit_code(&mut child), Some(130));
    assert!(signalled.elapsed() < Duration::from_secs(1), "{:?}", signalled.elapsed());
    wait_gone(&test_env.nonce, Duration::from_secs(1)).unwrap();
}

/// A run that is interrupted says what happened until then, as document 002's result.
#[test]
fn ctrl_c_during_ask_prints_the_calls_until_then() {
    for (signal, expected) in [("-INT", 130), ("-TERM", 143)] {
        let test_env = TestEnv::new(fixture("one"));
        let script = json!([
            {"calls": [{"name": "one.add", "arguments": {"a": 1, "b": 2}}]},
            {"calls": [{"name": "one.sleep", "arguments": {"ms": 60_000}}]},
        ]);
        std::fs::write(test_env.path().join("script.json"), script.to_string()).unwrap();
        let args = ["ask", "Go.", "--json", "--provider", "scripted", "--script", "script.json"];
        let mut child = test_env.spawn(&args, Stdio::piped(), Stdio::null());
        test_env.wait_for("second call", |journal| journal.count("tools/call") > 1);
        send_signal(&child, signal);
        assert_eq!(wait_exit_code(&mut child), Some(expected));
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let result: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&result["success"], &result["final_result"]), (&json!(false), &Value::Null));
        let chain = result["tool_chain"].as_array().unwrap();
        let outcomes: Vec<_> = chain.iter().map(|call| &call["success"]).collect();
        assert_eq!(outcomes, [true, false], "{result:#}");
        assert!(chain[1]["error"].as_str().unwrap().contains("interrupted"), "{result:#}");
        wait_gone(&test_env.nonce, Duration::from_secs(1)).unwrap();
    }
}

//! Signals end the program whatever it is doing: writing to nobody, or shutting down.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use innkeeper_testkit::{Fixture, Journal, Nonce, fx, mcp_json, wait_gone};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::innkeeper;

/// A server that notes what happens to it, in a folder with its configuration.
struct Scene {
    folder: TempDir,
    nonce: Nonce,
}

impl Scene {
    fn new(server: Fixture) -> Self {
        let (folder, nonce) = (tempfile::tempdir().unwrap(), Nonce::new());
        let server = server.nonce(&nonce).journal(&folder.path().join("journal"));
        std::fs::write(folder.path().join("mcp.json"), mcp_json([server]).to_string()).unwrap();
        Self { folder, nonce }
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

    /// Waits until the server has this in its journal.
    #[track_caller]
    fn until(&self, what: &str, happened: impl Fn(&Journal) -> bool) {
        for _ in 0..1_000 {
            if happened(&self.journal()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server had no {what}");
    }
}

fn send(child: &Child, signal: &str) {
    #[expect(clippy::disallowed_methods, reason = "the signal comes from outside")]
    let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// The code of a program that has to end by itself, soon.
#[track_caller]
fn code(child: &mut Child) -> Option<i32> {
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

/// A pipe with no room left: its ends.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (read, write) = rustix::pipe::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&write).unwrap();
    rustix::fs::fcntl_setfl(&write, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&write, &[b'x'; 4096]).is_ok() {}
    while rustix::io::write(&write, b"x").is_ok() {}
    rustix::fs::fcntl_setfl(&write, flags).unwrap();
    (read, write)
}

#[test]
fn a_signal_ends_a_program_whose_output_nobody_reads() {
    for (signal, expected) in [("-INT", 130), ("-TERM", 143)] {
        let scene = Scene::new(fx("one"));
        let args = ["call", "one.big", "bytes=5000000"];
        let mut child = scene.spawn(&args, Stdio::piped(), Stdio::null());
        let mut stdout = child.stdout.take().unwrap();
        // Its first byte is there, and no more is read.
        stdout.read_exact(&mut [0]).unwrap();
        send(&child, signal);
        assert_eq!(code(&mut child), Some(expected));
        wait_gone(&scene.nonce, Duration::from_secs(1)).unwrap();
        assert_eq!(scene.journal().events("stdin_eof").len(), 1, "the server was asked to end");
    }
}

#[test]
fn a_signal_ends_a_program_whose_words_nobody_reads() {
    let scene = Scene::new(fx("one"));
    let (_read, write) = full_pipe();
    let mut child = scene.spawn(&["call", "one.nothing"], Stdio::null(), write.into());
    scene.until("handshake", |journal| journal.count("initialize") > 0);
    // Then all that is left to do is to say what went wrong.
    wait_gone(&scene.nonce, Duration::from_secs(5)).unwrap();
    send(&child, "-TERM");
    assert_eq!(code(&mut child), Some(143));
}

#[test]
fn a_second_signal_ends_a_program_that_waits_for_something_else() {
    let scene = Scene::new(fx("one"));
    let call = |arguments: &str| format!(r#"{{"tool": "one.add", "params": {arguments}}}"#);
    let script = json!([
        {"text": call(r#"{"a": 2}"#)}, {"text": call(r#"{"a": 2, "b": 3}"#)}, {"text": "5"},
    ]);
    std::fs::write(scene.path().join("script"), script.to_string()).unwrap();
    let fifo = scene.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    // Whoever opens a pipe to write waits for somebody who reads.
    let line = "ask x --provider scripted --script script --tool-calling prompt --retries fifo";
    let args: Vec<_> = line.split(' ').collect();
    let mut child = scene.spawn(&args, Stdio::piped(), Stdio::null());
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    send(&child, "-INT");
    // Two that come at once are one.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None, "it waits for the pipe");
    send(&child, "-INT");
    assert_eq!(code(&mut child), Some(130));
    wait_gone(&scene.nonce, Duration::from_secs(2)).unwrap();
}

#[test]
fn a_signal_during_the_shutdown_counts_and_nothing_is_written_after_it() {
    for (signal, expected) in [("-INT", 130), ("-TERM", 143)] {
        let server = fx("one").switch("--ignore-eof").switch("--ignore-sigterm");
        let scene = Scene::new(server);
        let mut child = scene.spawn(&["lock"], Stdio::null(), Stdio::null());
        scene.until("end of its input", |journal| !journal.events("stdin_eof").is_empty());
        send(&child, signal);
        assert_eq!(code(&mut child), Some(expected));
        assert!(!scene.path().join("mcp.lock").exists());
        wait_gone(&scene.nonce, Duration::from_secs(1)).unwrap();
    }
}

#[test]
fn with_json_an_interrupted_program_says_so_in_its_one_value() {
    let scene = Scene::new(fx("one"));
    let args = ["call", "one.sleep", "ms=60000", "--json"];
    let mut child = scene.spawn(&args, Stdio::piped(), Stdio::piped());
    scene.until("call", |journal| journal.count("tools/call") > 0);
    send(&child, "-INT");
    assert_eq!(code(&mut child), Some(130));
    let output = child.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&told["error"]["exitCode"], &told["error"]["message"]),
        (&130.into(), &"ended by SIGINT".into())
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

//! The process room with real processes, hostile ones among them.

mod bounds;
mod end;
mod host;
mod hostile;
mod launch;
mod resources;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Bounds, Exit, Launch, Pipes, Process, Supervisor, spawn};

/// How long a test waits for something that takes milliseconds on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The variable that marks every process of one test.
const MARK: &str = "INNKEEPER_TEST_MARK";

/// Marks the processes of one test, finds them by it, and ends them when the test is over.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        Self(format!("{}-{:x}", std::process::id(), fastrand::u64(..)))
    }

    /// The mark of a process that another test process has started.
    pub(crate) fn of(mark: OsString) -> Self {
        Self(mark.into_string().unwrap())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A launch of `sh` with a script; its arguments follow the name `sh`.
    pub(crate) fn script(&self, script: &str) -> Launch {
        self.program("/bin/sh", &["-c", script, "sh"])
    }

    pub(crate) fn program(&self, program: impl Into<PathBuf>, args: &[&str]) -> Launch {
        Launch {
            command: "the-command".to_owned(),
            program: program.into(),
            args: args.iter().map(OsString::from).collect(),
            env: vec![
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
                (MARK.into(), self.as_str().into()),
            ],
            cwd: None,
            bounds: Bounds::default(),
        }
    }

    /// The processes that carry the mark and have not ended. One that is being replaced by another
    /// program has no environment for a moment and is missed: whether all are there, `reaches` tells.
    pub(crate) fn running(&self) -> Vec<Pid> {
        let marked = format!("{MARK}={}\0", self.0);
        let carries = |pid: &Pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(marked.len()).any(|window| window == marked.as_bytes())
        };
        let own = rustix::process::getpid();
        let every = std::fs::read_dir("/proc").unwrap().flatten();
        let pids =
            every.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        pids.filter(|pid| *pid != own).filter(carries).collect()
    }

    /// Waits until exactly `count` processes carry the mark.
    pub(crate) fn reaches(&self, count: usize) {
        eventually(&format!("{count} marked processes"), || self.running().len() == count);
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        for pid in self.running() {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Waits for something that other processes bring about.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = std::time::SystemTime::now();
    while started.elapsed().is_ok_and(|waited| waited < PATIENCE) {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited {PATIENCE:?} in vain for {what}");
}

/// The supervisor that cargo builds beside the tests.
pub(crate) fn shim() -> Supervisor {
    let test = std::env::current_exe().unwrap();
    let shim = test.parent().and_then(Path::parent).unwrap().join("innkeeper-shim");
    assert!(shim.exists(), "{} is missing: run `cargo build --bins` first", shim.display());
    Supervisor::executable(shim)
}

pub(crate) async fn start(launch: &Launch) -> (Process, Pipes) {
    spawn(launch, &shim(), None).await.unwrap()
}

/// Starts a server and waits for the first line it writes, its end included.
pub(crate) async fn start_ready(launch: &Launch) -> (Process, Pipes) {
    let (process, mut pipes) = start(launch).await;
    line(&mut pipes).await;
    (process, pipes)
}

/// The next line on stdout, without its end.
pub(crate) async fn line(pipes: &mut Pipes) -> String {
    let mut line = Vec::new();
    loop {
        let byte = tokio::time::timeout(PATIENCE, pipes.stdout.read_u8()).await.unwrap().unwrap();
        if byte == b'\n' {
            return String::from_utf8(line).unwrap();
        }
        line.push(byte);
    }
}

/// Everything on stdout until its end.
pub(crate) async fn output(pipes: &mut Pipes) -> String {
    let mut output = String::new();
    let read = pipes.stdout.read_to_string(&mut output);
    tokio::time::timeout(PATIENCE, read).await.unwrap().unwrap();
    output
}

pub(crate) async fn say(pipes: &mut Pipes, line: &str) {
    pipes.stdin.write_all(line.as_bytes()).await.unwrap();
}

/// Waits for the end of the main process, which every test that asks expects within its patience.
pub(crate) async fn exited(process: &mut Process) -> Exit {
    tokio::time::timeout(PATIENCE, process.exited()).await.expect("the main process has ended")
}

/// Waits for the end of the tree, which every test expects within its patience.
pub(crate) async fn gone(process: &mut Process) {
    tokio::time::timeout(PATIENCE, process.gone()).await.expect("the tree is gone");
}

/// A shell outside of the process room.
#[expect(clippy::disallowed_methods, reason = "a process that the room knows nothing of")]
pub(crate) fn sh(script: &str) -> Child {
    Command::new("sh").arg("-c").arg(script).stdout(Stdio::piped()).spawn().unwrap()
}

/// Runs one ignored test of this binary as a process of its own.
#[expect(clippy::disallowed_methods, reason = "a host that can be killed is another process")]
pub(crate) fn other_test_process(test: &str, env: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .envs(env.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

//! Process tests with real and hostile processes.

mod confinement;
mod environment;
mod host;
mod hostile;
mod launch;
mod lost_supervisor;
mod resources;
mod sandbox_reach;
mod termination;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Confinement, ExitStatus, Process, ProcessSpec, StdioPipes, Supervisor, spawn};

/// Timeout for operations that take milliseconds on an idle machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Environment variable that tags every process of one test.
const TAG_VARIABLE: &str = "INNKEEPER_TEST_MARK";

/// A tag that identifies the processes of one test and kills them at the end of the test.
pub(crate) struct ProcessTag(String);

impl ProcessTag {
    pub(crate) fn new() -> Self {
        Self(format!("{}-{:x}", std::process::id(), fastrand::u64(..)))
    }

    /// Returns the tag of a process that another test process started.
    pub(crate) fn from_env(tag: OsString) -> Self {
        Self(tag.into_string().unwrap())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a launch of `sh` with a script; the arguments follow the name `sh`.
    pub(crate) fn script(&self, script: &str) -> ProcessSpec {
        self.program("/bin/sh", &["-c", script, "sh"])
    }

    pub(crate) fn program(&self, program: impl Into<PathBuf>, args: &[&str]) -> ProcessSpec {
        ProcessSpec {
            command: "the-command".to_owned(),
            program: program.into(),
            args: args.iter().map(OsString::from).collect(),
            env: vec![
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
                (TAG_VARIABLE.into(), self.as_str().into()),
            ],
            cwd: None,
            confinement: Confinement::default(),
        }
    }

    /// Returns the running processes with the tag. A process during `exec` has no environment and
    /// is missed; use `wait_for_count` to wait for an exact number.
    pub(crate) fn pids(&self) -> Vec<Pid> {
        let marked = format!("{TAG_VARIABLE}={}\0", self.0);
        let carries = |pid: &Pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(marked.len()).any(|window| window == marked.as_bytes())
        };
        let host_pid = rustix::process::getpid();
        let every = std::fs::read_dir("/proc").unwrap().flatten();
        let pids =
            every.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        pids.filter(|pid| *pid != host_pid).filter(carries).collect()
    }

    /// Waits until exactly `count` processes have the tag.
    pub(crate) fn wait_for_count(&self, count: usize) {
        eventually(&format!("{count} marked processes"), || self.pids().len() == count);
    }
}

impl Drop for ProcessTag {
    fn drop(&mut self) {
        for pid in self.pids() {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Waits for a condition that depends on other processes.
pub(crate) fn eventually(description: &str, mut holds: impl FnMut() -> bool) {
    let started = std::time::SystemTime::now();
    while started.elapsed().is_ok_and(|elapsed_time| elapsed_time < TEST_TIMEOUT) {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited {TEST_TIMEOUT:?} in vain for {description}");
}

/// Returns the supervisor that the library contains; on another architecture, the program that Cargo
/// builds for the tests.
pub(crate) fn shim() -> Supervisor {
    Supervisor::embedded().unwrap_or_else(fallback_shim)
}

/// Returns the supervisor inside of an ordinary program, which Cargo builds for the tests.
pub(crate) fn fallback_shim() -> Supervisor {
    Supervisor::executable(innkeeper_testkit::built_program("innkeeper-shim"))
}

pub(crate) async fn start(launch: &ProcessSpec) -> (Process, StdioPipes) {
    spawn(launch, &shim(), None).await.unwrap()
}

/// Starts a server and waits for its first complete line.
pub(crate) async fn start_ready(launch: &ProcessSpec) -> (Process, StdioPipes) {
    let (process, mut pipes) = start(launch).await;
    read_line(&mut pipes).await;
    (process, pipes)
}

/// Returns the next line of stdout without its line end.
pub(crate) async fn read_line(pipes: &mut StdioPipes) -> String {
    let mut line = Vec::new();
    loop {
        let byte =
            tokio::time::timeout(TEST_TIMEOUT, pipes.stdout.read_u8()).await.unwrap().unwrap();
        if byte == b'\n' {
            return String::from_utf8(line).unwrap();
        }
        line.push(byte);
    }
}

/// Returns stdout until its end.
pub(crate) async fn read_output(pipes: &mut StdioPipes) -> String {
    let mut output = String::new();
    let read = pipes.stdout.read_to_string(&mut output);
    tokio::time::timeout(TEST_TIMEOUT, read).await.unwrap().unwrap();
    output
}

pub(crate) async fn write_stdin(pipes: &mut StdioPipes, line: &str) {
    pipes.stdin.write_all(line.as_bytes()).await.unwrap();
}

/// Waits for the exit of the main process; fails after [`TEST_TIMEOUT`].
pub(crate) async fn expect_exit(process: &mut Process) -> ExitStatus {
    tokio::time::timeout(TEST_TIMEOUT, process.wait()).await.expect("the main process has ended")
}

/// Waits until the process tree is gone; fails after [`TEST_TIMEOUT`].
pub(crate) async fn expect_tree_gone(process: &mut Process) {
    tokio::time::timeout(TEST_TIMEOUT, process.wait_tree()).await.expect("the tree is gone");
}

/// Starts a shell that is not a server.
#[expect(clippy::disallowed_methods, reason = "a process that the module does not track")]
pub(crate) fn shell(script: &str) -> Child {
    Command::new("sh").arg("-c").arg(script).stdout(Stdio::piped()).spawn().unwrap()
}

/// Refuses a system call for this thread and its child processes, like another kernel.
pub(crate) fn refuse_call(number: i64, error: i32) {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter};
    let rules = [(number, Vec::new())].into();
    let refuse = SeccompAction::Errno(error.unsigned_abs());
    let target = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, target).unwrap();
    apply_filter(&seccompiler::BpfProgram::try_from(filter).unwrap()).unwrap();
}

/// Runs one ignored test of this binary in a separate process.
#[expect(clippy::disallowed_methods, reason = "a host that can be killed is another process")]
pub(crate) fn spawn_test_process(test: &str, env: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .envs(env.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

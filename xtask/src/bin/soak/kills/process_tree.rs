//! The matrix of hostile process trees and their terminations.

use innkeeper_testkit::{Fixture, ProcessTag, fixture, fixture_program};
use serde_json::{Value, json};

/// Length of the fork chain.
const FORK_LOOP_LINKS: usize = 20;
/// Shutdown timeout of a server, in seconds.
const SHUTDOWN_TIMEOUT_SECONDS: f64 = 0.5;

/// A hostile process tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ProcessTree {
    /// A daemon in its own session.
    Daemon,
    /// A child whose parent has exited.
    DoubleFork,
    /// A child that leads its own session.
    OwnSession,
    /// A server that ignores the end of its input and SIGTERM.
    IgnoresSignals,
    /// A fork chain that may still grow.
    ForkLoop,
    /// A shell between host and server, as with package runners.
    ShellRunner,
    /// A child that keeps the pipes of an exited server open.
    PipesHeld,
    /// A server that closes its output, stops reading and keeps running.
    ClosedPipes,
    /// A daemon in its own session and without the environment of the server.
    HiddenDaemon,
}

/// The way a tree is terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Termination {
    /// Shutdown of the host.
    Shutdown,
    /// A kill of the server during a call.
    ServerKilled,
    /// A drop of the host with its runtime.
    Dropped,
    /// `kill` on the host.
    Killed,
    /// SIGKILL to the host during a call, without a sweep by another host.
    HostKilled,
    /// SIGKILL to the host during a call, with a sweep by the next host.
    HostSwept,
}

const ALL_TREES: [ProcessTree; 9] = [
    ProcessTree::Daemon,
    ProcessTree::DoubleFork,
    ProcessTree::OwnSession,
    ProcessTree::IgnoresSignals,
    ProcessTree::ForkLoop,
    ProcessTree::ShellRunner,
    ProcessTree::PipesHeld,
    ProcessTree::ClosedPipes,
    ProcessTree::HiddenDaemon,
];

/// Number of trees whose processes all have the tag.
const TAGGED_TREES: usize = ALL_TREES.len() - 1;
const COMMON_TERMINATIONS: [Termination; 4] =
    [Termination::Shutdown, Termination::ServerKilled, Termination::Dropped, Termination::Killed];

/// Returns the tree and the termination for a number; one of ten terminations kills the host.
pub(super) fn tree_and_termination(number: usize) -> (usize, Termination) {
    let (round, position) = (number / 10, number % 10);
    let termination = match position {
        9 if (round / TAGGED_TREES).is_multiple_of(2) => Termination::HostKilled,
        9 => Termination::HostSwept,
        _ => COMMON_TERMINATIONS[position % COMMON_TERMINATIONS.len()],
    };
    ((round + position) % TAGGED_TREES, termination)
}

impl ProcessTree {
    pub(crate) fn index(self) -> usize {
        ALL_TREES.iter().position(|tree| *tree == self).unwrap_or_default()
    }

    pub(super) fn from_index(number: usize) -> Self {
        ALL_TREES[number % ALL_TREES.len()]
    }

    /// The minimum number of processes of a ready tree, without the supervisor.
    pub(crate) fn min_process_count(self) -> usize {
        if matches!(self, Self::IgnoresSignals | Self::ClosedPipes) { 1 } else { 2 }
    }

    /// The configuration of a host with this server only, named `tree`.
    pub(super) fn config(self, tag: &str) -> Value {
        let fixture = fixture("tree")
            .env(ProcessTag::VARIABLE, tag)
            .config_key("shutdownTimeout", SHUTDOWN_TIMEOUT_SECONDS);
        let mut entry = self.configure_fixture(fixture).config_entry();
        let args = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let line = args.fold(fixture_program().display().to_string(), |line, arg| line + " " + arg);
        let script = match self {
            // A command after the server prevents that the shell replaces itself with the server.
            Self::ShellRunner => Some(format!("{line}; true")),
            Self::HiddenDaemon => Some(hidden_daemon_script(tag) + &line),
            Self::Daemon
            | Self::DoubleFork
            | Self::OwnSession
            | Self::IgnoresSignals
            | Self::ForkLoop
            | Self::PipesHeld
            | Self::ClosedPipes => None,
        };
        if let Some(script) = script {
            entry["command"] = json!("sh");
            entry["args"] = json!(["-c", script]);
        }
        json!({"servers": {"tree": entry}})
    }

    fn configure_fixture(self, fixture: Fixture) -> Fixture {
        match self {
            Self::Daemon => fixture.switch("--daemon"),
            Self::DoubleFork => fixture.switch("--double-fork"),
            Self::OwnSession => fixture.switch("--own-session"),
            Self::IgnoresSignals => fixture.switch("--ignore-eof").switch("--ignore-sigterm"),
            Self::ForkLoop => fixture.with("--fork-loop", FORK_LOOP_LINKS),
            Self::ShellRunner | Self::HiddenDaemon => fixture,
            Self::PipesHeld => fixture.switch("--exit-while-grandchild"),
            Self::ClosedPipes => fixture
                .switch("--close-stdout")
                .switch("--stop-reading")
                .switch("--ignore-eof")
                .switch("--ignore-sigterm"),
        }
    }
}

/// Returns the command line of the daemon of [`ProcessTree::HiddenDaemon`]; each argument ends with
/// NUL. A number identifies the daemon, which does not have the tag.
pub(crate) fn hidden_command(tag: &str) -> String {
    format!("sleep\0{}\0", hidden_number(tag))
}

/// Returns the seconds that the daemon sleeps: more than any run takes.
fn hidden_number(tag: &str) -> u64 {
    let start = tag.get(..9).and_then(|start| u64::from_str_radix(start, 16).ok());
    1_000_000 + start.unwrap_or_default()
}

/// Returns a script that starts the daemon, waits until the daemon runs, and becomes the server that
/// follows.
fn hidden_daemon_script(tag: &str) -> String {
    let number = hidden_number(tag);
    format!(
        "(setsid env -i sleep {number} </dev/null >/dev/null 2>&1 &)
         until grep -zqx {number} $(grep -lx sleep /proc/[0-9]*/comm 2>/dev/null \
             | sed s/comm/cmdline/) /dev/null 2>/dev/null; do :; done
         exec "
    )
}

//! The matrix of hostile process trees and their terminations.

use innkeeper_testkit::{Fixture, ProcessTag, fixture, fixture_program};
use serde_json::{Value, json};

/// Length of the fork chain.
const FORK_LOOP_LINKS: usize = 20;
/// Shutdown timeout of a server, in seconds.
const SHUTDOWN_TIMEOUT_SECONDS: f64 = 0.5;

/// A hostile process tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ProcessTree {
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

const ALL_TREES: [ProcessTree; 8] = [
    ProcessTree::Daemon,
    ProcessTree::DoubleFork,
    ProcessTree::OwnSession,
    ProcessTree::IgnoresSignals,
    ProcessTree::ForkLoop,
    ProcessTree::ShellRunner,
    ProcessTree::PipesHeld,
    ProcessTree::ClosedPipes,
];
const COMMON_TERMINATIONS: [Termination; 4] =
    [Termination::Shutdown, Termination::ServerKilled, Termination::Dropped, Termination::Killed];

/// Returns the tree and the termination for a number; one of ten terminations kills the host.
pub(super) fn tree_and_termination(number: usize) -> (usize, Termination) {
    let (round, position) = (number / 10, number % 10);
    let termination = match position {
        9 if (round / ALL_TREES.len()).is_multiple_of(2) => Termination::HostKilled,
        9 => Termination::HostSwept,
        _ => COMMON_TERMINATIONS[position % COMMON_TERMINATIONS.len()],
    };
    ((round + position) % ALL_TREES.len(), termination)
}

impl ProcessTree {
    pub(super) fn from_index(number: usize) -> Self {
        ALL_TREES[number % ALL_TREES.len()]
    }

    /// The minimum number of processes of a ready tree, without the supervisor.
    pub(super) fn min_process_count(self) -> usize {
        if matches!(self, Self::IgnoresSignals | Self::ClosedPipes) { 1 } else { 2 }
    }

    /// The configuration of a host with this server only, named `tree`.
    pub(super) fn config(self, tag: &str) -> Value {
        let fixture = fixture("tree")
            .env(ProcessTag::VARIABLE, tag)
            .config_key("shutdownTimeout", SHUTDOWN_TIMEOUT_SECONDS);
        let mut entry = self.configure_fixture(fixture).config_entry();
        if self == Self::ShellRunner {
            let args = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let line =
                args.fold(fixture_program().display().to_string(), |line, arg| line + " " + arg);
            // A command after the server prevents that the shell replaces itself with the server.
            entry["command"] = json!("sh");
            entry["args"] = json!(["-c", format!("{line}; true")]);
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
            Self::ShellRunner => fixture,
            Self::PipesHeld => fixture.switch("--exit-while-grandchild"),
            Self::ClosedPipes => fixture
                .switch("--close-stdout")
                .switch("--stop-reading")
                .switch("--ignore-eof")
                .switch("--ignore-sigterm"),
        }
    }
}

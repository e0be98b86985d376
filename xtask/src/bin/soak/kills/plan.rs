//! Which tree is ended how: every hostile tree in every way, in turns.

use innkeeper_testkit::{Fixture, Nonce, fx, fx_program};
use serde_json::{Value, json};

/// Links of a chain of forks.
const LINKS: usize = 20;
/// Seconds a server has to stop by itself.
const GRACE: f64 = 0.5;

/// What is hostile about a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tree {
    /// A daemon in a session of its own.
    Daemon,
    /// A child whose parent has ended.
    DoubleFork,
    /// A child that leads a session of its own.
    OwnSession,
    /// The server stays on the end of its input and on SIGTERM.
    Stubborn,
    /// A chain of forks that may still grow.
    ForkLoop,
    /// A shell in the middle, as package runners have.
    Runner,
    /// A child that keeps all pipes of a server that leaves.
    PipesHeld,
    /// The server closes its output, reads no more and stays.
    Closed,
}

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// The host is shut down.
    Shutdown,
    /// The server itself is killed in the middle of a call.
    ServerKilled,
    /// The host is dropped, and its runtime with it.
    Dropped,
    /// The host is told to kill everything.
    Killed,
    /// The host is killed with SIGKILL in the middle of a call, and no other comes.
    HostKilled,
    /// The host is killed with SIGKILL in the middle of a call, and the next one sweeps.
    HostSwept,
}

const TREES: [Tree; 8] = [
    Tree::Daemon,
    Tree::DoubleFork,
    Tree::OwnSession,
    Tree::Stubborn,
    Tree::ForkLoop,
    Tree::Runner,
    Tree::PipesHeld,
    Tree::Closed,
];
const ENDS: [End; 4] = [End::Shutdown, End::ServerKilled, End::Dropped, End::Killed];

/// The tree and the end with this number: in ten of them the host dies once.
pub(super) fn of(number: usize) -> (usize, End) {
    let (round, place) = (number / 10, number % 10);
    let end = match place {
        9 if (round / TREES.len()).is_multiple_of(2) => End::HostKilled,
        9 => End::HostSwept,
        _ => ENDS[place % ENDS.len()],
    };
    ((round + place) % TREES.len(), end)
}

impl Tree {
    pub(super) fn numbered(number: usize) -> Self {
        TREES[number % TREES.len()]
    }

    /// The least number of processes it has once it is ready, without the supervisor.
    pub(super) fn least(self) -> usize {
        if matches!(self, Self::Stubborn | Self::Closed) { 1 } else { 2 }
    }

    /// The configuration of a host with this server alone, named `tree`.
    pub(super) fn config(self, nonce: &str) -> Value {
        let fixture = fx("tree").env(Nonce::VARIABLE, nonce).key("shutdownTimeout", GRACE);
        let mut entry = self.hostile(fixture).entry();
        if self == Self::Runner {
            let args = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let line = args.fold(fx_program().display().to_string(), |line, arg| line + " " + arg);
            // Something behind it, so that the shell stays.
            entry["command"] = json!("sh");
            entry["args"] = json!(["-c", format!("{line}; true")]);
        }
        json!({"servers": {"tree": entry}})
    }

    fn hostile(self, fixture: Fixture) -> Fixture {
        match self {
            Self::Daemon => fixture.switch("--daemon"),
            Self::DoubleFork => fixture.switch("--double-fork"),
            Self::OwnSession => fixture.switch("--own-session"),
            Self::Stubborn => fixture.switch("--ignore-eof").switch("--ignore-sigterm"),
            Self::ForkLoop => fixture.with("--fork-loop", LINKS),
            Self::Runner => fixture,
            Self::PipesHeld => fixture.switch("--exit-while-grandchild"),
            Self::Closed => fixture
                .switch("--close-stdout")
                .switch("--stop-reading")
                .switch("--ignore-eof")
                .switch("--ignore-sigterm"),
        }
    }
}

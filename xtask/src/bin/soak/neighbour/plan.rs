//! Which faults of the catalogue are played, by which server, and what brings each about.

mod process;
mod remote;
mod talk;

use std::path::Path;
use std::time::Duration;

use innkeeper_testkit::remote::Plan;
use innkeeper_testkit::{Fixture, fx};
use serde_json::{Value, json};

/// The name of the server with the fault.
pub(super) const FAULTY: &str = "faulty";

/// How long a call of it may take unless its fault says otherwise.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Seconds it has to stop by itself.
const GRACE: f64 = 0.5;
/// Calls without an answer after which it counts as gone; a fault with one for each call goes on.
const PATIENT: u32 = 1000;

/// Faults that are not played, and why.
pub(super) const NOT_PLAYED: [(usize, &str); 13] = [
    (27, "to the host it is fault 22"),
    (33, "its halves are played as 1 and 32"),
    (60, "the reading of the list is played as 38; what withholds a tool needs a lock"),
    (62, "a host has one principal"),
    (63, "a copy that is kept causes nothing"),
    (84, "there is no host any more"),
    (85, "there is no host any more"),
    (86, "the configuration is refused, nothing is started"),
    (87, "a package runner is not played; a server that is late is 64"),
    (88, "a server that finds no terminal ends, as in 70"),
    (89, "what a server takes of the machine's disk is not the host's"),
    (95, "the servers that are played do not ask to sign in"),
    (31, "to the neighbour it is fault 30"),
];

/// What brings a fault about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Calls, one after the other; a server that is gone is started again.
    Calls,
    /// Calls, each with a start of the server after it.
    CallsAndStarts,
    /// Starts, one after the other.
    Starts,
}

#[derive(Clone, Debug)]
enum Server {
    Pipe(Fixture),
    Remote(Box<Plan>),
}

/// A fault as it is played.
#[derive(Clone, Debug)]
pub(super) struct Play {
    pub(super) number: usize,
    /// What of it is played, where it has several sides.
    pub(super) detail: &'static str,
    pub(super) how: How,
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) timeout: Duration,
    /// How many times as many calls are made beside it: it takes so long to come about once.
    pub(super) longer: usize,
    server: Server,
    /// The same server without the fault, and how it is used as the one with it is.
    healthy: (How, Server),
}

impl Play {
    /// A fault of each call to a server with these switches.
    fn calls(number: usize, switches: &[&str]) -> Self {
        Self {
            number,
            detail: "",
            how: How::Calls,
            tool: "echo",
            arguments: json!({"message": "hi"}),
            timeout: TIMEOUT,
            longer: 1,
            server: Server::Pipe(fixture(switches).key("unavailableAfterTimeouts", PATIENT)),
            healthy: (How::Calls, Server::Pipe(fixture(&[]))),
        }
    }

    /// A fault of calls after which a server has to be started again.
    fn once(number: usize, switches: &[&str]) -> Self {
        let server = Server::Pipe(fixture(switches));
        Self { server, ..Self::calls(number, &[]) }.started_again()
    }

    /// A fault of each start of a server with these switches.
    fn starts(number: usize, switches: &[&str]) -> Self {
        let healthy = (How::Starts, Server::Pipe(fixture(&[])));
        Self { how: How::Starts, healthy, ..Self::once(number, switches) }
    }

    /// A fault of each call to a remote server.
    fn remote_calls<F>(number: usize, fault: F, plan: impl Fn(Fixture, Option<F>) -> Plan) -> Self {
        let of = |fault| {
            let server = fixture(&[]).key("unavailableAfterTimeouts", PATIENT);
            Server::Remote(Box::new(plan(server, fault)))
        };
        let healthy = (How::Calls, of(None));
        Self { server: of(Some(fault)), healthy, ..Self::calls(number, &[]) }
    }

    /// The server has to be started again each time.
    fn started_again(mut self) -> Self {
        self.healthy.0 = How::CallsAndStarts;
        self
    }

    /// The fault is in the calls.
    fn only_called(mut self) -> Self {
        self.how = How::Calls;
        self.healthy.0 = How::Calls;
        self
    }

    /// The fault is in the start.
    fn only_started(mut self) -> Self {
        self.how = How::Starts;
        self.healthy.0 = How::Starts;
        self
    }

    /// What the server without the fault does as well.
    fn beside(mut self, switches: &[&str]) -> Self {
        self.healthy.1 = Server::Pipe(fixture(switches));
        self
    }

    /// The same without the fault.
    pub(super) fn healthy(&self) -> Self {
        let (how, server) = self.healthy.clone();
        Self { how, server, ..self.clone() }
    }

    fn detail(self, detail: &'static str) -> Self {
        Self { detail, ..self }
    }

    fn of(self, tool: &'static str, arguments: Value) -> Self {
        Self { tool, arguments, ..self }
    }

    fn within(self, millis: u64) -> Self {
        Self { timeout: Duration::from_millis(millis), ..self }
    }

    fn longer(self, longer: usize) -> Self {
        Self { longer, ..self }
    }

    fn key(self, key: &str, value: impl Into<Value>) -> Self {
        let server = match self.server {
            Server::Pipe(fixture) => Server::Pipe(fixture.key(key, value)),
            remote @ Server::Remote(_) => remote,
        };
        Self { server, ..self }
    }

    /// Its server's entry of a configuration file; none where the server has to run first.
    pub(super) fn entry(&self) -> Option<Value> {
        match &self.server {
            Server::Pipe(fixture) => Some(fixture.entry()),
            Server::Remote(_) => None,
        }
    }

    /// Its remote server.
    pub(super) fn remote(&self) -> Option<Plan> {
        match &self.server {
            Server::Pipe(_) => None,
            Server::Remote(plan) => Some((**plan).clone()),
        }
    }
}

/// All of them in the order of the catalogue; the files of tools made to hurt are in this folder.
pub(super) fn plays(folder: &Path) -> Vec<Play> {
    let mut plays = talk::plays();
    plays.extend(talk::lists(folder));
    plays.extend(process::plays());
    plays.extend(remote::plays());
    plays
}

fn fixture(switches: &[&str]) -> Fixture {
    let server = fx(FAULTY).key("shutdownTimeout", GRACE);
    switches.iter().fold(server, |server, switch| match switch.split_once('=') {
        Some((name, value)) => server.with(name, value),
        None => server.switch(switch),
    })
}

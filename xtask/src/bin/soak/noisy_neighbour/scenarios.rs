//! The fault scenarios: catalogue number, server, trigger.

mod conversation;
mod process;
mod remote;

use std::path::Path;
use std::time::Duration;

use innkeeper_testkit::remote::RemoteServerBuilder;
use innkeeper_testkit::{Fixture, fixture};
use serde_json::{Value, json};

/// The name of the faulty server.
pub(super) const FAULTY_SERVER: &str = "faulty";

/// Timeout of calls to the faulty server unless the scenario sets another.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Shutdown timeout of the faulty server, in seconds.
const SHUTDOWN_TIMEOUT_SECONDS: f64 = 0.5;
/// Number of timeouts until the server counts as unavailable; a fault with one timeout per call
/// continues.
const UNAVAILABLE_AFTER_TIMEOUTS: u32 = 1000;

/// The faults without a scenario, with the reason.
pub(super) const SKIPPED_FAULTS: [(usize, &str); 13] = [
    (27, "equals fault 22 for the host"),
    (33, "covered by the scenarios 1 and 32"),
    (60, "covered by scenario 38; withholding of a tool needs a lock"),
    (62, "a host has one principal"),
    (63, "a stored copy causes nothing"),
    (84, "the host has exited"),
    (85, "the host has exited"),
    (86, "the configuration is rejected, no server starts"),
    (87, "no scenario uses a package runner; scenario 64 has a late server"),
    (88, "a server without a terminal exits, as in scenario 70"),
    (89, "disk space of a server is not a resource of the host"),
    (95, "no server of a scenario requires a sign-in"),
    (31, "equals fault 30 for the healthy server"),
];

/// The trigger of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// Sequential calls; the host restarts an exited server.
    Calls,
    /// Sequential calls, with a restart of the server after each call.
    CallsAndRestarts,
    /// Sequential starts.
    Starts,
}

#[derive(Clone, Debug)]
enum ScenarioServer {
    Stdio(Fixture),
    Remote(Box<RemoteServerBuilder>),
}

/// A fault with its server and trigger.
#[derive(Clone, Debug)]
pub(super) struct FaultScenario {
    pub(super) number: usize,
    /// The variant, for a fault with several variants.
    pub(super) detail: &'static str,
    pub(super) trigger: Trigger,
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) timeout: Duration,
    /// Factor on the number of measured calls, for a fault that takes long to occur.
    pub(super) call_multiplier: usize,
    server: ScenarioServer,
    /// The same server without the fault, and the trigger that uses it in the same way.
    healthy: (Trigger, ScenarioServer),
}

impl FaultScenario {
    /// A fault in each call to a server with these switches.
    fn on_calls(number: usize, switches: &[&str]) -> Self {
        Self {
            number,
            detail: "",
            trigger: Trigger::Calls,
            tool: "echo",
            arguments: json!({"message": "hi"}),
            timeout: DEFAULT_CALL_TIMEOUT,
            call_multiplier: 1,
            server: ScenarioServer::Stdio(
                faulty_fixture(switches)
                    .config_key("unavailableAfterTimeouts", UNAVAILABLE_AFTER_TIMEOUTS),
            ),
            healthy: (Trigger::Calls, ScenarioServer::Stdio(faulty_fixture(&[]))),
        }
    }

    /// A fault in calls after which the server needs a restart.
    fn on_calls_with_restart(number: usize, switches: &[&str]) -> Self {
        let server = ScenarioServer::Stdio(faulty_fixture(switches));
        Self { server, ..Self::on_calls(number, &[]) }.with_restart()
    }

    /// A fault in each start of a server with these switches.
    fn on_starts(number: usize, switches: &[&str]) -> Self {
        let healthy = (Trigger::Starts, ScenarioServer::Stdio(faulty_fixture(&[])));
        Self { trigger: Trigger::Starts, healthy, ..Self::on_calls_with_restart(number, switches) }
    }

    /// A fault in each call to a remote server.
    fn on_remote_calls<F>(
        number: usize,
        fault: F,
        plan: impl Fn(Fixture, Option<F>) -> RemoteServerBuilder,
    ) -> Self {
        let build = |fault| {
            let server = faulty_fixture(&[])
                .config_key("unavailableAfterTimeouts", UNAVAILABLE_AFTER_TIMEOUTS);
            ScenarioServer::Remote(Box::new(plan(server, fault)))
        };
        let healthy = (Trigger::Calls, build(None));
        Self { server: build(Some(fault)), healthy, ..Self::on_calls(number, &[]) }
    }

    /// Requires a restart of the server after each call.
    fn with_restart(mut self) -> Self {
        self.healthy.0 = Trigger::CallsAndRestarts;
        self
    }

    /// Restricts the fault to the calls.
    fn calls_only(mut self) -> Self {
        self.trigger = Trigger::Calls;
        self.healthy.0 = Trigger::Calls;
        self
    }

    /// Restricts the fault to the start.
    fn starts_only(mut self) -> Self {
        self.trigger = Trigger::Starts;
        self.healthy.0 = Trigger::Starts;
        self
    }

    /// Adds switches to the server without the fault.
    fn with_healthy_switches(mut self, switches: &[&str]) -> Self {
        self.healthy.1 = ScenarioServer::Stdio(faulty_fixture(switches));
        self
    }

    /// The same scenario without the fault.
    pub(super) fn healthy(&self) -> Self {
        let (trigger, server) = self.healthy.clone();
        Self { trigger, server, ..self.clone() }
    }

    fn with_detail(self, detail: &'static str) -> Self {
        Self { detail, ..self }
    }

    fn with_call(self, tool: &'static str, arguments: Value) -> Self {
        Self { tool, arguments, ..self }
    }

    fn with_timeout_millis(self, millis: u64) -> Self {
        Self { timeout: Duration::from_millis(millis), ..self }
    }

    fn with_call_multiplier(self, call_multiplier: usize) -> Self {
        Self { call_multiplier, ..self }
    }

    fn with_config_key(self, key: &str, value: impl Into<Value>) -> Self {
        let server = match self.server {
            ScenarioServer::Stdio(fixture) => ScenarioServer::Stdio(fixture.config_key(key, value)),
            remote @ ScenarioServer::Remote(_) => remote,
        };
        Self { server, ..self }
    }

    /// The server's configuration entry; none if the server must run first.
    pub(super) fn config_entry(&self) -> Option<Value> {
        match &self.server {
            ScenarioServer::Stdio(fixture) => Some(fixture.config_entry()),
            ScenarioServer::Remote(_) => None,
        }
    }

    /// The remote server of the scenario.
    pub(super) fn remote(&self) -> Option<RemoteServerBuilder> {
        match &self.server {
            ScenarioServer::Stdio(_) => None,
            ScenarioServer::Remote(plan) => Some((**plan).clone()),
        }
    }
}

/// All scenarios in the order of the catalogue; the directory contains the hostile tool lists.
pub(super) fn all_scenarios(dir: &Path) -> Vec<FaultScenario> {
    let mut all = conversation::scenarios();
    all.extend(conversation::list_scenarios(dir));
    all.extend(process::scenarios());
    all.extend(remote::scenarios());
    all
}

fn faulty_fixture(switches: &[&str]) -> Fixture {
    let server = fixture(FAULTY_SERVER).config_key("shutdownTimeout", SHUTDOWN_TIMEOUT_SECONDS);
    switches.iter().fold(server, |server, switch| match switch.split_once('=') {
        Some((name, value)) => server.with(name, value),
        None => server.switch(switch),
    })
}

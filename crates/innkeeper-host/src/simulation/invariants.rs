//! The invariants of every simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use innkeeper_protocol::method;
use tokio::time::Instant;

use super::application::{Disturbance, ObservedCall, ObservedOutcome};
use super::plan::{ApplicationAction, CallTarget, ServerPlan, SimulationPlan};
use super::run::RecordedEvents;
use super::state::Simulation;
use crate::error::{ServerFailure, StartPhase};
use crate::event::CallOutcome;
use crate::{CallErrorKind, Host, HostEvent, ServerMetrics, ServerState};

/// Tolerance for the duration of a call: timers have a limited resolution.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(50);

/// Maximum duration of a call to a healthy server while other servers fail.
const HEALTHY_CALL_LIMIT: Duration = Duration::from_secs(3);

impl SimulationPlan {
    /// Returns every server of the plan, also those that a reload adds.
    fn all_servers(&self) -> impl Iterator<Item = &ServerPlan> {
        let reloaded = self.steps.iter().filter_map(|(_, action)| match action {
            ApplicationAction::Reload { servers, .. } => Some(servers),
            ApplicationAction::Calls(_) | ApplicationAction::Restart(_) => None,
        });
        self.servers.iter().chain(reloaded.flatten())
    }

    pub(super) fn longest_shutdown(&self) -> Duration {
        self.all_servers().map(|server| server.limits.shutdown_timeout).max().unwrap_or_default()
    }

    /// Returns whether a server and all its dependencies are healthy.
    fn is_sound(&self, name: &str) -> bool {
        self.servers.iter().find(|server| server.name == name).is_some_and(|server| {
            server.faults.healthy && server.dependencies.iter().all(|name| self.is_sound(name))
        })
    }
}

/// Checks that a start fails only for servers with faults.
pub(super) fn check_failed_start(
    plan: &SimulationPlan,
    failures: &[ServerFailure],
    violations: &mut Vec<String>,
) {
    for failure in failures.iter().filter(|failure| plan.is_sound(&failure.server)) {
        violations.push(format!("a healthy server starts: {failure}"));
    }
}

/// Checks that every healthy server is ready after a start, and that no server was launched before
/// its dependencies were ready.
pub(super) fn check_start(
    plan: &SimulationPlan,
    host: &Host,
    events: &RecordedEvents,
    violations: &mut Vec<String>,
) {
    let status = host.status();
    for server in plan.servers.iter().filter(|server| plan.is_sound(&server.name)) {
        let state = status[&*server.name].state;
        if state != ServerState::Ready {
            violations.push(format!("a healthy server starts: `{}` is {state:?}", server.name));
        }
    }
    let events = events.lock().unwrap_or_else(PoisonError::into_inner);
    let position_of = |predicate: &dyn Fn(&HostEvent) -> bool| {
        events.iter().position(|(_, event)| predicate(event))
    };
    for server in &plan.servers {
        let launched = position_of(
            &|event| matches!(event, HostEvent::Launching { server: name, .. } if **name == *server.name),
        );
        for needed in &server.dependencies {
            let ready = position_of(
                &|event| matches!(event, HostEvent::Ready { server: name, .. } if **name == **needed),
            );
            if launched.is_some_and(|launched| ready.is_none_or(|ready| launched < ready)) {
                let name = &server.name;
                violations.push(format!(
                    "dependencies start first: `{name}` was launched before `{needed}`"
                ));
            }
        }
    }
}

/// Checks that a restart or reload fails only for servers with faults.
pub(super) fn check_restarts(
    plan: &SimulationPlan,
    failures: &[ServerFailure],
    violations: &mut Vec<String>,
) {
    let healthy: BTreeSet<&str> = plan
        .all_servers()
        .filter(|server| server.faults.healthy)
        .map(|server| &*server.name)
        .collect();
    let own_failures = failures.iter().filter(|failure| failure.phase != StartPhase::Dependencies);
    for failure in own_failures.filter(|failure| healthy.contains(&*failure.server)) {
        violations.push(format!("a healthy server restarts: {failure}"));
    }
}

/// Checks each call separately.
pub(super) fn check_calls(
    calls: &[ObservedCall],
    simulation: &Simulation,
    disturbed: &[Disturbance],
    shutdown_at: Instant,
    violations: &mut Vec<String>,
) {
    for observed in calls {
        let took = observed.ended_at - observed.started_at;
        let server = &observed.call.server;
        let mut violate = |invariant: &str| {
            let key = &observed.key;
            let target = observed.call.target;
            let outcome = &observed.outcome;
            let name = &server.name;
            violations.push(format!(
                "{invariant}: {key}, {target:?} of `{name}`, took {took:?}: {outcome:?}"
            ));
        };
        let max = match observed.call.target {
            CallTarget::WriteTool | CallTarget::ReadOnlyTool => {
                server.limits.timeout.max(server.limits.max_total_timeout)
            }
            // The call may have waited for another caller's request before its own request.
            CallTarget::Prompt(_) | CallTarget::Resource(_) => {
                server.limits.timeout + server.limits.max_total_timeout
            }
        };
        if took > max + CLOCK_TOLERANCE {
            violate("a call ends in time");
        }
        let expected = match observed.call.target {
            CallTarget::WriteTool | CallTarget::ReadOnlyTool => observed.key.clone(),
            CallTarget::Prompt(number) => format!("{}/p{number}", server.name),
            CallTarget::Resource(number) => format!("sim://{}/{number}", server.name),
        };
        if matches!(&observed.outcome, ObservedOutcome::Ok { text, .. } if *text != expected) {
            violate("a call gets its own response");
        }
        if matches!(&observed.outcome, ObservedOutcome::Failed { message, .. } if !message.contains(&*server.name))
        {
            violate("an error contains the server name");
        }
        let runs = simulation.run_count(&observed.key);
        if observed.call.target == CallTarget::WriteTool && runs > 1 {
            violate("an unsafe call runs at most once");
        }
        if runs > 0
            && matches!(observed.outcome, ObservedOutcome::Failed { may_have_run: false, .. })
        {
            violate("a call that was not sent did not run");
        }
        let tool = matches!(observed.call.target, CallTarget::WriteTool | CallTarget::ReadOnlyTool);
        if tool
            && runs == 0
            && matches!(observed.outcome, ObservedOutcome::Ok { .. } | ObservedOutcome::ToolError)
        {
            violate("a result requires a run");
        }
        let invalid = observed.call.invalid_arguments && observed.server_ready;
        if invalid && (!is_rejected(&observed.outcome) || simulation.run_count("") > 0) {
            violate("invalid arguments are not sent");
        }
        let let_alone = !disturbed.iter().any(|time| time.overlaps(observed))
            && observed.ended_at < shutdown_at;
        if server.faults.healthy
            && observed.server_ready
            && !observed.call.invalid_arguments
            && let_alone
        {
            let succeeded = matches!(
                observed.outcome,
                ObservedOutcome::Ok { stale: false, .. } | ObservedOutcome::Dropped
            );
            if !succeeded || took > HEALTHY_CALL_LIMIT {
                violate("a healthy server is not affected by other servers");
            }
        }
    }
}

/// Checks that a healthy server without dependencies does not become unavailable.
pub(super) fn check_losses(
    plan: &SimulationPlan,
    events: &RecordedEvents,
    disturbed: &[Disturbance],
    shutdown_at: Instant,
    violations: &mut Vec<String>,
) {
    for (at, event) in &*events.lock().unwrap_or_else(PoisonError::into_inner) {
        let HostEvent::Unavailable { server, .. } = event else { continue };
        let mut own_plans = plan.all_servers().filter(|candidate| *candidate.name == **server);
        let let_alone = *at < shutdown_at && !disturbed.iter().any(|time| time.covers(server, *at));
        if let_alone
            && own_plans
                .all(|candidate| candidate.faults.healthy && candidate.dependencies.is_empty())
        {
            violations.push(format!("a healthy server stays available: `{server}`: {event:?}"));
        }
    }
}

fn is_rejected(outcome: &ObservedOutcome) -> bool {
    matches!(
        outcome,
        ObservedOutcome::Failed {
            kind: CallErrorKind::Validation | CallErrorKind::Unavailable,
            ..
        }
    )
}

/// The number of calls per outcome: ok, tool error, failed, cancelled.
type OutcomeCounts = [u64; 4];

/// Checks that the metrics, the call records and the observed calls are equal.
pub(super) fn check_counts(
    plan: &SimulationPlan,
    calls: &[ObservedCall],
    events: &RecordedEvents,
    metrics: &IndexMap<Arc<str>, ServerMetrics>,
    violations: &mut Vec<String>,
) {
    let mut observed_counts = BTreeMap::<String, OutcomeCounts>::new();
    for observed in calls.iter().filter(|observed| {
        matches!(observed.call.target, CallTarget::WriteTool | CallTarget::ReadOnlyTool)
    }) {
        let index = match observed.outcome {
            ObservedOutcome::Ok { .. } => 0,
            ObservedOutcome::ToolError => 1,
            ObservedOutcome::Failed { attempted: true, .. } => 2,
            ObservedOutcome::Failed { attempted: false, .. } => continue,
            ObservedOutcome::Dropped => 3,
        };
        observed_counts.entry(observed.call.server.name.clone()).or_default()[index] += 1;
    }
    let (mut tools, mut all) = (BTreeMap::<String, OutcomeCounts>::new(), BTreeMap::new());
    for (_, event) in &*events.lock().unwrap_or_else(PoisonError::into_inner) {
        let HostEvent::CallFinished(record) = event else { continue };
        let index = match record.outcome {
            CallOutcome::Ok => 0,
            CallOutcome::ToolError => 1,
            CallOutcome::Failed(_) => 2,
            CallOutcome::Cancelled => 3,
        };
        let name = record.server.to_string();
        if record.method == method::TOOLS_CALL {
            tools.entry(name.clone()).or_default()[index] += 1;
        }
        all.entry(name).or_insert([0; 4])[index] += 1;
    }
    if observed_counts != tools {
        violations
            .push(format!("one record per call: records {tools:?}, calls {observed_counts:?}"));
    }
    let removed: BTreeSet<&String> = plan.affected_servers().collect();
    for (name, metrics) in metrics.iter().filter(|(name, _)| !removed.contains(&name.to_string())) {
        let expected: OutcomeCounts = all.get(&**name).copied().unwrap_or_default();
        let failed = metrics.error_count - metrics.tool_error_count;
        let counted =
            [metrics.success_count, metrics.tool_error_count, failed, metrics.cancelled_count];
        if counted != expected || metrics.request_count != counted.iter().sum::<u64>() {
            violations.push(format!(
                "metrics equal the records: `{name}` has {counted:?}, expected {expected:?}"
            ));
        }
        let returned = calls.iter().filter(|observed| {
            let cacheable =
                matches!(observed.call.target, CallTarget::Prompt(_) | CallTarget::Resource(_));
            let fresh = matches!(observed.outcome, ObservedOutcome::Ok { stale: false, .. });
            cacheable && fresh && observed.call.server.name == **name
        });
        let returned = returned.count() as u64;
        if returned != metrics.cache.hits + metrics.cache.misses {
            violations.push(format!(
                "metrics equal the cache reads: `{name}` returned {returned}, metrics {metrics:?}"
            ));
        }
    }
}

impl SimulationPlan {
    /// Returns the servers that a reload may have replaced.
    fn affected_servers(&self) -> impl Iterator<Item = &String> {
        self.steps.iter().flat_map(|(_, action)| match action {
            ApplicationAction::Reload { affected, .. } => Some(affected).into_iter().flatten(),
            ApplicationAction::Calls(_) | ApplicationAction::Restart(_) => {
                None.into_iter().flatten()
            }
        })
    }
}

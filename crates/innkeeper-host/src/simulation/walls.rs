//! What must hold whatever a seed does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use innkeeper_protocol::method;
use tokio::time::Instant;

use super::application::{Disturbed, End, Seen};
use super::plan::{Action, Plan, ServerPlan, What};
use super::run::Events;
use super::street::Street;
use crate::error::{Phase, ServerFailure};
use crate::event::CallOutcome;
use crate::{CallKind, Event, Host, ServerMetrics, ServerState};

/// What a call may take beyond its times: the pauses in which the clock is rounded.
const ROUNDING: Duration = Duration::from_millis(50);

/// What a server that does nothing wrong may take for a call while others do.
const PROMPT: Duration = Duration::from_secs(3);

impl Plan {
    /// Every server there ever is.
    fn all(&self) -> impl Iterator<Item = &ServerPlan> {
        let later = self.steps.iter().filter_map(|(_, action)| match action {
            Action::Reload { servers, .. } => Some(servers),
            Action::Calls(_) | Action::Restart(_) => None,
        });
        self.servers.iter().chain(later.flatten())
    }

    pub(super) fn longest_shutdown(&self) -> Duration {
        self.all().map(|server| server.shutdown).max().unwrap_or_default()
    }

    /// Whether a server does nothing wrong, nor do those it depends on.
    fn is_sound(&self, name: &str) -> bool {
        self.servers.iter().find(|server| server.name == name).is_some_and(|server| {
            server.healthy && server.dependencies.iter().all(|name| self.is_sound(name))
        })
    }
}

/// A start fails for servers that do something wrong only.
pub(super) fn failed_start(plan: &Plan, failures: &[ServerFailure], broken: &mut Vec<String>) {
    for failure in failures.iter().filter(|failure| plan.is_sound(&failure.server)) {
        broken.push(format!("a sound server starts: {failure}"));
    }
}

/// After a start every sound server is ready, and none was launched before those it depends on.
pub(super) fn start(plan: &Plan, host: &Host, events: &Events, broken: &mut Vec<String>) {
    let status = host.status();
    for server in plan.servers.iter().filter(|server| plan.is_sound(&server.name)) {
        let state = status[&*server.name].state;
        if state != ServerState::Ready {
            broken.push(format!("a sound server starts: `{}` is {state:?}", server.name));
        }
    }
    let events = events.lock().unwrap_or_else(PoisonError::into_inner);
    let place = |found: &dyn Fn(&Event) -> bool| events.iter().position(|(_, event)| found(event));
    for server in &plan.servers {
        let launched = place(
            &|event| matches!(event, Event::Launching { server: name, .. } if **name == *server.name),
        );
        for needed in &server.dependencies {
            let ready = place(
                &|event| matches!(event, Event::Ready { server: name, .. } if **name == **needed),
            );
            if launched.is_some_and(|launched| ready.is_none_or(|ready| launched < ready)) {
                let name = &server.name;
                broken.push(format!("dependencies first: `{name}` was launched before `{needed}`"));
            }
        }
    }
}

/// A restart or reload fails for servers that do something wrong only.
pub(super) fn restarts(plan: &Plan, failures: &[ServerFailure], broken: &mut Vec<String>) {
    let healthy: BTreeSet<&str> =
        plan.all().filter(|server| server.healthy).map(|server| &*server.name).collect();
    let own = failures.iter().filter(|failure| failure.phase != Phase::Dependencies);
    for failure in own.filter(|failure| healthy.contains(&*failure.server)) {
        broken.push(format!("a sound server starts again: {failure}"));
    }
}

/// What holds of each call by itself.
pub(super) fn calls(
    seen: &[Seen],
    street: &Street,
    disturbed: &[Disturbed],
    left: Instant,
    broken: &mut Vec<String>,
) {
    for seen in seen {
        let took = seen.ended - seen.began;
        let server = &seen.call.server;
        let mut fell = |wall: &str| {
            let (key, what, end) = (&seen.key, seen.call.what, &seen.end);
            let name = &server.name;
            broken.push(format!("{wall}: {key}, {what:?} of `{name}`, took {took:?}: {end:?}"));
        };
        let most = match seen.call.what {
            What::Work | What::Look => server.timeout.max(server.most),
            // It may have waited for another's request before it made its own.
            What::Prompt(_) | What::Resource(_) => server.timeout + server.most,
        };
        if took > most + ROUNDING {
            fell("in its time");
        }
        let own = match seen.call.what {
            What::Work | What::Look => seen.key.clone(),
            What::Prompt(number) => format!("{}/p{number}", server.name),
            What::Resource(number) => format!("sim://{}/{number}", server.name),
        };
        if matches!(&seen.end, End::Ok { text, .. } if *text != own) {
            fell("its own answer");
        }
        if matches!(&seen.end, End::Failed { words, .. } if !words.contains(&*server.name)) {
            fell("an error names its server");
        }
        let runs = street.runs(&seen.key);
        if seen.call.what == What::Work && runs > 1 {
            fell("not sent twice");
        }
        if runs > 0 && matches!(seen.end, End::Failed { may_have_run: false, .. }) {
            fell("not sent means not run");
        }
        let tool = matches!(seen.call.what, What::Work | What::Look);
        if tool && runs == 0 && matches!(seen.end, End::Ok { .. } | End::ToolError) {
            fell("an answer comes from a run");
        }
        let misfit = seen.call.misfit && seen.ready;
        if misfit && (!refused(&seen.end) || street.runs("") > 0) {
            fell("what does not fit is not sent");
        }
        let let_alone = !disturbed.iter().any(|time| time.touches(seen)) && seen.ended < left;
        if server.healthy && seen.ready && !seen.call.misfit && let_alone {
            let good = matches!(seen.end, End::Ok { stale: false, .. } | End::Dropped);
            if !good || took > PROMPT {
                fell("a healthy server is not disturbed by others");
            }
        }
    }
}

/// A server that does nothing wrong, and needs no other one that might, is not taken out.
pub(super) fn losses(
    plan: &Plan,
    events: &Events,
    disturbed: &[Disturbed],
    left: Instant,
    broken: &mut Vec<String>,
) {
    for (at, event) in &*events.lock().unwrap_or_else(PoisonError::into_inner) {
        let Event::Unavailable { server, .. } = event else { continue };
        let mut own = plan.all().filter(|one| *one.name == **server);
        let let_alone = *at < left && !disturbed.iter().any(|time| time.covers(server, *at));
        if let_alone && own.all(|one| one.healthy && one.dependencies.is_empty()) {
            broken.push(format!("a healthy server is not taken out: `{server}`: {event:?}"));
        }
    }
}

fn refused(end: &End) -> bool {
    matches!(end, End::Failed { kind: CallKind::Validation | CallKind::Unavailable, .. })
}

/// How many calls ended so: well, with a tool's failure, badly, not at all.
type Counts = [u64; 4];

/// The metrics, the records and what the application saw are the same.
pub(super) fn counts(
    plan: &Plan,
    seen: &[Seen],
    events: &Events,
    metrics: &IndexMap<Arc<str>, ServerMetrics>,
    broken: &mut Vec<String>,
) {
    let mut own = BTreeMap::<String, Counts>::new();
    for seen in seen.iter().filter(|seen| matches!(seen.call.what, What::Work | What::Look)) {
        let place = match seen.end {
            End::Ok { .. } => 0,
            End::ToolError => 1,
            End::Failed { tried: true, .. } => 2,
            End::Failed { tried: false, .. } => continue,
            End::Dropped => 3,
        };
        own.entry(seen.call.server.name.clone()).or_default()[place] += 1;
    }
    let (mut tools, mut all) = (BTreeMap::<String, Counts>::new(), BTreeMap::new());
    for (_, event) in &*events.lock().unwrap_or_else(PoisonError::into_inner) {
        let Event::Called(record) = event else { continue };
        let place = match record.outcome {
            CallOutcome::Ok => 0,
            CallOutcome::ToolError => 1,
            CallOutcome::Failed(_) => 2,
            CallOutcome::Cancelled => 3,
        };
        let name = record.server.to_string();
        if record.method == method::TOOLS_CALL {
            tools.entry(name.clone()).or_default()[place] += 1;
        }
        all.entry(name).or_insert([0; 4])[place] += 1;
    }
    if own != tools {
        broken.push(format!("one record a call: records {tools:?}, calls {own:?}"));
    }
    let removed: BTreeSet<&String> = plan.touched().collect();
    for (name, metrics) in metrics.iter().filter(|(name, _)| !removed.contains(&name.to_string())) {
        let expected: Counts = all.get(&**name).copied().unwrap_or_default();
        let failed = metrics.error_count - metrics.tool_error_count;
        let counted =
            [metrics.success_count, metrics.tool_error_count, failed, metrics.cancelled_count];
        if counted != expected || metrics.request_count != counted.iter().sum::<u64>() {
            broken.push(format!("metrics are the calls: `{name}` {counted:?}, not {expected:?}"));
        }
        let given = seen.iter().filter(|seen| {
            let kept = matches!(seen.call.what, What::Prompt(_) | What::Resource(_));
            let fresh = matches!(seen.end, End::Ok { stale: false, .. });
            kept && fresh && seen.call.server.name == **name
        });
        let given = given.count() as u64;
        if given != metrics.cache_hits + metrics.cache_misses {
            broken.push(format!("metrics are the calls: `{name}` gave {given}, not {metrics:?}"));
        }
    }
}

impl Plan {
    /// Servers that a reload may have made anew.
    fn touched(&self) -> impl Iterator<Item = &String> {
        self.steps.iter().flat_map(|(_, action)| match action {
            Action::Reload { touched, .. } => Some(touched).into_iter().flatten(),
            Action::Calls(_) | Action::Restart(_) => None.into_iter().flatten(),
        })
    }
}

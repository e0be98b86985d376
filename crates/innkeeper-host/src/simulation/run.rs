//! Runs one seed with its own runtime and records the trace.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep};

use super::application::{Application, ObservedCall, build_config};
use super::invariants;
use super::plan::{HostEnding, SimulationPlan};
use super::state::Simulation;
use crate::error::StartError;
use crate::{Host, HostEvent, Supervisor};

/// Maximum time of a shutdown in addition to the longest `shutdownTimeout`.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(3);

/// Maximum time for all calls and restarts to end after the last action: all restarts in sequence.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3600);

/// Time until the servers of a dropped host have exited.
const EXIT_GRACE: Duration = Duration::from_secs(2);

thread_local! {
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

#[derive(Debug, Default)]
pub(super) struct SimulationOutcome {
    /// The violated invariants.
    pub(super) violations: Vec<String>,
    /// The events and calls in order, each with its time.
    pub(super) trace: Vec<String>,
}

pub(super) type RecordedEvents = Arc<Mutex<Vec<(Instant, HostEvent)>>>;

pub(super) fn run_seed(seed: u64) -> SimulationOutcome {
    install_panic_recorder();
    PANICS.set(Some(Vec::new()));
    fastrand::seed(seed);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run_simulation(seed))));
    drop(runtime);
    let mut outcome = result.unwrap_or_default();
    let panics = PANICS.take().unwrap_or_default();
    outcome.violations.extend(panics.into_iter().map(|panic| format!("nothing panics: {panic}")));
    outcome
}

/// Records panics in a hook, because tokio catches panics of tasks.
fn install_panic_recorder() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let noted = PANICS.with_borrow_mut(|panics| {
                panics.as_mut().map(|panics| panics.push(panic.to_string())).is_some()
            });
            if !noted {
                before(panic);
            }
        }));
    });
}

async fn run_simulation(seed: u64) -> SimulationOutcome {
    let started_at = Instant::now();
    let plan = SimulationPlan::new(seed);
    let simulation = Simulation::new(seed);
    simulation.set_plans(&plan.servers);
    let mut builder = Host::builder(build_config(&plan.servers)).supervisor(Supervisor::Group);
    builder.endpoints.opener = Some(Arc::new(simulation.clone()));
    builder.client.limits = Simulation::small_limits(builder.client.limits);
    let events = RecordedEvents::default();
    let listener = record_events(builder.events(), events.clone());
    #[expect(clippy::disallowed_methods, reason = "the simulation awaits it")]
    let listener = tokio::spawn(listener);
    let mut violations = Vec::new();
    let mut calls = Vec::new();
    match builder.start().await {
        Err(StartError::Config(error)) => panic!("{error:?}"),
        Err(StartError::Servers(failures)) => {
            invariants::check_failed_start(&plan, &failures, &mut violations);
        }
        Ok(host) => {
            invariants::check_start(&plan, &host, &events, &mut violations);
            calls = run_plan(&plan, host, &simulation, &events, &mut violations).await;
        }
    }
    listener.await.unwrap();
    sleep(EXIT_GRACE).await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let alive = simulation.alive_count();
    if tasks > 0 || alive > 0 {
        violations.push(format!("nothing is left after the end: {tasks} tasks, {alive} servers"));
    }
    let trace = build_trace(started_at, &events, &calls);
    SimulationOutcome { violations, trace }
}

/// Executes the plan between the start and the end of the host.
async fn run_plan(
    plan: &SimulationPlan,
    host: Host,
    simulation: &Simulation,
    events: &RecordedEvents,
    violations: &mut Vec<String>,
) -> Vec<ObservedCall> {
    let mut application = Application::new(host, simulation.clone());
    for (pause, action) in &plan.steps {
        sleep(*pause).await;
        application.perform(action.clone());
    }
    let mut calls = Vec::new();
    let mut failures = Vec::new();
    if matches!(plan.ending, HostEnding::WhenIdle | HostEnding::Drop) {
        (calls, failures) = application.wait_all(FINISH_TIMEOUT).await;
    }
    let shutdown_at = Instant::now();
    application.stop_host(plan.ending, plan.longest_shutdown() + SHUTDOWN_MARGIN).await;
    let (late_calls, more) = application.wait_all(FINISH_TIMEOUT).await;
    calls.extend(late_calls);
    failures.extend(more);
    // The event recorder is the only task that does not belong to the host.
    let tasks = Handle::current().metrics().num_alive_tasks();
    if plan.ending != HostEnding::Drop && tasks > 1 {
        violations.push(format!("shutdown leaves no task: {} are left", tasks - 1));
    }
    let disturbed = application.disturbances.lock().unwrap_or_else(PoisonError::into_inner).clone();
    invariants::check_calls(&calls, simulation, &disturbed, shutdown_at, violations);
    invariants::check_losses(plan, events, &disturbed, shutdown_at, violations);
    invariants::check_counts(plan, &calls, events, &application.host.metrics(), violations);
    invariants::check_restarts(plan, &failures, violations);
    violations.append(&mut application.violations);
    calls
}

async fn record_events(mut events: Receiver<HostEvent>, recorded: RecordedEvents) {
    loop {
        match events.recv().await {
            Ok(event) => {
                let now = Instant::now();
                recorded.lock().unwrap_or_else(PoisonError::into_inner).push((now, event));
            }
            Err(RecvError::Closed) => return,
            Err(RecvError::Lagged(missed)) => panic!("{missed} events missed"),
        }
    }
}

fn build_trace(
    started_at: Instant,
    events: &RecordedEvents,
    calls: &[ObservedCall],
) -> Vec<String> {
    let events = events.lock().unwrap_or_else(PoisonError::into_inner);
    let at = |moment: Instant| format!("{:>9.3}", (moment - started_at).as_secs_f64());
    let event_lines = events.iter().map(|(moment, event)| format!("{} {event:?}", at(*moment)));
    let ended = calls.iter().map(|observed| {
        let ObservedCall { key, call, started_at, ended_at, outcome, .. } = observed;
        let server = &call.server.name;
        let target = call.target;
        format!("{} to {} {key} {server} {target:?} {outcome:?}", at(*started_at), at(*ended_at))
    });
    event_lines.chain(ended).collect()
}

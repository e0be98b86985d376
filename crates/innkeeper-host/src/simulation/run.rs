//! Runs one seed: a runtime and a street of its own, and everything that is seen on the way.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep};

use super::application::{Application, Seen, config};
use super::plan::{Ending, Plan};
use super::street::Street;
use super::walls;
use crate::error::StartError;
use crate::{Event, Host, Supervisor};

/// What a shutdown may take beyond the longest `shutdownTimeout`.
const SHUTDOWN: Duration = Duration::from_secs(3);

/// What everything of a seed may take once nothing new is begun: all restarts one after the other.
const EVERYTHING: Duration = Duration::from_secs(3600);

/// When the servers of a dropped host are gone.
const GONE: Duration = Duration::from_secs(2);

thread_local! {
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// What came of a seed.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The walls that fell.
    pub(super) broken: Vec<String>,
    /// What happened, in order, each with its time.
    pub(super) course: Vec<String>,
}

/// The events of a host with their times.
pub(super) type Events = Arc<Mutex<Vec<(Instant, Event)>>>;

/// Runs one seed on this thread.
pub(super) fn run(seed: u64) -> Outcome {
    listen_to_panics();
    PANICS.set(Some(Vec::new()));
    fastrand::seed(seed);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let ran = catch_unwind(AssertUnwindSafe(|| runtime.block_on(play(seed))));
    drop(runtime);
    Street::close();
    let mut outcome = ran.unwrap_or_default();
    let panics = PANICS.take().unwrap_or_default();
    outcome.broken.extend(panics.into_iter().map(|panic| format!("nothing panics: {panic}")));
    outcome
}

/// Tasks panic in silence, so that it is noted where it happens.
fn listen_to_panics() {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| {
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

async fn play(seed: u64) -> Outcome {
    let (began, plan, street) = (Instant::now(), Plan::new(seed), Street::open(seed));
    street.settle(&plan.servers);
    let builder = Host::builder(config(&plan.servers)).supervisor(Supervisor::Group);
    let events = Events::default();
    let listener = listen(builder.events(), events.clone());
    #[expect(clippy::disallowed_methods, reason = "the simulation awaits it")]
    let listener = tokio::spawn(listener);
    let mut broken = Vec::new();
    let mut seen = Vec::new();
    match builder.start().await {
        Err(StartError::Config(error)) => panic!("{error:?}"),
        Err(StartError::Servers(failures)) => walls::failed_start(&plan, &failures, &mut broken),
        Ok(host) => {
            walls::start(&plan, &host, &events, &mut broken);
            seen = live(&plan, host, &street, &events, &mut broken).await;
        }
    }
    listener.await.unwrap();
    sleep(GONE).await;
    let (tasks, alive) = (Handle::current().metrics().num_alive_tasks(), street.alive());
    if tasks > 0 || alive > 0 {
        broken.push(format!("nothing is left: {tasks} tasks and {alive} servers are"));
    }
    let course = course(began, &events, &seen);
    Outcome { broken, course }
}

/// Everything between start and end.
async fn live(
    plan: &Plan,
    host: Host,
    street: &Street,
    events: &Events,
    broken: &mut Vec<String>,
) -> Vec<Seen> {
    let mut application = Application::new(host, street.clone());
    for (pause, action) in &plan.steps {
        sleep(*pause).await;
        application.act(action.clone());
    }
    let (mut seen, mut failures) = (Vec::new(), Vec::new());
    if matches!(plan.ending, Ending::Quiet | Ending::Drop) {
        (seen, failures) = application.finish(EVERYTHING).await;
    }
    let left = Instant::now();
    application.leave(plan.ending, plan.longest_shutdown() + SHUTDOWN).await;
    let (late, more) = application.finish(EVERYTHING).await;
    seen.extend(late);
    failures.extend(more);
    // The listener to events is the one task that is not the host's.
    let tasks = Handle::current().metrics().num_alive_tasks();
    if plan.ending != Ending::Drop && tasks > 1 {
        broken.push(format!("shutdown leaves no task: it left {}", tasks - 1));
    }
    let disturbed = application.disturbed.lock().unwrap_or_else(PoisonError::into_inner).clone();
    walls::calls(&seen, street, &disturbed, left, broken);
    walls::losses(plan, events, &disturbed, left, broken);
    walls::counts(plan, &seen, events, &application.host.metrics(), broken);
    walls::restarts(plan, &failures, broken);
    broken.append(&mut application.broken);
    seen
}

async fn listen(mut events: Receiver<Event>, heard: Events) {
    loop {
        match events.recv().await {
            Ok(event) => {
                let now = Instant::now();
                heard.lock().unwrap_or_else(PoisonError::into_inner).push((now, event));
            }
            Err(RecvError::Closed) => return,
            Err(RecvError::Lagged(missed)) => panic!("{missed} events were missed"),
        }
    }
}

fn course(began: Instant, events: &Events, seen: &[Seen]) -> Vec<String> {
    let events = events.lock().unwrap_or_else(PoisonError::into_inner);
    let at = |moment: Instant| format!("{:>9.3}", (moment - began).as_secs_f64());
    let told = events.iter().map(|(moment, event)| format!("{} {event:?}", at(*moment)));
    let ended = seen.iter().map(|seen| {
        let Seen { key, call, began, ended, end, .. } = seen;
        let (server, what) = (&call.server.name, call.what);
        format!("{} to {} {key} {server} {what:?} {end:?}", at(*began), at(*ended))
    });
    told.chain(ended).collect()
}

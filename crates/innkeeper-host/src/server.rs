//! One server: what is known of it, and the task that looks after it while it is ready.

pub(crate) mod absent;
pub(crate) mod age;
pub(crate) mod body;
pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod deferred;
mod follow;
pub(crate) mod launch;
pub(crate) mod listen;
pub(crate) mod meta;
pub(crate) mod offer;
pub(crate) mod process;
pub(crate) mod rounds;
pub(crate) mod session;
pub(crate) mod silence;
pub(crate) mod stderr;
pub(crate) mod wishes;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{SetOnce, mpsc, oneshot};
use tokio::time::{Instant, timeout};

use crate::catalog::Shelf;
use crate::config::ServerConfig;
use crate::error::{Lost, StartReason};
use crate::lifecycle::ServerState;
use crate::measure::Meter;
use crate::registry::Registry;
use crate::reload::difference::{self, Difference};
use crate::revive::{self, Falls};
use crate::shutdown::{ServerStopped, Stage};
use absent::Planned;
use body::Body;
pub(crate) use follow::follow_changes;
use launch::{Running, Way};
use process::{Isolation, Killer};

/// How long the last words of a server whose process ended, or the exit of one whose output
/// ended, are waited for before its pending calls fail.
const LAST_WORDS: Duration = Duration::from_millis(80);

/// How long a remote server may take to hear that its tasks are to stop: a round trip or two.
const TASKS_STOPPED: Duration = Duration::from_millis(500);

/// How long a killed tree may take to disappear.
const GONE: Duration = Duration::from_secs(1);

/// A server of the configuration.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: Arc<str>,
    settings: ArcSwap<Settings>,
    pub(crate) meter: Arc<Meter>,
    status: Mutex<Status>,
    /// Held while the server is started again: one at a time.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Set once the configuration does not have it any more.
    pub(crate) removed: SetOnce<()>,
}

/// What a server is started with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) way: Planned,
}

/// Settings that wait for the next start.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) settings: Settings,
    /// The keys that are not in effect before.
    pub(crate) keys: Vec<&'static str>,
}

/// What changes about a server.
#[derive(Debug)]
pub(crate) struct Status {
    pub(crate) state: ServerState,
    pub(crate) shelf: Option<Arc<Shelf>>,
    pub(crate) lost: Option<Lost>,
    pub(crate) running: Option<Handle>,
    /// What can kill a process whose start is under way.
    pub(crate) launching: Option<Killer>,
    pub(crate) stopped: Option<ServerStopped>,
    pub(crate) pending: Option<Pending>,
    pub(crate) falls: Falls,
}

impl Status {
    /// Whether it was taken out because it did not answer, and may be at work still.
    pub(crate) fn was_silent(&self) -> bool {
        self.state == ServerState::Unavailable && matches!(self.lost, Some(Lost::Silent { .. }))
    }
}

/// The reins of a running server.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) pid: Option<u32>,
    pub(crate) isolation: Option<Isolation>,
    pub(crate) killer: Option<Killer>,
    pub(crate) stop: mpsc::Sender<StopOrder>,
    pub(crate) stderr: stderr::StderrTail,
}

/// Asks a server's task to stop it within `grace`.
#[derive(Debug)]
pub(crate) struct StopOrder {
    pub(crate) grace: Duration,
    pub(crate) done: oneshot::Sender<ServerStopped>,
}

impl Server {
    pub(crate) fn new(settings: Settings) -> Self {
        let status = Status {
            state: ServerState::Starting,
            shelf: None,
            lost: None,
            running: None,
            launching: None,
            stopped: None,
            pending: None,
            falls: Falls::default(),
        };
        Self {
            name: settings.config.name.as_str().into(),
            settings: ArcSwap::from_pointee(settings),
            meter: Arc::new(Meter::new()),
            status: Mutex::new(status),
            turn: tokio::sync::Mutex::default(),
            removed: SetOnce::new(),
        }
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.settings.load().config.clone()
    }

    /// How it is reached, as far as that is known now.
    pub(crate) fn way(&self) -> Result<Arc<Way>, StartReason> {
        self.settings.load().way.way()
    }

    /// Takes what the configuration says now: what needs no start is in effect from here on, the
    /// rest waits, in `start`, for the next one.
    pub(crate) fn want(&self, config: &ServerConfig, start: Option<Settings>) -> Difference {
        let mut status = self.status();
        let Settings { config: old, way } = &**self.settings.load();
        let change = difference::between(old, config);
        if !change.now.is_empty() {
            let config = Arc::new(difference::adjusted(old, config));
            self.settings.store(Arc::new(Settings { config, way: way.clone() }));
        }
        let waits = start.filter(|_| !change.later.is_empty());
        status.pending = waits.map(|settings| Pending { settings, keys: change.later.clone() });
        change
    }

    /// Puts the settings that wait into effect; the server does not run.
    pub(crate) fn take_up_pending(&self) {
        let mut status = self.status();
        if let Some(pending) = status.pending.take() {
            self.settings.store(Arc::new(pending.settings));
        }
    }

    /// Its process was waited for: the id may mean another one from now on.
    fn has_ended(&self) {
        if let Some(running) = &mut self.status().running {
            (running.pid, running.isolation) = (None, None);
        }
    }

    pub(crate) fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after a ready server until it ends or is stopped; `fallen` is called if it failed.
pub(crate) async fn supervise(
    registry: Arc<Registry>,
    server: Arc<Server>,
    mut running: Running,
    mut orders: mpsc::Receiver<StopOrder>,
    fallen: impl FnOnce() + Send,
) {
    let mut gone = false;
    let ready = server.status().shelf.clone();
    let reporter = ready.and_then(|shelf| shelf.connection.reporter.clone());
    let mut session = reporter.map(|reporter| reporter.session());
    let order = tokio::select! {
        biased;
        order = orders.recv() => order,
        lost = ended(&mut running) => {
            gone = true;
            if let Some(session) = session.take() {
                session.lost(&lost);
            }
            running.session.close(lost.clone());
            if matches!(lost, Lost::Exited(_)) {
                server.has_ended();
            }
            let failed = revive::is_failure(&lost);
            if registry.lost(&server, lost) && failed {
                fallen();
            }
            running.body.kill();
            // The kill is not taken back; a tree that resists is reported when it is stopped.
            if timeout(GONE, running.body.gone()).await.is_ok() {
                server.has_ended();
            }
            orders.recv().await
        }
    };
    let Some(StopOrder { grace, done }) = order else { return };
    let report = stop(&server, &mut running, gone, grace).await;
    registry.stopped(&server, &report);
    // Whoever asked may have stopped waiting; the server is stopped all the same.
    drop(done.send(report));
}

/// Resolves when the server is lost, with the best reason there is.
async fn ended(running: &mut Running) -> Lost {
    let Running { body, session, .. } = running;
    tokio::select! {
        // A session that closed knows why; its output ends with it.
        biased;
        exit = body.exited() => {
            session.hurry();
            drop(timeout(LAST_WORDS, session.output_ended()).await);
            Lost::Exited(exit)
        }
        lost = session.closed() => {
            timeout(LAST_WORDS, body.exited()).await.map_or(lost, Lost::Exited)
        }
        () = session.output_ended() => {
            timeout(LAST_WORDS, body.exited()).await.map_or(Lost::ClosedOutput, Lost::Exited)
        }
    }
}

async fn stop(
    server: &Server,
    running: &mut Running,
    gone: bool,
    grace: Duration,
) -> ServerStopped {
    let session = running.session.clone();
    let close = move || {
        session.close(Lost::Shutdown);
        session.close_input();
    };
    let process = match &mut running.body {
        Body::Child(process) => process,
        Body::Connection(_) => {
            if !gone {
                // A process ends with its tasks; somebody else's goes on with them.
                running.session.leave(TASKS_STOPPED.min(grace)).await;
            }
            return disconnect(server, close, &mut running.body, gone, grace).await;
        }
    };
    let report = process::stop(process, close, grace).await;
    ServerStopped {
        server: server.name.clone(),
        stage: if gone { Stage::AlreadyGone } else { Stage::from(report.how) },
        exit: Some(report.exit),
        took: report.took,
        leftovers: report.leftovers,
    }
}

/// Takes leave of a remote server, for as long as it is given to hear it.
async fn disconnect(
    server: &Server,
    close: impl FnOnce(),
    connection: &mut Body,
    gone: bool,
    grace: Duration,
) -> ServerStopped {
    let started = Instant::now();
    close();
    let leftovers = timeout(grace.max(GONE), connection.gone()).await.is_err();
    ServerStopped {
        server: server.name.clone(),
        stage: if gone { Stage::AlreadyGone } else { Stage::Disconnected },
        exit: None,
        took: started.elapsed(),
        leftovers,
    }
}

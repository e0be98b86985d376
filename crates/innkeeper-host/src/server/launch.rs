//! Brings one server from its configuration to ready: process, handshake, lists, and further tries.

mod install;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::ServerCapabilities;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::age::Ages;
use super::body::Body;
use super::connect::{Client, ClientInfo, Greeting, Opening, greet};
use super::connection::Connection;
use super::meta::Identity;
use super::offer::{Quarantined, read_all};
use super::process::{self, Launch, Pipes, Process, Supervisor};
use super::session::{Limits, Owner, Session};
use super::silence::Silence;
use super::stderr::StderrTail;
use super::wishes::Wishes;
use super::{Server, listen, offer};
use crate::cache::Cache;
use crate::callback::Callbacks;
use crate::catalog::Shelf;
use crate::error::{CallError, CallKind, Lost, Phase, ServerFailure, StartReason};
use crate::event::{Event, Events};
use crate::guard::Memory;
use crate::ledger::Ledger;
use crate::tasks::Tasks;
use crate::telemetry::{Network, Telemetry};
use crate::transport::auth::{AuthFault, SignIn};
use crate::transport::{Carried, Kind, Programs, Remote};

/// How long the exit or last stderr of a failed launch is waited for.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How long a killed tree may take to disappear before the next launch.
const GONE: Duration = Duration::from_secs(1);

/// What of a server's stderr goes into an error.
const STDERR_IN_ERRORS: usize = 4 << 10;

/// Launches of one start, the first included (TR6.5: three more after 1 s, 2 s and 4 s).
const LAUNCHES: u32 = 4;

/// What all launches of a host share.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub(crate) supervisor: Supervisor,
    pub(crate) ledger: Option<Ledger>,
    pub(crate) client: ClientInfo,
    pub(crate) limits: Limits,
    /// For one start, or one restart.
    pub(crate) start_timeout: Duration,
    pub(crate) install_timeout: Duration,
    pub(crate) callbacks: Callbacks,
    pub(crate) sign_in: SignIn,
    pub(crate) events: Events,
    pub(crate) memory: Arc<Memory>,
    pub(crate) telemetry: Telemetry,
    pub(crate) tasks: Tasks,
}

/// How a server is reached.
#[derive(Debug)]
pub(crate) enum Way {
    /// As a child process.
    Child(Launch),
    /// At an address.
    Remote(Remote),
}

impl Way {
    fn network(&self) -> Network {
        match self {
            Self::Child(_) => Network::PIPE,
            Self::Remote(remote) => remote.network(),
        }
    }
}

/// A server that is ready.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) body: Body,
    pub(crate) session: Session,
    pub(crate) stderr: StderrTail,
    stderr_ended: oneshot::Receiver<()>,
    pub(crate) declared: ServerCapabilities,
}

impl Drop for Running {
    fn drop(&mut self) {
        // A connection is carried by a task of its own, which ends with the session.
        self.session.close(Lost::Shutdown);
    }
}

/// A launch that did not work out.
struct Miss {
    phase: Phase,
    reason: StartReason,
    stderr: String,
}

/// A time that is set aside for something, and when it is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) ends: Instant,
    pub(crate) allowed: Duration,
}

/// The time left for one server's start; fetching a package has a limit of its own.
struct Clock {
    own: Limit,
    installs: Duration,
    /// What is said of an installation that is not done at the end.
    install_timeout: Duration,
    /// For all servers together.
    all: Limit,
}

impl Clock {
    /// What has gone by since then was spent on fetching a package.
    fn installed(&mut self, began: Instant) {
        self.own.ends += began.elapsed();
        self.installs = self.installs.saturating_sub(began.elapsed());
    }

    fn ends(&self) -> Instant {
        self.own.ends.min(self.all.ends)
    }

    /// What is said of a start that is not done at the end.
    fn over(&self) -> StartReason {
        if self.all.ends < self.own.ends {
            StartReason::StartLimit(self.all.allowed)
        } else {
            StartReason::TimedOut(self.own.allowed)
        }
    }
}

impl Launcher {
    /// Starts `server`, launching it again while its start time and that of `all` servers last and
    /// a launch may help. One that `waits` lets a person who signs in take longer, and moves the
    /// end of `all` accordingly. Dropping the future kills what was started.
    pub(crate) async fn start(
        &self,
        server: &Server,
        way: &Way,
        all: &mut Limit,
        waits: bool,
    ) -> Result<(Running, Shelf, Duration), ServerFailure> {
        if let Way::Child(launch) = way {
            launch.bounds.tell_not_applied(&server.name, &self.supervisor, &self.events);
        }
        let began = Instant::now();
        let allowed = server.config().init_timeout;
        let own = Limit { ends: began + allowed, allowed };
        let install_timeout = self.install_timeout;
        let mut clock = Clock { own, installs: install_timeout, install_timeout, all: *all };
        // The older transport has the older era only.
        let only = matches!(way, Way::Remote(remote) if remote.kind == Kind::Sse);
        let mut opening = if only { Opening::InitializeOnly } else { Opening::Discover };
        let mut attempt = 1;
        let mut told: Option<Miss> = None;
        let mut waited = false;
        loop {
            self.events.publish(Event::Launching { server: server.name.clone(), attempt });
            tracing::info!(server = &*server.name, attempt, "start");
            let signed_in = self.sign_in.landed(&server.name);
            let mut miss = match self.launch(server, way, opening, &mut clock).await {
                Ok((running, shelf)) => return Ok((running, shelf, began.elapsed())),
                Err(miss) => miss,
            };
            if let Some(time) = miss.reason.late().filter(|_| !waited) {
                waited = true;
                let landed = match waits {
                    // The time that signing in takes is not the server's.
                    true => self.sign_in.landed_since(&server.name, signed_in).await,
                    false if self.sign_in.is_under_way(&server.name) => {
                        Some(Err(AuthFault::Late(time)))
                    }
                    false => None,
                };
                match landed {
                    Some(Ok(())) => {
                        clock.own.ends = Instant::now() + allowed;
                        all.ends = all.ends.max(clock.own.ends);
                        clock.all = *all;
                        continue;
                    }
                    Some(Err(fault)) => miss.reason = not_signed_in(&server.name, fault),
                    None => {}
                }
            }
            let delay = Duration::from_secs(1 << (attempt - 1));
            let time = Instant::now() + delay < clock.ends();
            if attempt == LAUNCHES || !time || !miss.reason.may_pass() {
                // A last launch that ran out of time says less than how the ones before it ended.
                let Miss { phase, reason, stderr } = match (&miss.reason, told) {
                    (StartReason::TimedOut(_) | StartReason::StartLimit(_), Some(told)) => told,
                    _ => miss,
                };
                let server = server.name.clone();
                return Err(ServerFailure { server, phase, reason, stderr, attempts: attempt });
            }
            if !only && matches!(miss.phase, Phase::Handshake) {
                // It may have ended because of the question; ask the older one first this time.
                opening = Opening::Initialize;
            }
            self.retry_in(server, delay, &miss);
            told = Some(miss);
            sleep(delay).await;
            attempt += 1;
        }
    }

    fn retry_in(&self, server: &Server, delay: Duration, miss: &Miss) {
        let reason = miss.reason.to_string();
        let delay_s = delay.as_secs_f64();
        tracing::warn!(server = &*server.name, delay_s, reason, "launch failed, trying again");
        self.events.publish(Event::Retrying { server: server.name.clone(), delay, reason });
    }

    async fn launch(
        &self,
        server: &Server,
        way: &Way,
        opening: Opening,
        clock: &mut Clock,
    ) -> Result<(Running, Shelf), Miss> {
        let mut running = match way {
            Way::Child(launch) => self.spawn(server, launch, clock).await,
            Way::Remote(remote) => self.connect(server, remote),
        }
        .map_err(|reason| Miss { phase: Phase::Launch, reason, stderr: String::new() })?;
        server.status().launching = running.body.killer();
        let mut made = self.make_ready(server, way, &mut running, opening, clock).await;
        if let (Way::Remote(remote), Err((Phase::Handshake, reason))) = (way, &made)
            && remote.kind == Kind::Http
            && reason.speaks_older_http()
        {
            tracing::info!(server = &*server.name, "trying the older HTTP transport");
            let by_sse = Way::Remote(remote.by_sse());
            let older = self.connect(server, &remote.by_sse());
            let mut older = older.map_err(|reason| Miss {
                phase: Phase::Launch,
                reason,
                stderr: String::new(),
            })?;
            let opening = Opening::InitializeOnly;
            let tried = self.make_ready(server, &by_sse, &mut older, opening, clock).await;
            // Where that is not spoken either, the first answer says more.
            if tried.is_ok() {
                running.session.close(Lost::Shutdown);
                (running, made) = (older, tried);
            }
        }
        match made {
            Ok(shelf) => Ok((running, shelf)),
            Err((phase, reason)) => {
                let miss = give_up(running, phase, reason).await;
                server.status().launching = None;
                Err(miss)
            }
        }
    }

    async fn spawn(
        &self,
        server: &Server,
        launch: &Launch,
        clock: &Clock,
    ) -> Result<Running, StartReason> {
        #[cfg(all(test, unix))]
        if let Some(street) = crate::simulation::street() {
            let (process, pipes) = street.spawn(launch);
            return Ok(self.running(server, process, pipes, street.limits(self.limits(server))));
        }
        let spawning = process::spawn(launch, &self.supervisor, self.ledger.as_ref());
        let spawned = timeout_at(clock.ends(), spawning).await.map_err(|_| clock.over())?;
        let (process, Pipes { stdin, stdout, stderr }) =
            spawned.map_err(|error| StartReason::Spawn(error.to_string().into()))?;
        Ok(self.running(server, process, (stdin, stdout, stderr), self.limits(server)))
    }

    fn running<W, R, E>(
        &self,
        server: &Server,
        process: Process,
        (stdin, stdout, stderr): (W, R, E),
        limits: Limits,
    ) -> Running
    where
        W: AsyncWrite + Send + Unpin + 'static,
        R: AsyncRead + Send + Unpin + 'static,
        E: AsyncRead + Send + Unpin + 'static,
    {
        let (stderr, stderr_ended) = self.drain(server, stderr);
        let session = Session::open(self.owner(server), stdout, stdin, limits);
        let declared = ServerCapabilities::default();
        Running { body: Body::Child(process), session, stderr, stderr_ended, declared }
    }

    fn connect(&self, server: &Server, remote: &Remote) -> Result<Running, StartReason> {
        let (owner, limits) = (self.owner(server), self.limits(server));
        #[cfg(all(test, unix))]
        if let Some(street) = crate::simulation::street() {
            return Ok(connected(street.carry(owner, street.limits(limits))));
        }
        let (supervisor, ledger) = (self.supervisor.clone(), self.ledger.clone());
        let programs = Programs { supervisor, ledger };
        let config = server.config();
        let carried = remote.open(owner, limits, &self.sign_in, config.oauth.as_ref(), programs);
        carried.map(connected).map_err(|error| StartReason::Spawn(error.to_string().into()))
    }

    fn owner(&self, server: &Server) -> Owner {
        let (callbacks, tasks) = (self.callbacks.clone(), self.tasks.clone());
        Owner { server: server.name.clone(), callbacks, events: self.events.clone(), tasks }
    }

    fn limits(&self, server: &Server) -> Limits {
        Limits { callback: server.config().max_total_timeout, ..self.limits }
    }

    /// Keeps reading stderr; the receiver learns of its end.
    fn drain(
        &self,
        server: &Server,
        stderr: impl AsyncRead + Send + Unpin + 'static,
    ) -> (StderrTail, oneshot::Receiver<()>) {
        let name = server.name.clone();
        let tail = StderrTail::default();
        let (kept, (end, ended)) = (tail.clone(), oneshot::channel::<()>());
        self.tasks.spawn(async move {
            let log = |line: &str| tracing::info!(server = &*name, line, "stderr");
            kept.drain(stderr, log).await;
            drop(end);
        });
        (tail, ended)
    }

    async fn make_ready(
        &self,
        server: &Server,
        way: &Way,
        running: &mut Running,
        opening: Opening,
        clock: &mut Clock,
    ) -> Result<Shelf, (Phase, StartReason)> {
        let mut seen = true;
        if let Way::Child(launch) = way
            && install::runs_packages(&launch.program)
        {
            self.events.publish(Event::Installing { server: server.name.clone() });
            let Running { body, session, .. } = &mut *running;
            seen = install::seen(body, session, launch, clock).await?;
        }
        self.events.publish(Event::Handshake { server: server.name.clone() });
        let capabilities = self.callbacks.capabilities(&server.name);
        let client = Client { server: &server.name, info: &self.client, capabilities };
        let Running { body, session, .. } = &mut *running;
        let greeting = if seen {
            let greeting = greet(session, client, opening, clock.ends());
            let greeting = watched(body, clock, greeting).await;
            greeting.map_err(|reason| (Phase::Handshake, reason))?
        } else {
            let greeting = greet(session, client, opening, install::latest(clock));
            install::unseen(body, session, clock, greeting).await?
        };
        let Greeting { revision, meta, capabilities, server_info, instructions } = greeting;
        running.declared = capabilities;
        let config = server.config();
        let cache = Arc::new(Cache::new(config.cache));
        running.session.keeps(cache.clone());
        let connection = Arc::new(Connection {
            server: server.name.clone(),
            session: running.session.clone(),
            revision,
            tasks: running.declared.tasks,
            identity: meta.as_deref().map(Identity::of).unwrap_or_default(),
            permits: Semaphore::new(config.max_concurrent),
            retry: config.retry,
            most: config.max_total_timeout,
            cache,
            callbacks: self.callbacks.clone(),
            wishes: Wishes::default(),
            ages: Ages::default(),
            meter: server.meter.clone(),
            silence: Silence::new(config.unavailable_after_timeouts),
            events: self.events.clone(),
            memory: self.memory.clone(),
            reporter: self.telemetry.of(&server.name, revision, way.network()),
        });
        listen::begin(&connection, &running.declared, &self.tasks).await;
        let mut left_out = Vec::new();
        let left = clock.ends().saturating_duration_since(Instant::now());
        let reading = read_all(&connection, &running.declared, left, &mut left_out);
        let offer = watched(&mut running.body, clock, reading)
            .await
            .map_err(|reason| (Phase::Lists, reason))?;
        let about = (server_info, instructions);
        let shelf = Shelf::new(connection, &server.config(), about, offer, &mut left_out);
        self.tell_left_out(server, &left_out);
        Ok(shelf)
    }

    fn tell_left_out(&self, server: &Server, left_out: &[Quarantined]) {
        for offer::Quarantined { what, reason } in left_out {
            tracing::warn!(server = &*server.name, what, reason, "left out of the catalog");
            self.events.publish(Event::Quarantined {
                server: server.name.clone(),
                what: what.clone(),
                reason: reason.clone(),
            });
        }
    }
}

fn not_signed_in(server: &Arc<str>, fault: AuthFault) -> StartReason {
    let (server, reason) = (server.clone(), Lost::NotSignedIn(Box::new(fault)));
    let error = CallError::Unavailable { server, reason, may_have_run: false, attempts: 1 };
    StartReason::Call(Box::new(error))
}

fn connected(carried: Carried) -> Running {
    let Carried { session, ended } = carried;
    let (_, stderr_ended) = oneshot::channel();
    let (stderr, declared) = (StderrTail::default(), ServerCapabilities::default());
    Running { body: Body::Connection(Some(ended)), session, stderr, stderr_ended, declared }
}

/// Runs a part of the start while the process lives and the time lasts.
async fn watched<T>(
    body: &mut Body,
    clock: &Clock,
    part: impl Future<Output = Result<T, CallError>>,
) -> Result<T, StartReason> {
    tokio::pin!(part);
    let result = tokio::select! {
        biased;
        result = timeout_at(clock.ends(), &mut part) => result,
        exit = body.exited() => {
            // What it wrote before it ended still counts.
            let rest = timeout(LAST_WORDS, &mut part).await;
            return match rest {
                Ok(Ok(value)) => Ok(value),
                Ok(Err(error)) if error.kind() != CallKind::Unavailable => {
                    Err(StartReason::Call(Box::new(error)))
                }
                Ok(Err(_)) | Err(_) => Err(StartReason::Exited(exit)),
            };
        }
    };
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if error.kind() == CallKind::Unavailable => {
            let exit = timeout(LAST_WORDS, body.exited()).await;
            Err(exit.map_or_else(|_| StartReason::Call(Box::new(error)), StartReason::Exited))
        }
        Ok(Err(error)) if error.kind() == CallKind::Timeout => Err(clock.over()),
        Ok(Err(error)) => Err(StartReason::Call(Box::new(error))),
        Err(_) => Err(clock.over()),
    }
}

/// Ends what a failed launch left and keeps its last words.
async fn give_up(mut running: Running, phase: Phase, reason: StartReason) -> Miss {
    running.body.kill();
    running.session.close(Lost::Shutdown);
    // A tree that outlives its kill is not waited for; dropping the process kills it again.
    drop(timeout(GONE, running.body.gone()).await);
    drop(timeout(LAST_WORDS, &mut running.stderr_ended).await);
    let stderr = running.stderr.tail(STDERR_IN_ERRORS);
    Miss { phase, reason, stderr }
}

//! Launches a server until it is ready: process, handshake, lists, retries.

mod install;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::ServerCapabilities;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::Server;
use super::instance::ServerInstance;
use crate::audit::AuditEvent;
use crate::cache::Cache;
use crate::callback::CallbackRegistry;
use crate::catalog::CatalogEntry;
use crate::connection::handshake::{
    ClientInfo, HandshakeClient, HandshakeProbe, HandshakeResult, perform_handshake,
};
use crate::connection::list_ttls::ListTtls;
use crate::connection::listing::{read_all, report_quarantined};
use crate::connection::meta::ClientMeta;
use crate::connection::subscriptions::Subscriptions;
use crate::connection::timeout_streak::TimeoutStreak;
use crate::connection::{Connection, listen};
use crate::error::{
    AuthErrorKind, CallError, CallErrorKind, ServerFailure, StartFailureReason, StartPhase,
    UnavailableReason,
};
use crate::event::{EventPublisher, HostEvent};
use crate::guard::SecretFingerprints;
use crate::process::ledger::Ledger;
use crate::process::stderr::StderrTail;
use crate::process::{self, Process, ProcessSpec, StdioPipes, Supervisor};
use crate::session::{Session, SessionContext, SessionLimits};
use crate::tasks::BackgroundTasks;
use crate::telemetry::{NetworkAttributes, Telemetry};
use crate::transport::auth::AuthManager;
use crate::transport::{HelperLaunchContext, RemoteEndpoint, TransportHandle, TransportKind};

/// Time to wait for the exit or the last stderr output of a failed launch.
const STDERR_GRACE: Duration = Duration::from_millis(100);

/// Time for a killed process tree to exit before the next launch.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// Maximum number of stderr bytes in an error.
const MAX_STDERR_BYTES: usize = 4 << 10;

/// Maximum number of launches in one start (TR6.5: three retries after 1 s, 2 s and 4 s).
const MAX_LAUNCHES: u32 = 4;

/// The resources shared by all launches of a host.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub(crate) supervisor: Supervisor,
    pub(crate) ledger: Option<Ledger>,
    pub(crate) client: ClientInfo,
    pub(crate) limits: SessionLimits,
    /// Timeout of one start or restart.
    pub(crate) start_timeout: Duration,
    pub(crate) install_timeout: Duration,
    pub(crate) callbacks: CallbackRegistry,
    pub(crate) sign_in: AuthManager,
    pub(crate) events: EventPublisher,
    pub(crate) secret_fingerprints: Arc<SecretFingerprints>,
    pub(crate) telemetry: Telemetry,
    pub(crate) tasks: BackgroundTasks,
}

/// The endpoint of a server.
#[derive(Debug)]
pub(crate) enum Endpoint {
    /// A child process.
    Child(ProcessSpec),
    /// A URL.
    Remote(RemoteEndpoint),
}

impl Endpoint {
    fn network(&self) -> NetworkAttributes {
        match self {
            Self::Child(_) => NetworkAttributes::PIPE,
            Self::Remote(remote) => remote.network_attributes(),
        }
    }
}

/// A server that has been started.
#[derive(Debug)]
pub(crate) struct StartedServer {
    pub(crate) instance: ServerInstance,
    pub(crate) session: Session,
    pub(crate) stderr: StderrTail,
    stderr_ended: oneshot::Receiver<()>,
    pub(crate) capabilities: ServerCapabilities,
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        // The task that drives a connection ends with its session.
        self.session.close(UnavailableReason::Shutdown);
    }
}

/// A failed launch.
struct LaunchFailure {
    phase: StartPhase,
    reason: StartFailureReason,
    stderr: String,
}

/// A timeout with the deadline that results from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartDeadline {
    pub(crate) deadline: Instant,
    pub(crate) timeout: Duration,
}

/// The deadlines of one server's start; a package installation has a separate timeout.
struct StartClock {
    server_deadline: StartDeadline,
    install_remaining: Duration,
    /// Timeout reported for an unfinished installation.
    install_timeout: Duration,
    /// Deadline of all servers together.
    overall_deadline: StartDeadline,
}

impl StartClock {
    /// Excludes the time since the given instant, which was spent on a package installation.
    fn exclude_install_time(&mut self, install_started: Instant) {
        self.server_deadline.deadline += install_started.elapsed();
        self.install_remaining = self.install_remaining.saturating_sub(install_started.elapsed());
    }

    fn deadline(&self) -> Instant {
        self.server_deadline.deadline.min(self.overall_deadline.deadline)
    }

    /// Returns the reason for a start that timed out.
    fn timeout_reason(&self) -> StartFailureReason {
        if self.overall_deadline.deadline < self.server_deadline.deadline {
            StartFailureReason::StartTimeout(self.overall_deadline.timeout)
        } else {
            StartFailureReason::TimedOut(self.server_deadline.timeout)
        }
    }
}

impl Launcher {
    /// Starts `server`. Repeats failed launches until the deadline of the server or of `all`
    /// servers, as long as a retry can help. With `waits`, the time of an interactive sign-in does
    /// not count, and the deadline of `all` moves accordingly. Dropping the future kills the
    /// started processes.
    pub(crate) async fn start(
        &self,
        server: &Server,
        endpoint: &Endpoint,
        all: &mut StartDeadline,
        waits: bool,
    ) -> Result<(StartedServer, CatalogEntry, Duration), ServerFailure> {
        if let Endpoint::Child(launch) = endpoint {
            self.report_unapplied_settings(&server.name, launch);
        }
        let started = Instant::now();
        let timeout = server.config().init_timeout;
        let own_deadline = StartDeadline { deadline: started + timeout, timeout };
        let install_timeout = self.install_timeout;
        let mut clock = StartClock {
            server_deadline: own_deadline,
            install_remaining: install_timeout,
            install_timeout,
            overall_deadline: *all,
        };
        // The HTTP+SSE transport exists only in the legacy era.
        let only =
            matches!(endpoint, Endpoint::Remote(remote) if remote.kind == TransportKind::Sse);
        let mut opening =
            if only { HandshakeProbe::InitializeOnly } else { HandshakeProbe::Discover };
        let mut attempt = 1;
        let mut earlier_failure: Option<LaunchFailure> = None;
        let mut waited = false;
        loop {
            self.events.publish(HostEvent::Launching { server: server.name.clone(), attempt });
            tracing::info!(server = &*server.name, attempt, "start");
            let signed_in = self.sign_in.sign_in_count(&server.name);
            let mut miss = match self.launch(server, endpoint, opening, &mut clock).await {
                Ok((running, entry)) => return Ok((running, entry, started.elapsed())),
                Err(miss) => miss,
            };
            if let Some(time) = miss.reason.elapsed_timeout().filter(|_| !waited) {
                waited = true;
                let sign_in_result = match waits {
                    // The time of the sign-in does not count against the server's timeout.
                    true => self.sign_in.wait_sign_in_since(&server.name, signed_in).await,
                    false if self.sign_in.is_signing_in(&server.name) => {
                        Some(Err(AuthErrorKind::Timeout(time)))
                    }
                    false => None,
                };
                match sign_in_result {
                    Some(Ok(())) => {
                        clock.server_deadline.deadline = Instant::now() + timeout;
                        all.deadline = all.deadline.max(clock.server_deadline.deadline);
                        clock.overall_deadline = *all;
                        continue;
                    }
                    Some(Err(error)) => miss.reason = sign_in_error(&server.name, error),
                    None => {}
                }
            }
            let delay = Duration::from_secs(1 << (attempt - 1));
            let time = Instant::now() + delay < clock.deadline();
            if attempt == MAX_LAUNCHES || !time || !miss.reason.is_transient() {
                // If the last launch timed out, the error of an earlier launch is more specific.
                let LaunchFailure { phase, reason, stderr } = match (&miss.reason, earlier_failure)
                {
                    (
                        StartFailureReason::TimedOut(_) | StartFailureReason::StartTimeout(_),
                        Some(earlier_failure),
                    ) => earlier_failure,
                    _ => miss,
                };
                let server = server.name.clone();
                return Err(ServerFailure { server, phase, reason, stderr, attempts: attempt });
            }
            if !only && matches!(miss.phase, StartPhase::Handshake) {
                // The server may have exited because of `server/discover`; start with `initialize`.
                opening = HandshakeProbe::Initialize;
            }
            self.report_retry(server, delay, &miss);
            earlier_failure = Some(miss);
            sleep(delay).await;
            attempt += 1;
        }
    }

    /// Reports each limit and each part of the sandbox that has no effect on this system.
    fn report_unapplied_settings(&self, server: &Arc<str>, launch: &ProcessSpec) {
        for (key, reason) in launch.confinement.unapplied_settings(&self.supervisor) {
            AuditEvent::LimitNotApplied { key, reason: &reason }.emit(server);
            let server = server.clone();
            self.events.publish(HostEvent::LimitNotApplied { server, key, reason });
        }
    }

    fn report_retry(&self, server: &Server, delay: Duration, miss: &LaunchFailure) {
        let reason = miss.reason.to_string();
        let delay_s = delay.as_secs_f64();
        tracing::warn!(server = &*server.name, delay_s, reason, "launch failed, retrying");
        self.events.publish(HostEvent::LaunchRetry { server: server.name.clone(), delay, reason });
    }

    async fn launch(
        &self,
        server: &Server,
        endpoint: &Endpoint,
        opening: HandshakeProbe,
        clock: &mut StartClock,
    ) -> Result<(StartedServer, CatalogEntry), LaunchFailure> {
        let mut running = match endpoint {
            Endpoint::Child(launch) => self.spawn(server, launch, clock).await,
            Endpoint::Remote(remote) => self.connect(server, remote),
        }
        .map_err(|reason| LaunchFailure {
            phase: StartPhase::Launch,
            reason,
            stderr: String::new(),
        })?;
        server.status().launch_kill_handle = running.instance.kill_handle();
        let mut ready = self.make_ready(server, endpoint, &mut running, opening, clock).await;
        if let (Endpoint::Remote(remote), Err((StartPhase::Handshake, reason))) = (endpoint, &ready)
            && remote.kind == TransportKind::Http
            && reason.suggests_legacy_http()
        {
            tracing::info!(server = &*server.name, "falling back to the HTTP+SSE transport");
            let by_sse = Endpoint::Remote(remote.with_sse());
            let older = self.connect(server, &remote.with_sse());
            let mut older = older.map_err(|reason| LaunchFailure {
                phase: StartPhase::Launch,
                reason,
                stderr: String::new(),
            })?;
            let opening = HandshakeProbe::InitializeOnly;
            let tried = self.make_ready(server, &by_sse, &mut older, opening, clock).await;
            // If the fallback fails too, the first error is more specific.
            if tried.is_ok() {
                running.session.close(UnavailableReason::Shutdown);
                (running, ready) = (older, tried);
            }
        }
        match ready {
            Ok(entry) => Ok((running, entry)),
            Err((phase, reason)) => {
                let miss = give_up(running, phase, reason).await;
                server.status().launch_kill_handle = None;
                Err(miss)
            }
        }
    }

    async fn spawn(
        &self,
        server: &Server,
        launch: &ProcessSpec,
        clock: &StartClock,
    ) -> Result<StartedServer, StartFailureReason> {
        #[cfg(all(test, unix))]
        if let Some(street) = crate::simulation::current_simulation() {
            let (process, pipes) = street.spawn(launch);
            return Ok(self.started_server(
                server,
                process,
                pipes,
                street.small_limits(self.session_limits(server)),
            ));
        }
        let spawning = process::spawn(launch, &self.supervisor, self.ledger.as_ref());
        let spawned =
            timeout_at(clock.deadline(), spawning).await.map_err(|_| clock.timeout_reason())?;
        let (process, StdioPipes { stdin, stdout, stderr }) =
            spawned.map_err(|error| StartFailureReason::Spawn(error.to_string().into()))?;
        Ok(self.started_server(
            server,
            process,
            (stdin, stdout, stderr),
            self.session_limits(server),
        ))
    }

    fn started_server<W, R, E>(
        &self,
        server: &Server,
        process: Process,
        (stdin, stdout, stderr): (W, R, E),
        limits: SessionLimits,
    ) -> StartedServer
    where
        W: AsyncWrite + Send + Unpin + 'static,
        R: AsyncRead + Send + Unpin + 'static,
        E: AsyncRead + Send + Unpin + 'static,
    {
        let (stderr, stderr_ended) = self.drain_stderr(server, stderr);
        let session = Session::open(self.session_context(server), stdout, stdin, limits);
        let server_capabilities = ServerCapabilities::default();
        StartedServer {
            instance: ServerInstance::Child(process),
            session,
            stderr,
            stderr_ended,
            capabilities: server_capabilities,
        }
    }

    fn connect(
        &self,
        server: &Server,
        remote: &RemoteEndpoint,
    ) -> Result<StartedServer, StartFailureReason> {
        let (owner, limits) = (self.session_context(server), self.session_limits(server));
        #[cfg(all(test, unix))]
        if let Some(street) = crate::simulation::current_simulation() {
            return Ok(connected_server(street.connect(owner, street.small_limits(limits))));
        }
        let (supervisor, ledger) = (self.supervisor.clone(), self.ledger.clone());
        let programs = HelperLaunchContext { supervisor, ledger };
        let config = server.config();
        let transport =
            remote.connect(owner, limits, &self.sign_in, config.oauth.as_ref(), programs);
        transport
            .map(connected_server)
            .map_err(|error| StartFailureReason::Spawn(error.to_string().into()))
    }

    fn session_context(&self, server: &Server) -> SessionContext {
        let (callbacks, tasks) = (self.callbacks.clone(), self.tasks.clone());
        SessionContext {
            server: server.name.clone(),
            callbacks,
            events: self.events.clone(),
            tasks,
        }
    }

    fn session_limits(&self, server: &Server) -> SessionLimits {
        SessionLimits { callback_timeout: server.config().max_total_timeout, ..self.limits }
    }

    /// Starts a task that reads stderr; the receiver resolves at the end of stderr.
    fn drain_stderr(
        &self,
        server: &Server,
        stderr: impl AsyncRead + Send + Unpin + 'static,
    ) -> (StderrTail, oneshot::Receiver<()>) {
        let name = server.name.clone();
        let tail = StderrTail::default();
        let (drained_tail, (ended_sender, ended)) = (tail.clone(), oneshot::channel::<()>());
        self.tasks.spawn(async move {
            let log = |line: &str| tracing::info!(server = &*name, line, "stderr");
            drained_tail.drain(stderr, log).await;
            drop(ended_sender);
        });
        (tail, ended)
    }

    async fn make_ready(
        &self,
        server: &Server,
        endpoint: &Endpoint,
        running: &mut StartedServer,
        opening: HandshakeProbe,
        clock: &mut StartClock,
    ) -> Result<CatalogEntry, (StartPhase, StartFailureReason)> {
        let mut server_seen = true;
        if let Endpoint::Child(launch) = endpoint
            && install::is_package_runner(&launch.program)
        {
            self.events.publish(HostEvent::Installing { server: server.name.clone() });
            let StartedServer { instance, session, .. } = &mut *running;
            server_seen =
                install::wait_for_server_process(instance, session, launch, clock).await?;
        }
        self.events.publish(HostEvent::Handshake { server: server.name.clone() });
        let capabilities = self.callbacks.capabilities(&server.name);
        let client = HandshakeClient { server: &server.name, info: &self.client, capabilities };
        let StartedServer { instance, session, .. } = &mut *running;
        let handshake = if server_seen {
            let handshake = perform_handshake(session, client, opening, clock.deadline());
            let handshake = run_while_alive(instance, clock, handshake).await;
            handshake.map_err(|reason| (StartPhase::Handshake, reason))?
        } else {
            let handshake =
                perform_handshake(session, client, opening, install::latest_deadline(clock));
            install::handshake_during_install(instance, session, clock, handshake).await?
        };
        let HandshakeResult { revision, meta, capabilities, server_info, instructions } = handshake;
        running.capabilities = capabilities;
        let config = server.config();
        let cache = Arc::new(Cache::new(config.cache));
        running.session.set_cache(cache.clone());
        let connection = Arc::new(Connection {
            server: server.name.clone(),
            session: running.session.clone(),
            revision,
            tasks: running.capabilities.tasks,
            client_meta: meta.as_deref().map(ClientMeta::from_raw).unwrap_or_default(),
            permits: Semaphore::new(config.max_concurrent),
            retry: config.retry,
            max_total_timeout: config.max_total_timeout,
            cache,
            callbacks: self.callbacks.clone(),
            subscriptions: Subscriptions::default(),
            list_ttls: ListTtls::default(),
            metrics: server.metrics.clone(),
            timeout_streak: TimeoutStreak::new(config.unavailable_after_timeouts),
            events: self.events.clone(),
            secret_fingerprints: self.secret_fingerprints.clone(),
            telemetry: self.telemetry.for_connection(&server.name, revision, endpoint.network()),
        });
        listen::start(&connection, &running.capabilities, &self.tasks).await;
        let mut excluded = Vec::new();
        let remaining = clock.deadline().saturating_duration_since(Instant::now());
        let reading = read_all(&connection, &running.capabilities, remaining, &mut excluded);
        let listing = run_while_alive(&mut running.instance, clock, reading)
            .await
            .map_err(|reason| (StartPhase::Lists, reason))?;
        let server_details = (server_info, instructions);
        let entry =
            CatalogEntry::new(connection, &server.config(), server_details, listing, &mut excluded);
        report_quarantined(&self.events, &server.name, &excluded);
        Ok(entry)
    }
}

fn sign_in_error(server: &Arc<str>, failure: AuthErrorKind) -> StartFailureReason {
    let (server, reason) = (server.clone(), UnavailableReason::Unauthorized(Box::new(failure)));
    let error = CallError::Unavailable { server, reason, may_have_run: false, attempts: 1 };
    StartFailureReason::Call(Box::new(error))
}

fn connected_server(transport: TransportHandle) -> StartedServer {
    let TransportHandle { session, ended } = transport;
    let (_, stderr_ended) = oneshot::channel();
    let (stderr, server_capabilities) = (StderrTail::default(), ServerCapabilities::default());
    StartedServer {
        instance: ServerInstance::Connection(Some(ended)),
        session,
        stderr,
        stderr_ended,
        capabilities: server_capabilities,
    }
}

/// Runs a part of the start until the process exits or the deadline passes.
async fn run_while_alive<T>(
    body: &mut ServerInstance,
    clock: &StartClock,
    operation: impl Future<Output = Result<T, CallError>>,
) -> Result<T, StartFailureReason> {
    tokio::pin!(operation);
    let result = tokio::select! {
        biased;
        result = timeout_at(clock.deadline(), &mut operation) => result,
        exit = body.wait() => {
            // Output written before the exit is still valid.
            let rest = timeout(STDERR_GRACE, &mut operation).await;
            return match rest {
                Ok(Ok(value)) => Ok(value),
                Ok(Err(error)) if error.kind() != CallErrorKind::Unavailable => {
                    Err(StartFailureReason::Call(Box::new(error)))
                }
                Ok(Err(_)) | Err(_) => Err(StartFailureReason::Exited(exit)),
            };
        }
    };
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if error.kind() == CallErrorKind::Unavailable => {
            let exit = timeout(STDERR_GRACE, body.wait()).await;
            Err(exit.map_or_else(
                |_| StartFailureReason::Call(Box::new(error)),
                StartFailureReason::Exited,
            ))
        }
        Ok(Err(error)) if error.kind() == CallErrorKind::Timeout => Err(clock.timeout_reason()),
        Ok(Err(error)) => Err(StartFailureReason::Call(Box::new(error))),
        Err(_) => Err(clock.timeout_reason()),
    }
}

/// Terminates a failed launch and captures its last stderr output.
async fn give_up(
    mut running: StartedServer,
    phase: StartPhase,
    reason: StartFailureReason,
) -> LaunchFailure {
    running.instance.kill();
    running.session.close(UnavailableReason::Shutdown);
    // Do not wait longer for a tree that survives the kill; dropping the process kills it again.
    drop(timeout(EXIT_GRACE, running.instance.wait_tree()).await);
    drop(timeout(STDERR_GRACE, &mut running.stderr_ended).await);
    let stderr = running.stderr.tail(MAX_STDERR_BYTES);
    LaunchFailure { phase, reason, stderr }
}

//! Launches a server until it is ready: endpoint, handshake, lists.

mod clock;
mod install;
mod open;
mod ready;
mod relaunch;
mod silent_servers;
mod start;
mod start_slots;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::ServerCapabilities;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Server;
use super::connector::ConnectorSource;
use super::endpoint_opener::EndpointOpener;
use super::instance::ServerInstance;
use crate::catalog::CatalogEntry;
use crate::connection::handshake::{ClientInfo, HandshakeProbe};
use crate::connection::log_level::LogLevels;
use crate::error::{StartFailureReason, StartPhase, UnavailableReason};
use crate::session::{HostContext, Session, SessionLimits};
use crate::stderr::StderrTail;
use crate::telemetry::{NetworkAttributes, Telemetry};
use crate::text::display_safe;
use crate::transport::auth::AuthManager;
use crate::transport::{HttpSessionState, RemoteEndpoint, TransportKind};
use clock::StartClock;
pub(crate) use clock::StartDeadline;
use innkeeper_process::{ProcessSpec, Supervisor};
pub(crate) use silent_servers::SilentServers;
pub use start_slots::StartSlots;

/// Time to wait for the exit or the last stderr output of a failed launch.
const STDERR_GRACE: Duration = Duration::from_millis(100);

/// Time for a killed process tree to exit before the next launch.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// Maximum number of stderr bytes in an error.
const MAX_STDERR_BYTES: usize = 4 << 10;

/// The resources shared by all launches of a host.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub(crate) host: HostContext,
    pub(crate) client: ClientOptions,
    pub(crate) sign_in: AuthManager,
    pub(crate) supervisor: Supervisor,
    pub(crate) opener: Arc<dyn EndpointOpener>,
    pub(crate) start_limits: StartLimits,
    pub(crate) silent_servers: SilentServers,
}

/// How a host acts as the client of each of its servers.
#[derive(Debug, Default)]
pub(crate) struct ClientOptions {
    pub(crate) info: ClientInfo,
    pub(crate) limits: SessionLimits,
    pub(crate) log_levels: LogLevels,
    pub(crate) telemetry: Telemetry,
    /// Whether a server that still responds to a ping stays ready after timeouts.
    pub(crate) pings_unresponsive: bool,
    /// Whether servers without a restart policy of their own are brought back.
    pub(crate) revives_servers: bool,
}

/// The time and the number of starts.
#[derive(Debug)]
pub(crate) struct StartLimits {
    /// Timeout of one start or restart.
    pub(crate) start_timeout: Duration,
    pub(crate) install_timeout: Duration,
    pub(crate) slots: StartSlots,
}

#[derive(Debug)]
pub(crate) enum Endpoint {
    /// A child process.
    Child(ProcessSpec),
    /// A URL.
    Remote(RemoteEndpoint),
    /// A server in the process of the application.
    InProcess(Arc<ConnectorSource>),
}

impl Endpoint {
    /// Returns whether another launch can succeed after a launch.
    fn is_repeatable(&self) -> bool {
        match self {
            Self::Child(_) | Self::Remote(_) => true,
            Self::InProcess(source) => source.is_repeatable(),
        }
    }

    /// Returns the name of the program as the user wrote it, without its directory.
    fn program_name(&self) -> Option<Box<str>> {
        match self {
            Self::Child(launch) => {
                let name = Path::new(&launch.command).file_name()?.to_string_lossy();
                Some(display_safe(&name).into())
            }
            Self::Remote(_) | Self::InProcess(_) => None,
        }
    }

    fn network(&self) -> NetworkAttributes {
        match self {
            Self::Child(_) | Self::InProcess(_) => NetworkAttributes::PIPE,
            Self::Remote(remote) => remote.network_attributes(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct StartedServer {
    pub(crate) instance: ServerInstance,
    pub(crate) session: Session,
    /// The state of a session over Streamable HTTP.
    pub(crate) http_session: Option<Arc<HttpSessionState>>,
    pub(crate) stderr: StderrTail,
    stderr_ended: oneshot::Receiver<()>,
    pub(crate) capabilities: ServerCapabilities,
}

impl StartedServer {
    /// Returns whether the connection continues a session of another host.
    fn is_continued(&self) -> bool {
        self.http_session.as_ref().is_some_and(|session| session.continued().is_some())
    }

    /// Returns the end of stderr after the process has ended; waits for at most `grace` while another
    /// process keeps it open.
    pub(crate) async fn last_stderr(&mut self, grace: Duration) -> String {
        let _ = timeout(grace, &mut self.stderr_ended).await;
        self.stderr.tail(MAX_STDERR_BYTES)
    }
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        // The task that drives a connection ends with its session.
        self.session.close(UnavailableReason::Shutdown);
    }
}

#[derive(Debug)]
struct LaunchFailure {
    phase: StartPhase,
    reason: StartFailureReason,
    stderr: String,
}

impl LaunchFailure {
    fn before_handshake(reason: StartFailureReason) -> Self {
        Self { phase: StartPhase::Launch, reason, stderr: String::new() }
    }
}

impl Launcher {
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
            Endpoint::InProcess(source) => self.connect_in_process(server, source, clock).await,
        }
        .map_err(LaunchFailure::before_handshake)?;
        server.status().launch_kill_handle = running.instance.kill_handle();
        let mut ready = self.make_ready(server, endpoint, &mut running, opening, clock).await;
        if let (Endpoint::Remote(remote), Err((StartPhase::Handshake, reason))) = (endpoint, &ready)
            && running.is_continued()
            && reason.is_rejection()
        {
            // Some servers report an unknown session with another status than 404.
            tracing::warn!(server = &*server.name, "session not continued, starting another one");
            server.status().next_start.continued_session = None;
            running = self.connect(server, remote).map_err(LaunchFailure::before_handshake)?;
            ready = self.make_ready(server, endpoint, &mut running, opening, clock).await;
        }
        if let (Endpoint::Remote(remote), Err((StartPhase::Handshake, reason))) = (endpoint, &ready)
            && remote.kind == TransportKind::Http
            && reason.suggests_legacy_http()
        {
            tracing::info!(server = &*server.name, "falling back to the HTTP+SSE transport");
            let by_sse = Endpoint::Remote(remote.with_sse());
            let older = self.connect(server, &remote.with_sse());
            let mut older = older.map_err(LaunchFailure::before_handshake)?;
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
}

/// Terminates a failed launch and captures its last output on stderr, else on stdout.
async fn give_up(
    mut running: StartedServer,
    phase: StartPhase,
    reason: StartFailureReason,
) -> LaunchFailure {
    running.instance.kill();
    running.session.close(UnavailableReason::Shutdown);
    // Do not wait longer for a tree that survives the kill; dropping the process kills it again.
    let _ = timeout(EXIT_GRACE, running.instance.wait_tree()).await;
    let mut stderr = running.last_stderr(STDERR_GRACE).await;
    if stderr.is_empty() {
        running.stderr.keep(&running.session.early_line());
        stderr = running.stderr.tail(MAX_STDERR_BYTES);
    }
    LaunchFailure { phase, reason, stderr }
}

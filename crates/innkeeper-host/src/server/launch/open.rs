//! Opens the session of one launch: to a process, a URL, or a server in the same process.

use innkeeper_config::TransportConfig;
use innkeeper_process::ProcessSpec;
use innkeeper_protocol::view::ServerCapabilities;
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use super::{Launcher, StartClock, StartedServer};
use crate::error::StartFailureReason;
use crate::server::Server;
use crate::server::connector::ConnectorSource;
use crate::server::endpoint_opener::SpawnedServer;
use crate::server::in_process::InProcessConnection;
use crate::server::instance::ServerInstance;
use crate::session::{Session, SessionContext, SessionLimits};
use crate::stderr::StderrTail;
use crate::transport::{RemoteEndpoint, TransportHandle};

impl Launcher {
    /// Starts a process and opens the session over its pipes.
    pub(super) async fn spawn(
        &self,
        server: &Server,
        launch: &ProcessSpec,
        clock: &StartClock,
    ) -> Result<StartedServer, StartFailureReason> {
        let spawned = timeout_at(clock.deadline(), self.opener.spawn(launch))
            .await
            .map_err(|_| clock.timeout_reason())?;
        let SpawnedServer { process, stdin, stdout, stderr } =
            spawned.map_err(|error| StartFailureReason::Spawn(error.to_string().into()))?;
        let (stderr, stderr_ended) = self.drain_stderr(server, stderr);
        let context = self.session_context(server);
        let session = Session::open(context, stdout, stdin, self.session_limits(server));
        Ok(StartedServer {
            instance: ServerInstance::Child(process),
            session,
            http_session: None,
            stderr,
            stderr_ended,
            capabilities: ServerCapabilities::default(),
        })
    }

    /// Connects to a remote server.
    pub(super) fn connect(
        &self,
        server: &Server,
        remote: &RemoteEndpoint,
    ) -> Result<StartedServer, StartFailureReason> {
        let context = self.session_context(server);
        let limits = self.session_limits(server);
        let config = server.config();
        let remote = remote.continuing(server.status().next_start.continued_session.clone());
        let transport =
            self.opener.connect(&remote, context, limits, &self.sign_in, config.oauth.as_ref());
        let TransportHandle { session, http_session, ended } =
            transport.map_err(|error| StartFailureReason::Spawn(error.to_string().into()))?;
        let mut server = connected_server(ServerInstance::Connection(Some(ended)), session);
        server.http_session = http_session;
        Ok(server)
    }

    /// Connects to a server in the process of the application.
    pub(super) async fn connect_in_process(
        &self,
        server: &Server,
        source: &ConnectorSource,
        clock: &StartClock,
    ) -> Result<StartedServer, StartFailureReason> {
        let connected = timeout_at(clock.deadline(), source.connect())
            .await
            .map_err(|_| clock.timeout_reason())?;
        let stream = connected.map_err(StartFailureReason::Connector)?;
        let (connection, reader, writer) = InProcessConnection::new(stream);
        let context = self.session_context(server);
        let limits = self.session_limits(server);
        let session = Session::open(context, reader, writer, limits);
        Ok(connected_server(ServerInstance::InProcess(connection), session))
    }

    fn session_context(&self, server: &Server) -> SessionContext {
        SessionContext { server: server.name.clone(), host: self.host.clone() }
    }

    fn session_limits(&self, server: &Server) -> SessionLimits {
        SessionLimits {
            callback_timeout: server.config().calls.max_total_timeout,
            ..self.client.limits
        }
    }

    /// Starts a task that reads stderr; the receiver resolves at the end of stderr.
    fn drain_stderr(
        &self,
        server: &Server,
        stderr: impl AsyncRead + Send + Unpin + 'static,
    ) -> (StderrTail, oneshot::Receiver<()>) {
        let name = server.name.clone();
        let config = server.config();
        let tail = match &config.transport {
            TransportConfig::Stdio { env, .. } => StderrTail::with_masked_values(env.values()),
            TransportConfig::Http { .. }
            | TransportConfig::Sse { .. }
            | TransportConfig::WebSocket { .. }
            | TransportConfig::InProcess => StderrTail::default(),
        };
        let (drained_tail, (ended_sender, ended)) = (tail.clone(), oneshot::channel::<()>());
        self.host.tasks.spawn(async move {
            drained_tail
                .drain(stderr, |line| tracing::info!(server = &*name, line, "stderr"))
                .await;
            drop(ended_sender);
        });
        (tail, ended)
    }
}

/// Returns a started server without stderr.
fn connected_server(instance: ServerInstance, session: Session) -> StartedServer {
    let (_, stderr_ended) = oneshot::channel();
    StartedServer {
        instance,
        session,
        http_session: None,
        stderr: StderrTail::default(),
        stderr_ended,
        capabilities: ServerCapabilities::default(),
    }
}

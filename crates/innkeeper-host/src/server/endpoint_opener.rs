//! Opens the endpoints of servers: starts processes, connects to URLs.

use std::fmt;

use futures_util::future::{BoxFuture, FutureExt, TryFutureExt};
use innkeeper_config::OauthConfig;
use innkeeper_process::ledger::Ledger;
use innkeeper_process::{ProcessSpec, ServerProcess, SpawnError, StdioPipes, Supervisor};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::session::{SessionContext, SessionLimits};
use crate::transport::auth::AuthManager;
use crate::transport::{HelperLaunchContext, HttpClientError, RemoteEndpoint, TransportHandle};

/// Opens the endpoints of servers. The simulation has its own implementation.
pub(crate) trait EndpointOpener: fmt::Debug + Send + Sync {
    /// Starts a process. Dropping the future kills the started processes.
    fn spawn<'a>(
        &'a self,
        spec: &'a ProcessSpec,
    ) -> BoxFuture<'a, Result<SpawnedServer, SpawnError>>;

    /// Connects to a remote server; errors after the return close the session.
    fn connect(
        &self,
        remote: &RemoteEndpoint,
        context: SessionContext,
        limits: SessionLimits,
        sign_in: &AuthManager,
        oauth: Option<&OauthConfig>,
    ) -> Result<TransportHandle, HttpClientError>;
}

/// A started process with the host's ends of its standard streams.
pub(crate) struct SpawnedServer {
    pub(crate) process: Box<dyn ServerProcess>,
    /// Standard input; dropping it sends end of file.
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) stderr: Box<dyn AsyncRead + Send + Unpin>,
}

/// Opens endpoints with the processes and the network of the system.
#[derive(Debug)]
pub(crate) struct SystemOpener {
    pub(crate) supervisor: Supervisor,
    pub(crate) ledger: Option<Ledger>,
}

impl EndpointOpener for SystemOpener {
    fn spawn<'a>(
        &'a self,
        spec: &'a ProcessSpec,
    ) -> BoxFuture<'a, Result<SpawnedServer, SpawnError>> {
        let spawning = innkeeper_process::spawn(spec, &self.supervisor, self.ledger.as_ref());
        spawning
            .map_ok(|(process, StdioPipes { stdin, stdout, stderr })| SpawnedServer {
                process: Box::new(process),
                stdin: Box::new(stdin),
                stdout: Box::new(stdout),
                stderr: Box::new(stderr),
            })
            .boxed()
    }

    fn connect(
        &self,
        remote: &RemoteEndpoint,
        context: SessionContext,
        limits: SessionLimits,
        sign_in: &AuthManager,
        oauth: Option<&OauthConfig>,
    ) -> Result<TransportHandle, HttpClientError> {
        let supervisor = self.supervisor.clone();
        let ledger = self.ledger.clone();
        let programs = HelperLaunchContext { supervisor, ledger };
        remote.connect(context, limits, sign_in, oauth, programs)
    }
}

//! The public API of a gateway.

mod builder;
mod reload;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use innkeeper_host::ShutdownReport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;

use crate::calls::{AnswerOutcome, Calls, OperatorAnswer};
use crate::http_access::HttpAccess;
use crate::listener::GatewayListener;
use crate::pending_questions::store::StoreError;
use crate::pending_questions::{PendingQuestions, QuestionId};
use crate::principal::Principal;
use crate::replica_router;
use crate::router;
use crate::server;
use crate::state::GatewayState;
use crate::transport;
use crate::transport::http::{HttpTransport, upkeep};
pub use builder::GatewayBuilder;

/// The servers of a host as one MCP server. Clones share the gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    state: Arc<GatewayState>,
    /// The HTTP transport of the first router, for requests that other replicas pass on.
    transport: Arc<OnceLock<Weak<HttpTransport>>>,
}

impl Gateway {
    /// Serves one client on a connection with newline-delimited messages, for example stdio or a
    /// Unix socket, until the client closes its output or the connection fails. Requests in flight
    /// then get [`drain_timeout`](crate::GatewayOptions::drain_timeout). The same holds after
    /// [`Self::close`] of a gateway for one client. Dropping the future ends the connection at once.
    ///
    /// # Errors
    ///
    /// Returns the error of the connection, or an error of the kind `NotFound` for a client that is not
    /// bound to the endpoint `/mcp`.
    pub async fn serve_connection(
        &self,
        principal: Principal,
        reader: impl AsyncRead + Send + Unpin,
        writer: impl AsyncWrite + Send + Unpin,
    ) -> std::io::Result<()> {
        let endpoint = self.state.offers.endpoints.place_for(&principal, 0);
        let endpoint = endpoint.ok_or(std::io::ErrorKind::NotFound)?;
        transport::connection::serve(&self.state, principal, endpoint, reader, writer).await
    }

    /// Works like [`Self::serve_connection`], with the items of one server under their own names.
    ///
    /// # Errors
    ///
    /// Returns the error of the connection, or an error of the kind `NotFound` unless the server is
    /// one of [`connection_servers`](crate::GatewayOptions::connection_servers), and one that the
    /// client may use.
    pub async fn serve_server_connection(
        &self,
        principal: Principal,
        server: &str,
        reader: impl AsyncRead + Send + Unpin,
        writer: impl AsyncWrite + Send + Unpin,
    ) -> std::io::Result<()> {
        let options = &self.state.options;
        let position = options.connection_servers.iter().position(|name| name == server);
        let position = position.ok_or(std::io::ErrorKind::NotFound)?;
        let endpoint = 1 + options.named_endpoints.len() + position;
        let endpoint = self.state.offers.endpoints.place_for(&principal, endpoint);
        let endpoint = endpoint.ok_or(std::io::ErrorKind::NotFound)?;
        transport::connection::serve(&self.state, principal, endpoint, reader, writer).await
    }

    /// Returns whether [`Self::serve_server_connection`] serves the server: a server of the configuration
    /// at the start.
    #[must_use]
    pub fn has_server_connection(&self, server: &str) -> bool {
        self.state.options.connection_servers.iter().any(|name| name == server)
    }

    /// Returns the HTTP routes of the gateway, for an application that nests them in its own.
    ///
    /// The access checks apply to all routes but `/healthz` and `/readyz`. HTTP+SSE of 2024-11-05
    /// works only at the root, because the path of its messages is absolute.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::net::Ipv4Addr;
    ///
    /// use innkeeper_gateway::auth::Authenticator;
    /// use innkeeper_gateway::origin::{OriginCheck, OriginSettings};
    /// use innkeeper_gateway::{Gateway, HttpAccess};
    ///
    /// async fn run(gateway: &Gateway) -> std::io::Result<()> {
    ///     let address = Ipv4Addr::LOCALHOST;
    ///     let origin = OriginCheck::new(address.into(), OriginSettings::default());
    ///     let access = HttpAccess { authenticator: Authenticator::local_user(), origin };
    ///     let app = axum::Router::new().nest("/ai", gateway.router(access));
    ///     let listener = tokio::net::TcpListener::bind((address, 8080)).await?;
    ///     axum::serve(listener, app).await
    /// }
    /// ```
    pub fn router(&self, access: impl Into<Arc<HttpAccess>>) -> axum::Router {
        let transport = Arc::new(HttpTransport::new(self.state.clone()));
        upkeep::start(&transport);
        // Other replicas reach the sessions of the first router.
        let _ = self.transport.set(Arc::downgrade(&transport));
        router::router(transport, access.into())
    }

    /// Serves the requests that other replicas pass on, until [`Self::close`] and for the requests in
    /// flight like [`Self::serve_http`]. The listener must be reachable for replicas only: their
    /// requests have the secret of [`ReplicaOptions`](crate::ReplicaOptions), without encryption.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener cannot be used.
    pub async fn serve_replicas(
        &self,
        listener: impl Into<GatewayListener>,
    ) -> std::io::Result<()> {
        // Each address is a replica with the requests of many clients.
        let router = replica_router::replica_router(&self.state, &self.transport);
        server::serve(&self.state, router, listener.into(), usize::MAX).await
    }

    /// Gives up what the replica owns, so that other replicas take over at once. Call it after
    /// [`Self::serve_http`] and [`Self::shut_down_private_servers`] have ended: another replica then
    /// starts these servers. Takes at most two seconds for each response of Redis.
    pub async fn leave_replicas(&self) {
        if let Some(replicas) = &self.state.services.replicas {
            // A key that is being given up is no longer among those of the replica.
            let transport = self.transport.get().and_then(Weak::upgrade);
            let _handed_over = match &transport {
                Some(transport) => Some(transport.pause_hand_over().await),
                None => None,
            };
            replicas.leave().await;
        }
    }

    /// Serves HTTP on a listener until [`Gateway::close`], then for at most
    /// [`drain_timeout`](crate::GatewayOptions::drain_timeout) the requests in flight.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener cannot be used.
    pub async fn serve_http(
        &self,
        listener: impl Into<GatewayListener>,
        access: impl Into<Arc<HttpAccess>>,
    ) -> std::io::Result<()> {
        let maximum = self.state.options.limits.max_connections_per_address;
        server::serve(&self.state, self.router(access), listener.into(), maximum).await
    }

    /// Returns the questions of the gateway, for lists and notices; `None` without questions.
    pub fn questions(&self) -> Option<&PendingQuestions> {
        self.state.calls.questions()
    }

    /// Answers a question as an operator, whom the caller has authenticated. An approved call runs in
    /// this process, also if the future is dropped; dropping the future can leave the question answered
    /// or not.
    ///
    /// # Errors
    ///
    /// The store does not respond: the question may be answered.
    pub async fn answer_question(
        &self,
        id: QuestionId,
        operator: &str,
        answer: OperatorAnswer,
    ) -> Result<AnswerOutcome, StoreError> {
        self.state.calls.answer_question(id, operator, answer).await
    }

    /// Returns the reason why the gateway is not ready: a required server, or that the gateway closes.
    pub fn not_ready(&self) -> Option<String> {
        self.state.not_ready()
    }

    /// Waits until all required servers are ready, which may never be the case. The future can be
    /// dropped.
    pub async fn ready(&self) {
        // Before the first look, so that no change stays unseen.
        let mut events = self.state.servers.shared_host().events();
        while self.not_ready().is_some() {
            if let Err(RecvError::Closed) = events.recv().await {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Stops the servers that not all clients share, after [`Self::close`]. The host of
    /// [`GatewayBuilder::build`] is not stopped. Takes as long as
    /// [`Host::shutdown`](innkeeper_host::Host::shutdown) of one host. Without this call, the drop of
    /// the gateway kills these servers.
    pub async fn shut_down_private_servers(&self) -> Vec<ShutdownReport> {
        self.state.servers.shut_down_private_hosts().await
    }

    /// Accepts no more requests and connections. Event streams of the modern era end.
    pub fn close(&self) {
        // A second call finds the cell set.
        let _ = self.state.tasks.closing.set(());
    }
}

/// Interval of the search for expired calls and results.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(10);

async fn remove_expired(calls: Weak<Calls>) {
    loop {
        sleep(CLEANUP_INTERVAL).await;
        let Some(calls) = calls.upgrade() else { return };
        calls.remove_expired();
    }
}

#[cfg(test)]
mod tests;

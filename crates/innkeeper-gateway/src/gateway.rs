//! The public API of a gateway.

mod reload;
mod replication;

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use innkeeper_host::config::RateConfig;
use innkeeper_host::{Config, Host, HostBuilder, ShutdownReport, Telemetry};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::SetOnce;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;

use crate::audit_log::AuditLog;
use crate::bindings::{Bindings, Endpoints};
use crate::calls::{AnswerOutcome, Calls, CallsContext, OperatorAnswer};
use crate::connections::ConnectionService;
use crate::http_access::HttpAccess;
use crate::listener::GatewayListener;
use crate::methods::Methods;
use crate::metrics::{GatewayMetrics, RejectionReason};
use crate::offers::Offers;
use crate::options::{ConsoleOptions, GatewayOptions};
use crate::parked_calls::ParkedCalls;
use crate::pending_questions::store::StoreError;
use crate::pending_questions::{PendingQuestions, QuestionId};
use crate::policy::ToolPolicy;
use crate::principal::Principal;
use crate::rate_limits::{RateExceeded, RateLimits};
use crate::replicas::{OwnedKey, Replicas};
use crate::response_memory::ResponseMemory;
use crate::router;
use crate::server;
use crate::servers::{ChangedSessions, PrepareHost, Servers, ServersBuilder, ServersContext};
use crate::subscribers::Subscribers;
use crate::subscriptions::Subscriptions;
use crate::tasks::GatewayTasks;
use crate::transport;
use crate::transport::http::HttpTransport;
pub(crate) use replication::Replication;

/// Prepares a gateway: the host must know the gateway's callbacks before its servers start, because
/// the handshake declares them.
#[derive(Clone, Debug)]
pub struct GatewayBuilder {
    options: GatewayOptions,
    policy: ToolPolicy,
    bindings: Bindings,
    rates: Arc<RateLimits>,
    telemetry: Option<Telemetry>,
    console: Option<ConsoleOptions>,
    connections: Option<ConnectionService>,
    replicas: Option<Replicas>,
    questions: Option<PendingQuestions>,
    servers: ServersBuilder,
}

impl GatewayBuilder {
    /// Creates a builder for a gateway with any number of clients. A request of a server that
    /// belongs to no call of a client is rejected.
    pub fn new(options: GatewayOptions) -> Self {
        Self {
            options,
            policy: ToolPolicy::default(),
            bindings: Bindings::default(),
            rates: Arc::new(RateLimits::new(RateConfig::default(), [])),
            telemetry: None,
            console: None,
            connections: None,
            replicas: None,
            questions: None,
            servers: ServersBuilder::default(),
        }
    }

    /// Creates a builder for a gateway with a single client, which answers every request of the
    /// servers. The client shares all servers with itself: [`Self::private_servers`] has no effect.
    pub fn for_one_client(options: GatewayOptions) -> Self {
        Self { servers: ServersBuilder::for_one_client(), ..Self::new(options) }
    }

    /// Sets the servers of all hosts: their idle timeouts and their dependencies, and how many of them
    /// start at the same time. Default: the gateway stops no server, and eight start at the same time.
    #[must_use]
    pub fn servers(mut self, config: &Config) -> Self {
        self.servers.configure(config, self.options.max_memory.is_some());
        self
    }

    /// Offers the servers of a configuration that not all clients share. The gateway starts each of them
    /// at its first use by a principal or a session, in a host that `prepare` completes, and stops it
    /// after the last one. A client has at most half of [`GatewayOptions::max_processes`] for them.
    /// Default: none.
    ///
    /// The host of [`Self::build`] has only the servers that all clients share:
    /// [`Config::shared_by`].
    #[must_use]
    pub fn private_servers(
        mut self,
        config: &Config,
        prepare: impl Fn(HostBuilder) -> HostBuilder + Send + Sync + 'static,
    ) -> Self {
        let prepare: PrepareHost = Arc::new(prepare);
        self.servers.add_private(config, &prepare);
        self
    }

    /// Sets the tools that each client may use. Default: every tool.
    #[must_use]
    pub fn policy(self, policy: ToolPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Sets the servers and endpoints that each client may use. A client sees nothing of the others: they
    /// are unknown, as names that do not exist. Default: all of them.
    #[must_use]
    pub fn bindings(self, bindings: Bindings) -> Self {
        Self { bindings, ..self }
    }

    /// Sets the maximum rates of each client. Default: none.
    #[must_use]
    pub fn rate_limits(self, rates: RateLimits) -> Self {
        Self { rates: Arc::new(rates), ..self }
    }

    /// Sets the OpenTelemetry providers. Default: none, at no cost.
    ///
    /// Each request of a client gets one span of the kind `SERVER` and a measurement of
    /// `mcp.server.operation.duration`. The parent is the trace context in `_meta`, otherwise that
    /// in the HTTP headers, otherwise the current context. With a tracer provider the gateway does
    /// not forward the trace context of the client: set the same telemetry for the hosts
    /// ([`HostBuilder::telemetry`]), which send their own.
    #[must_use]
    pub fn telemetry(self, telemetry: Telemetry) -> Self {
        Self { telemetry: Some(telemetry), ..self }
    }

    /// Adds the connection service: its paths, and the tools, prompts and resources of the servers
    /// for its connections. Default: none.
    #[must_use]
    pub fn connections(self, service: ConnectionService) -> Self {
        Self { connections: Some(service), ..self }
    }

    /// Makes the gateway one of several replicas: sessions of `/mcp` outlive the process, and a request
    /// reaches the replica that has its session. The application must also serve
    /// [`Gateway::serve_replicas`]. Default: the only replica.
    #[must_use]
    pub fn replicas(self, replicas: Replicas) -> Self {
        Self { replicas: Some(replicas), ..self }
    }

    /// Sets the questions to operators: approvals of calls, and elicitations. Default: none.
    #[must_use]
    pub fn questions(self, questions: PendingQuestions) -> Self {
        Self { questions: Some(questions), ..self }
    }

    /// Adds the console for operators at `/console`. Default: none.
    #[must_use]
    pub fn console(self, options: ConsoleOptions) -> Self {
        Self { console: Some(options), ..self }
    }

    /// Registers the gateway's callbacks with a host that has not started yet, which shares
    /// [`HostConfig::concurrent_starts`] with the other hosts of the gateway.
    #[must_use]
    pub fn register(&self, builder: HostBuilder) -> HostBuilder {
        self.servers.register(builder)
    }

    /// Creates the gateway of a started host.
    pub fn build(self, host: Host) -> Gateway {
        let options = self.options;
        let endpoints = Arc::new(Endpoints::from_options(&options, self.bindings));
        let tasks = GatewayTasks::default();
        let replication = self.replicas.map(|replicas| {
            tasks.spawn(replicas.clone().share_rates(self.rates.clone()));
            Replication::new(replicas, &tasks, options.request_time)
        });
        let replicas = replication.as_ref().map(|replication| replication.replicas.clone());
        let replica = replicas.as_ref().map(Replicas::id);
        let parked_calls = Arc::new(ParkedCalls::new(replica));
        let responses = ResponseMemory::new(options.max_response_bytes);
        let subscribers = Arc::new(Subscribers::default());
        let audit_log = Arc::new(AuditLog::default());
        let servers = self.servers.build(
            host,
            ServersContext {
                options: &options,
                endpoints: endpoints.clone(),
                subscribers: subscribers.clone(),
                parked_calls: parked_calls.clone(),
                audit_log: audit_log.clone(),
                replicas: replicas.clone(),
                tasks: tasks.clone(),
            },
        );
        let offers = Arc::new(Offers::new(endpoints.clone(), servers.clone(), self.policy));
        let calls = Calls::new(CallsContext {
            offers: offers.clone(),
            rate_limits: self.rates.clone(),
            audit_log: audit_log.clone(),
            parked_calls,
            questions: self.questions,
            tasks: tasks.clone(),
            replica,
            has_traces: self.telemetry.as_ref().is_some_and(Telemetry::has_traces),
        });
        let closing = Arc::new(SetOnce::new());
        let subscriptions =
            Subscriptions::new(offers.clone(), subscribers, tasks.clone(), closing.clone());
        let methods = Methods::new(offers.clone(), calls.clone(), subscriptions, self.telemetry);
        let inner = Arc::new(GatewayInner {
            options,
            offers,
            calls,
            methods,
            endpoints,
            servers,
            responses,
            metrics: GatewayMetrics::new(),
            audit_log,
            rate_limits: self.rates,
            console: self.console,
            connections: self.connections,
            replication,
            tasks,
            closing,
        });
        inner.tasks.spawn(remove_expired(Arc::downgrade(&inner.calls)));
        Gateway(inner)
    }
}

/// The servers of a host as one MCP server. Clones share the gateway.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<GatewayInner>);

#[derive(Debug)]
pub(crate) struct GatewayInner {
    pub(crate) options: GatewayOptions,
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) offers: Arc<Offers>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) methods: Methods,
    pub(crate) responses: ResponseMemory,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) audit_log: Arc<AuditLog>,
    pub(crate) rate_limits: Arc<RateLimits>,
    pub(crate) console: Option<ConsoleOptions>,
    pub(crate) connections: Option<ConnectionService>,
    pub(crate) replication: Option<Replication>,
    pub(crate) tasks: GatewayTasks,
    /// Set when the gateway accepts no more requests.
    pub(crate) closing: Arc<SetOnce<()>>,
}

impl GatewayInner {
    /// Returns the reason why the gateway cannot serve now.
    pub(crate) fn not_ready(&self) -> Option<String> {
        if self.closing.initialized() {
            return Some("the gateway is closing".to_owned());
        }
        let (name, state) = self.servers.missing_required()?;
        Some(format!("required server `{name}` is {}", state.as_str()))
    }

    /// Counts a message of a batch as a request of its client. The router has counted the HTTP request
    /// for the first message.
    pub(crate) fn count_batched(
        &self,
        principal: &Principal,
        index: usize,
    ) -> Result<(), RateExceeded> {
        if index == 0 {
            return Ok(());
        }
        let counted = self.rate_limits.count_request(principal);
        counted.inspect_err(|_| self.metrics.count_rejection(RejectionReason::Rate))
    }

    /// Waits until the gateway accepts no more requests.
    pub(crate) async fn drained(&self) {
        self.closing.wait().await;
    }
}

impl Gateway {
    /// Serves one client on a connection with newline-delimited messages, for example stdio or a
    /// Unix socket, until the client closes its output or the connection fails. Requests in flight
    /// then get [`GatewayOptions::drain_timeout`]. The same holds after [`Self::close`] of a gateway
    /// for one client. Dropping the future ends the connection at once.
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
        let endpoint = self.0.endpoints.place_for(&principal, 0);
        let endpoint = endpoint.ok_or(std::io::ErrorKind::NotFound)?;
        transport::connection::serve(&self.0, (principal, endpoint), reader, writer).await
    }

    /// Works like [`Self::serve_connection`], with the items of one server under their own names.
    ///
    /// # Errors
    ///
    /// Returns the error of the connection, or an error of the kind `NotFound` unless the server is
    /// one of [`GatewayOptions::connection_servers`], and one that the client may use.
    pub async fn serve_server_connection(
        &self,
        principal: Principal,
        server: &str,
        reader: impl AsyncRead + Send + Unpin,
        writer: impl AsyncWrite + Send + Unpin,
    ) -> std::io::Result<()> {
        let options = &self.0.options;
        let position = options.connection_servers.iter().position(|name| name == server);
        let position = position.ok_or(std::io::ErrorKind::NotFound)?;
        let endpoint = 1 + options.named_endpoints.len() + position;
        let endpoint = self.0.endpoints.place_for(&principal, endpoint);
        let endpoint = endpoint.ok_or(std::io::ErrorKind::NotFound)?;
        transport::connection::serve(&self.0, (principal, endpoint), reader, writer).await
    }

    /// Returns whether [`Self::serve_server_connection`] serves the server: a server of the configuration
    /// at the start.
    #[must_use]
    pub fn has_server_connection(&self, server: &str) -> bool {
        self.0.options.connection_servers.iter().any(|name| name == server)
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
        let transport = Arc::new(HttpTransport::new(self.0.clone()));
        let idle = self.0.options.idle_session;
        self.0.tasks.spawn(end_idle_sessions(Arc::downgrade(&transport), idle));
        let (weak, closing) = (Arc::downgrade(&transport), self.0.closing.clone());
        self.0.tasks.spawn(end_idle_streams(weak, closing));
        if let Some(replication) = &self.0.replication {
            // Other replicas reach the sessions of the first router.
            drop(replication.transport.set(Arc::downgrade(&transport)));
            let (weak, replicas) = (Arc::downgrade(&transport), replication.replicas.clone());
            self.0.tasks.spawn(end_lost_sessions(weak, replicas));
            let servers = Arc::downgrade(&self.0.servers);
            self.0.tasks.spawn(end_singletons_in_time(servers, replication.replicas.clone()));
            if let Some(changed) = self.0.servers.changed_sessions() {
                let weak = Arc::downgrade(&transport);
                self.0.tasks.spawn(store_changed_sessions(weak, changed.clone()));
            }
            let (weak, closing) = (Arc::downgrade(&transport), self.0.closing.clone());
            self.0.tasks.spawn(hand_over_sessions(weak, closing));
        }
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
        server::serve(&self.0, router::replica_router(&self.0), listener.into(), usize::MAX).await
    }

    /// Gives up what the replica owns, so that other replicas take over at once. Call it after
    /// [`Self::serve_http`] and [`Self::shut_down_private_servers`] have ended: another replica then
    /// starts these servers. Takes at most two seconds for each response of Redis.
    pub async fn leave_replicas(&self) {
        if let Some(replication) = &self.0.replication {
            // A key that is being given up is no longer among those of the replica.
            let transport = replication.transport.get().and_then(Weak::upgrade);
            let _handed_over = match &transport {
                Some(transport) => Some(transport.pause_hand_over().await),
                None => None,
            };
            replication.replicas.leave().await;
        }
    }

    /// Serves HTTP on a listener until [`Gateway::close`], then for at most
    /// [`GatewayOptions::drain_timeout`] the requests in flight.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener cannot be used.
    pub async fn serve_http(
        &self,
        listener: impl Into<GatewayListener>,
        access: impl Into<Arc<HttpAccess>>,
    ) -> std::io::Result<()> {
        let maximum = self.0.options.max_connections_per_address;
        server::serve(&self.0, self.router(access), listener.into(), maximum).await
    }

    /// Returns the questions of the gateway, for lists and notices; `None` without questions.
    pub fn questions(&self) -> Option<&PendingQuestions> {
        self.0.calls.questions()
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
        self.0.calls.answer_question(id, operator, answer).await
    }

    /// Returns the reason why the gateway is not ready: a required server, or that the gateway closes.
    pub fn not_ready(&self) -> Option<String> {
        self.0.not_ready()
    }

    /// Waits until all required servers are ready, which may never be the case. The future can be
    /// dropped.
    pub async fn ready(&self) {
        // Before the first look, so that no change stays unseen.
        let mut events = self.0.servers.shared_host().events();
        while self.not_ready().is_some() {
            if let Err(RecvError::Closed) = events.recv().await {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Stops the servers that not all clients share, after [`Self::close`]. The host of
    /// [`GatewayBuilder::build`] is not stopped. Takes as long as [`Host::shutdown`] of one host.
    /// Without this call, the drop of the gateway kills these servers.
    pub async fn shut_down_private_servers(&self) -> Vec<ShutdownReport> {
        self.0.servers.shut_down_private_hosts().await
    }

    /// Accepts no more requests and connections. Event streams of the modern era end.
    pub fn close(&self) {
        // A second call finds the cell set.
        drop(self.0.closing.set(()));
    }
}

/// Interval of the search for idle sessions, and for expired calls and results.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(10);

/// Shortest interval of the search for idle sessions, for a short idle time.
const MIN_CLEANUP_INTERVAL: Duration = Duration::from_millis(100);

async fn end_idle_sessions(transport: Weak<HttpTransport>, idle: Duration) {
    // Redis forgets what the replica does not keep within the idle time.
    let interval = (idle / 8).clamp(MIN_CLEANUP_INTERVAL, CLEANUP_INTERVAL);
    loop {
        sleep(interval).await;
        let Some(transport) = transport.upgrade() else { return };
        transport.end_idle_sessions();
    }
}

async fn remove_expired(calls: Weak<Calls>) {
    loop {
        sleep(CLEANUP_INTERVAL).await;
        let Some(calls) = calls.upgrade() else { return };
        calls.remove_expired();
    }
}

/// Ends the sessions and the servers that other replicas can own.
async fn end_lost_sessions(transport: Weak<HttpTransport>, replicas: Replicas) {
    loop {
        let lost = replicas.lost().await;
        let Some(transport) = transport.upgrade() else { return };
        transport.end_lost_sessions();
        for key in lost {
            match key {
                OwnedKey::Session(_) => {}
                OwnedKey::Principal(principal) => {
                    transport.gateway.servers.end_principal(&principal);
                }
                OwnedKey::Singletons => transport.gateway.servers.end_singletons(),
            }
        }
    }
}

/// Time between two looks at the sessions of a gateway that closes.
const CLOSING_INTERVAL: Duration = Duration::from_millis(20);

/// Ends the streams for messages that belong to no request when the gateway closes, each when its
/// session has no request in flight: an open stream would delay the end of the gateway.
async fn end_idle_streams(transport: Weak<HttpTransport>, closing: Arc<SetOnce<()>>) {
    closing.wait().await;
    loop {
        let Some(current) = transport.upgrade() else { return };
        current.sessions.end_idle_streams();
        drop(current);
        sleep(CLOSING_INTERVAL).await;
    }
}

/// Gives the sessions up when the gateway closes.
async fn hand_over_sessions(transport: Weak<HttpTransport>, closing: Arc<SetOnce<()>>) {
    closing.wait().await;
    loop {
        // The gateway can be dropped between two looks.
        let Some(current) = transport.upgrade() else { return };
        current.hand_over_inactive().await;
        drop(current);
        sleep(CLOSING_INTERVAL).await;
    }
}

/// Stores the sessions of clients whose sessions with remote servers changed.
async fn store_changed_sessions(transport: Weak<HttpTransport>, changed: Arc<ChangedSessions>) {
    loop {
        let clients = changed.take().await;
        let Some(transport) = transport.upgrade() else { return };
        // A gateway that closes stores each session before it gives the session up.
        if !transport.gateway.closing.initialized() {
            join_all(clients.into_iter().map(|client| transport.store_session_of(client))).await;
        }
    }
}

/// Kills the servers of which all replicas have one process as soon as this replica has no lease: before
/// another replica may start them.
async fn end_singletons_in_time(servers: Weak<Servers>, replicas: Replicas) {
    loop {
        // The lease ends here a fifth of its time earlier than in Redis.
        sleep(replicas.lease_time() / 20).await;
        let Some(servers) = servers.upgrade() else { return };
        if !replicas.has_lease() {
            servers.end_singletons();
        }
    }
}

//! The public API of a gateway.

mod reload;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

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
use crate::metrics::GatewayMetrics;
use crate::offers::Offers;
use crate::options::{ConsoleOptions, GatewayOptions};
use crate::parked_calls::ParkedCalls;
use crate::pending_questions::store::StoreError;
use crate::pending_questions::{PendingQuestions, QuestionId};
use crate::policy::ToolPolicy;
use crate::principal::Principal;
use crate::rate_limits::RateLimits;
use crate::replicas::Replicas;
use crate::response_memory::ResponseMemory;
use crate::router;
use crate::server;
use crate::servers::{PrepareHost, ServersBuilder, ServersContext};
use crate::state::{GatewayState, OptionalServices};
use crate::subscribers::Subscribers;
use crate::subscriptions::Subscriptions;
use crate::tasks::GatewayTasks;
use crate::transport;
use crate::transport::http::{HttpTransport, upkeep};

/// Prepares a gateway: the host must know the gateway's callbacks before its servers start, because
/// the handshake declares them.
#[derive(Clone, Debug)]
pub struct GatewayBuilder {
    options: GatewayOptions,
    rules: ClientRules,
    telemetry: Option<Telemetry>,
    services: OptionalServices,
    replicas: Option<Replicas>,
    questions: Option<PendingQuestions>,
    servers: ServersBuilder,
}

/// What each client may use, and how often.
#[derive(Clone, Debug)]
struct ClientRules {
    policy: ToolPolicy,
    bindings: Bindings,
    rates: Arc<RateLimits>,
}

impl GatewayBuilder {
    /// Creates a builder for a gateway with any number of clients. A request of a server that
    /// belongs to no call of a client is rejected.
    pub fn new(options: GatewayOptions) -> Self {
        Self {
            options,
            rules: ClientRules {
                policy: ToolPolicy::default(),
                bindings: Bindings::default(),
                rates: Arc::new(RateLimits::new(RateConfig::default(), [])),
            },
            telemetry: None,
            services: OptionalServices::default(),
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
    pub fn policy(mut self, policy: ToolPolicy) -> Self {
        self.rules.policy = policy;
        self
    }

    /// Sets the servers and endpoints that each client may use. A client sees nothing of the others: they
    /// are unknown, as names that do not exist. Default: all of them.
    #[must_use]
    pub fn bindings(mut self, bindings: Bindings) -> Self {
        self.rules.bindings = bindings;
        self
    }

    /// Sets the maximum rates of each client. Default: none.
    #[must_use]
    pub fn rate_limits(mut self, rates: RateLimits) -> Self {
        self.rules.rates = Arc::new(rates);
        self
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
    pub fn connections(mut self, service: ConnectionService) -> Self {
        self.services.connections = Some(service);
        self
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
    pub fn console(mut self, options: ConsoleOptions) -> Self {
        self.services.console = Some(options);
        self
    }

    /// Registers the gateway's callbacks with a host that has not started yet, which shares
    /// [`HostConfig::concurrent_starts`](innkeeper_host::config::HostConfig::concurrent_starts) with the
    /// other hosts of the gateway.
    #[must_use]
    pub fn register(&self, builder: HostBuilder) -> HostBuilder {
        self.servers.register(builder)
    }

    /// Creates the gateway of a started host.
    pub fn build(self, host: Host) -> Gateway {
        let options = self.options;
        let endpoints = Arc::new(Endpoints::from_options(&options, self.rules.bindings));
        let tasks = GatewayTasks::default();
        if let Some(replicas) = &self.replicas {
            replicas.start(&tasks);
            tasks.spawn(replicas.clone().share_rates(self.rules.rates.clone()));
        }
        let replica = self.replicas.as_ref().map(Replicas::id);
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
                replicas: self.replicas.clone(),
                tasks: tasks.clone(),
            },
        );
        let offers = Arc::new(Offers::new(endpoints.clone(), servers.clone(), self.rules.policy));
        let calls = Calls::new(CallsContext {
            offers: offers.clone(),
            rate_limits: self.rules.rates.clone(),
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
        let state = Arc::new(GatewayState {
            options,
            offers,
            calls,
            methods,
            endpoints,
            servers,
            responses,
            metrics: GatewayMetrics::new(),
            audit_log,
            rate_limits: self.rules.rates,
            services: self.services,
            replicas: self.replicas,
            tasks,
            closing,
        });
        state.tasks.spawn(remove_expired(Arc::downgrade(&state.calls)));
        Gateway { state, transport: Arc::default() }
    }
}

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
        let endpoint = self.state.endpoints.place_for(&principal, 0);
        let endpoint = endpoint.ok_or(std::io::ErrorKind::NotFound)?;
        transport::connection::serve(&self.state, (principal, endpoint), reader, writer).await
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
        let options = &self.state.options;
        let position = options.connection_servers.iter().position(|name| name == server);
        let position = position.ok_or(std::io::ErrorKind::NotFound)?;
        let endpoint = 1 + options.named_endpoints.len() + position;
        let endpoint = self.state.endpoints.place_for(&principal, endpoint);
        let endpoint = endpoint.ok_or(std::io::ErrorKind::NotFound)?;
        transport::connection::serve(&self.state, (principal, endpoint), reader, writer).await
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
        drop(self.transport.set(Arc::downgrade(&transport)));
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
        let router = router::replica_router(&self.state, &self.transport);
        server::serve(&self.state, router, listener.into(), usize::MAX).await
    }

    /// Gives up what the replica owns, so that other replicas take over at once. Call it after
    /// [`Self::serve_http`] and [`Self::shut_down_private_servers`] have ended: another replica then
    /// starts these servers. Takes at most two seconds for each response of Redis.
    pub async fn leave_replicas(&self) {
        if let Some(replicas) = &self.state.replicas {
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
        let maximum = self.state.options.max_connections_per_address;
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
    /// [`GatewayBuilder::build`] is not stopped. Takes as long as [`Host::shutdown`] of one host.
    /// Without this call, the drop of the gateway kills these servers.
    pub async fn shut_down_private_servers(&self) -> Vec<ShutdownReport> {
        self.state.servers.shut_down_private_hosts().await
    }

    /// Accepts no more requests and connections. Event streams of the modern era end.
    pub fn close(&self) {
        // A second call finds the cell set.
        drop(self.state.closing.set(()));
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

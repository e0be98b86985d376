//! Builds a gateway from its options.

use std::sync::Arc;

use innkeeper_host::config::RateConfig;
use innkeeper_host::{Config, Host, HostBuilder, Telemetry};

use super::{Gateway, remove_expired};
use crate::audit_log::AuditLog;
use crate::bindings::{Bindings, Endpoints};
use crate::calls::{Calls, CallsContext};
use crate::connections::ConnectionService;
use crate::methods::Methods;
use crate::metrics::GatewayMetrics;
use crate::offers::Offers;
use crate::options::{ConsoleOptions, GatewayOptions};
use crate::parked_calls::ParkedCalls;
use crate::pending_questions::PendingQuestions;
use crate::policy::ToolPolicy;
use crate::rate_limits::RateLimits;
use crate::replicas::Replicas;
use crate::response_memory::ResponseMemory;
use crate::servers::{PrepareHost, ServerObservers, ServersBuilder, ServersContext};
use crate::state::{GatewayState, OptionalServices, Traffic};
use crate::subscribers::Subscribers;
use crate::subscriptions::Subscriptions;
use crate::tasks::GatewayTasks;

/// Prepares a gateway: the host must know the gateway's callbacks before its servers start, because
/// the handshake declares them.
#[derive(Clone, Debug)]
pub struct GatewayBuilder {
    options: GatewayOptions,
    rules: ClientRules,
    telemetry: Option<Telemetry>,
    services: OptionalServices,
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
        self.servers.configure(config, self.options.server_limits.max_memory.is_some());
        self
    }

    /// Offers the servers of a configuration that not all clients share. The gateway starts each of them
    /// at its first use by a principal or a session, in a host that `prepare` completes, and stops it
    /// after the last one. A client has at most half of
    /// [`ServerLimits::max_processes`](crate::ServerLimits::max_processes) for them.
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
    pub fn replicas(mut self, replicas: Replicas) -> Self {
        self.services.replicas = Some(replicas);
        self
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
        if let Some(replicas) = &self.services.replicas {
            replicas.start(&tasks);
            tasks.spawn(replicas.clone().share_rates(self.rules.rates.clone()));
        }
        let replica = self.services.replicas.as_ref().map(Replicas::id);
        let parked_calls = Arc::new(ParkedCalls::new(replica));
        let responses = ResponseMemory::new(options.limits.max_response_bytes);
        let subscribers = Arc::new(Subscribers::default());
        let audit_log = Arc::new(AuditLog::default());
        let servers = self.servers.build(
            host,
            ServersContext {
                options: &options,
                endpoints: endpoints.clone(),
                observers: ServerObservers {
                    subscribers: subscribers.clone(),
                    parked_calls: parked_calls.clone(),
                    audit_log: audit_log.clone(),
                },
                replicas: self.services.replicas.clone(),
                tasks: tasks.clone(),
            },
        );
        let offers = Arc::new(Offers::new(endpoints, servers.clone(), self.rules.policy));
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
        let subscriptions = Subscriptions::new(offers.clone(), subscribers, tasks.clone());
        let methods = Methods::new(offers.clone(), calls.clone(), subscriptions, self.telemetry);
        let state = Arc::new(GatewayState {
            options,
            offers,
            calls,
            methods,
            servers,
            traffic: Traffic {
                responses,
                metrics: GatewayMetrics::new(),
                audit_log,
                rate_limits: self.rules.rates,
            },
            services: self.services,
            tasks,
        });
        state.tasks.spawn(remove_expired(Arc::downgrade(&state.calls)));
        Gateway { state, transport: Arc::default() }
    }
}

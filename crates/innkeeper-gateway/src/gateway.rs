//! The public API of a gateway.

mod events;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use innkeeper_host::config::RateConfig;
use innkeeper_host::{
    CallbackCapabilities, Host, HostBuilder, LogLevel, ServerRequest, ServerState,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::SetOnce;
use tokio::time::sleep;

use crate::metrics::GatewayMetrics;
use crate::options::{EndpointOptions, GatewayOptions};
use crate::parked_calls::ParkedCalls;
use crate::policy::ToolPolicy;
use crate::principal::Principal;
use crate::rate_limits::RateLimits;
use crate::router::{self, HttpAccess};
use crate::server;
use crate::sole_client::SoleClient;
use crate::subscribers::Subscribers;
use crate::tasks::GatewayTasks;
use crate::transport;
use crate::transport::http::{HttpTransport, Sessions};
use crate::upstream::{Upstream, View};

/// Prepares a gateway: the host must know the gateway's callbacks before its servers start, because
/// the handshake declares them.
#[derive(Clone, Debug)]
pub struct GatewayBuilder {
    options: GatewayOptions,
    policy: ToolPolicy,
    rates: Arc<RateLimits>,
    sole_client: Option<SoleClient>,
    /// The hosts of the gateway, once it is built.
    upstream: Arc<OnceLock<Weak<Upstream>>>,
}

impl GatewayBuilder {
    /// Creates a builder for a gateway with any number of clients. A request of a server that
    /// belongs to no call of a client is rejected.
    pub fn new(options: GatewayOptions) -> Self {
        Self {
            options,
            policy: ToolPolicy::default(),
            rates: Arc::new(RateLimits::new(RateConfig::default(), [])),
            sole_client: None,
            upstream: Arc::default(),
        }
    }

    /// Creates a builder for a gateway with a single client, which answers every request of the
    /// servers.
    pub fn for_one_client(options: GatewayOptions) -> Self {
        Self { sole_client: Some(SoleClient::default()), ..Self::new(options) }
    }

    /// Sets the tools that each client may use. Default: every tool.
    #[must_use]
    pub fn policy(self, policy: ToolPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Sets the maximum rates of each client. Default: none.
    #[must_use]
    pub fn rate_limits(self, rates: RateLimits) -> Self {
        Self { rates: Arc::new(rates), ..self }
    }

    /// Registers the gateway's callbacks with a host that has not started yet.
    #[must_use]
    pub fn register(&self, builder: HostBuilder) -> HostBuilder {
        let kinds = [
            CallbackCapabilities::sampling_with_tools(),
            CallbackCapabilities::elicitation_with_urls(),
            CallbackCapabilities::roots(),
            CallbackCapabilities::custom(),
        ];
        // Each client has a minimum level of its own.
        let builder = builder.log_level(LogLevel::Debug);
        kinds.iter().fold(builder, |builder, kind| {
            let (sole_client, upstream) = (self.sole_client.clone(), self.upstream.clone());
            builder.callback(kind, move |request: ServerRequest| {
                let sole_client = sole_client.clone();
                let upstream = upstream.get().and_then(Weak::upgrade);
                async move {
                    if let Some(client) = sole_client {
                        return client.respond(request).await;
                    }
                    // Beside the running call, the client whose turn it is has calls that wait for
                    // its input.
                    let running = upstream
                        .and_then(|upstream| upstream.server_use(&request.server).turns.callback());
                    match running {
                        Some(callback) => callback.respond(request).await,
                        None => Err(SoleClient::not_attributed(&request)),
                    }
                }
            })
        })
    }

    /// Creates the gateway of a started host.
    pub fn build(self, host: Host) -> Gateway {
        let Self { options, policy, rates, sole_client, upstream: registered } = self;
        let unnamed = (None, options.endpoint.clone());
        let named = options.named_endpoints.iter().cloned();
        let endpoints: Vec<Endpoint> = std::iter::once(unnamed)
            .chain(named.map(|(name, endpoint)| (Some(name), endpoint)))
            .map(|(name, options)| Endpoint { name, options, is_legacy: false })
            .chain(options.connection_servers.iter().map(|server| Endpoint {
                name: None,
                options: EndpointOptions::for_server(server),
                is_legacy: true,
            }))
            .collect();
        let upstream = Arc::new(Upstream::new(host));
        // A builder that builds two gateways passes requests to the first.
        drop(registered.set(Arc::downgrade(&upstream)));
        let view = Arc::new(View::new(vec![upstream.clone()], endpoints.len()));
        for (index, endpoint) in endpoints.iter().enumerate() {
            view.changed_lists(index, &endpoint.options);
        }
        let inner = Arc::new(GatewayInner {
            options,
            endpoints,
            view,
            subscribers: Arc::default(),
            parked_calls: ParkedCalls::new(),
            metrics: GatewayMetrics::new(),
            sole_client,
            policy,
            rate_limits: rates,
            tasks: GatewayTasks::default(),
            closing: SetOnce::new(),
        });
        inner.tasks.spawn(events::forward_events(Arc::downgrade(&inner), upstream));
        inner.tasks.spawn(end_expired_calls(Arc::downgrade(&inner)));
        Gateway(inner)
    }
}

/// An endpoint: what clients of one address see.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// `None` for `/mcp`.
    pub(crate) name: Option<String>,
    pub(crate) options: EndpointOptions,
    /// Whether clients use the legacy era only: it changes no result of a server of either era.
    pub(crate) is_legacy: bool,
}

/// The servers of a host as one MCP server. Clones share the gateway.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<GatewayInner>);

#[derive(Debug)]
pub(crate) struct GatewayInner {
    pub(crate) options: GatewayOptions,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) view: Arc<View>,
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) parked_calls: ParkedCalls,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) sole_client: Option<SoleClient>,
    pub(crate) policy: ToolPolicy,
    pub(crate) rate_limits: Arc<RateLimits>,
    pub(crate) tasks: GatewayTasks,
    /// Set when the gateway accepts no more requests.
    pub(crate) closing: SetOnce<()>,
}

impl GatewayInner {
    /// Returns the reason why the gateway cannot serve now.
    pub(crate) fn not_ready(&self) -> Option<String> {
        if self.closing.initialized() {
            return Some("the gateway is closing".to_owned());
        }
        let hosts = self.view.upstreams().iter();
        let mut failed =
            hosts.flat_map(|upstream| upstream.host.status()).filter(|(name, status)| {
                self.options.required_servers.iter().any(|required| **required == **name)
                    && status.state != ServerState::Ready
            });
        failed
            .next()
            .map(|(name, status)| format!("required server `{name}` is {}", status.state.as_str()))
    }

    /// Waits until the gateway accepts no more requests.
    pub(crate) async fn drained(&self) {
        self.closing.wait().await;
    }
}

impl Gateway {
    /// Serves one client on a connection with newline-delimited messages, for example stdio or a
    /// Unix socket, until the client closes its output or the connection fails. Requests in flight
    /// then get [`GatewayOptions::drain_timeout`]. Dropping the future ends the connection at once.
    ///
    /// # Errors
    ///
    /// Returns the error of the connection.
    pub async fn serve_connection(
        &self,
        principal: Principal,
        reader: impl AsyncRead + Send + Unpin,
        writer: impl AsyncWrite + Send + Unpin,
    ) -> std::io::Result<()> {
        transport::connection::serve(&self.0, (principal, 0), reader, writer).await
    }

    /// Works like [`Self::serve_connection`], with the items of one server under their own names.
    ///
    /// # Errors
    ///
    /// Returns the error of the connection, or an error of the kind `NotFound` unless the server is
    /// one of [`GatewayOptions::connection_servers`].
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
        transport::connection::serve(&self.0, (principal, endpoint), reader, writer).await
    }

    /// Returns the HTTP routes of the gateway, for an application that nests them in its own.
    ///
    /// The access checks apply to the routes for MCP.
    pub fn router(&self, access: HttpAccess) -> axum::Router {
        let transport = HttpTransport {
            gateway: self.0.clone(),
            sessions: Sessions::new(self.0.options.max_sessions),
        };
        let transport = Arc::new(transport);
        self.0.tasks.spawn(end_idle_sessions(Arc::downgrade(&transport)));
        router::router(transport, access)
    }

    /// Serves HTTP on a listener until [`Gateway::close`], then for at most
    /// [`GatewayOptions::drain_timeout`] the requests in flight.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener cannot be used.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        access: HttpAccess,
    ) -> std::io::Result<()> {
        server::serve(&self.0, self.router(access), listener).await
    }

    /// Accepts no more requests and connections. Event streams of the modern era end.
    pub fn close(&self) {
        // A second call finds the cell set.
        drop(self.0.closing.set(()));
    }
}

/// Interval of the search for idle sessions and expired parked calls.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(10);

async fn end_idle_sessions(transport: Weak<HttpTransport>) {
    loop {
        sleep(CLEANUP_INTERVAL).await;
        let Some(transport) = transport.upgrade() else { return };
        transport.end_idle_sessions();
    }
}

async fn end_expired_calls(gateway: Weak<GatewayInner>) {
    loop {
        sleep(CLEANUP_INTERVAL).await;
        let Some(gateway) = gateway.upgrade() else { return };
        gateway.parked_calls.remove_expired();
    }
}

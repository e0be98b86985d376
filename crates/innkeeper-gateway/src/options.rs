//! The options of a gateway and of its endpoints.

use std::time::Duration;

use crate::item_names::ItemNames;
use crate::principal::Principal;
use innkeeper_host::config::{EndpointConfig, LargeResults, NameStyle, ServeConfig, ToolFilter};

/// The options of one endpoint.
#[derive(Clone, Debug, Default)]
pub struct EndpointOptions {
    /// How clients name tools and prompts.
    pub names: NameStyle,
    /// The servers of the endpoint. Default: all servers.
    pub servers: Option<Vec<String>>,
    /// The tools of the endpoint, by any of their names. Default: all tools.
    pub tools: ToolFilter,
    /// Whether clients get a search in place of the tools. Default: false.
    pub search: bool,
    /// The tools that are listed beside the search, by name or pattern. Default: none.
    pub pinned: Vec<String>,
    /// Which results of tools are stored as resources. Default: none.
    pub large_results: Option<LargeResults>,
}

impl EndpointOptions {
    /// Returns the options of an endpoint with one server under its own names.
    pub(crate) fn for_server(name: &str) -> Self {
        let servers = Some(vec![name.to_owned()]);
        Self { names: NameStyle::Flat, servers, ..Self::default() }
    }

    pub(crate) fn has_server(&self, name: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.iter().any(|server| server == name))
    }

    pub(crate) fn has_tool(&self, names: &ItemNames) -> bool {
        names.are_permitted_by(&self.tools)
    }

    pub(crate) fn is_pinned(&self, names: &ItemNames) -> bool {
        self.pinned.iter().any(|pattern| names.match_grant(pattern))
    }
}

impl From<&EndpointConfig> for EndpointOptions {
    fn from(config: &EndpointConfig) -> Self {
        let EndpointConfig { names, servers, tools, search, pinned, large_results } = config;
        Self {
            names: *names,
            servers: servers.clone(),
            tools: tools.clone(),
            search: *search,
            pinned: pinned.clone(),
            large_results: *large_results,
        }
    }
}

/// The options of the console.
#[derive(Clone, Debug, Default)]
pub struct ConsoleOptions {
    /// The principals that may use the console, which shows the data of all clients. Without
    /// authentication on a loopback address, the local user may always use it. Default: none.
    pub operators: Vec<Principal>,
}

impl ConsoleOptions {
    /// Returns the options of a configuration; `None` if the configuration turns the console off.
    pub fn from_config(config: &ServeConfig) -> Option<Self> {
        let operators = config.console.operators.iter().map(|name| Principal::new(name.as_str()));
        config.console.enabled.then(|| Self { operators: operators.collect() })
    }
}

/// The options of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The endpoint at `/mcp`, over stdio and over the Unix socket.
    pub endpoint: EndpointOptions,
    /// The endpoints at `/mcp/NAME`.
    pub named_endpoints: Vec<(String, EndpointOptions)>,
    /// The servers of [`Gateway::serve_server_connection`](crate::Gateway::serve_server_connection).
    /// Default: none.
    pub connection_servers: Vec<String>,
    /// The servers without which the gateway is not ready. Default: none.
    pub required_servers: Vec<String>,
    /// The limits of requests, connections and sessions.
    pub limits: ClientLimits,
    /// The limits of the server processes.
    pub server_limits: ServerLimits,
    /// Time without a request or an open stream after which a session ends, and the servers of a
    /// principal without one. Default: 1 hour.
    pub idle_session: Duration,
    /// Time for requests in flight after the end of the input of a connection, and at a shutdown.
    /// Default: 10 s.
    pub drain_timeout: Duration,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            endpoint: EndpointOptions::default(),
            named_endpoints: Vec::new(),
            connection_servers: Vec::new(),
            required_servers: Vec::new(),
            limits: ClientLimits::default(),
            server_limits: ServerLimits::default(),
            idle_session: Duration::from_hours(1),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// What the clients of a gateway may use.
#[derive(Clone, Debug)]
pub struct ClientLimits {
    /// Maximum size in bytes of a request body. Default: 8 MiB, the limit of the host for a request.
    pub max_body_bytes: usize,
    /// Maximum memory in bytes of the responses that all clients together have not read. With
    /// authentication, one client has at most half of it. Default: 512 MiB.
    pub max_response_bytes: usize,
    /// Maximum size in bytes of the head of a request. Default: 64 KiB.
    pub max_head_bytes: usize,
    /// Maximum time for a client to send a request. Default: 30 s.
    pub request_time: Duration,
    /// Maximum number of sessions. Default: 100,000.
    pub max_sessions: usize,
    /// Maximum number of open connections of [`Gateway::serve_http`](crate::Gateway::serve_http), less
    /// if the process may open fewer files. With authentication, one client has at most half of them.
    /// Default: 10,000.
    pub max_connections: usize,
    /// Maximum number of open connections of one remote address, with an IPv6 network of 64 bits as
    /// one address. Loopback addresses and Unix sockets have no maximum. Default: 256.
    pub max_connections_per_address: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            max_body_bytes: 8 << 20,
            max_response_bytes: 512 << 20,
            max_head_bytes: 64 << 10,
            request_time: Duration::from_secs(30),
            max_sessions: 100_000,
            max_connections: 10_000,
            max_connections_per_address: 256,
        }
    }
}

/// What the servers of a gateway may use.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Maximum number of server processes of all clients together. One principal has at most half of what
    /// the servers of all clients leave, except for the local user. Default: 256.
    pub max_processes: usize,
    /// Maximum memory of all server processes together, in bytes; only on Linux. Default: none.
    pub max_memory: Option<u64>,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { max_processes: 256, max_memory: None }
    }
}

impl GatewayOptions {
    /// Returns the options of a configuration.
    pub fn from_config(config: &ServeConfig) -> Self {
        let endpoint = EndpointOptions { names: config.names, ..EndpointOptions::default() };
        let named = config.endpoints.iter();
        let limits = &config.limits;
        Self {
            endpoint,
            named_endpoints: named.map(|(name, options)| (name.clone(), options.into())).collect(),
            limits: ClientLimits {
                max_body_bytes: to_usize(limits.body_bytes),
                max_head_bytes: to_usize(limits.header_bytes),
                request_time: limits.request_time,
                max_sessions: to_usize(limits.sessions.into()),
                max_connections_per_address: to_usize(limits.connections_per_address.into()),
                ..ClientLimits::default()
            },
            server_limits: ServerLimits {
                max_processes: to_usize(limits.processes.into()),
                max_memory: limits.memory,
            },
            idle_session: limits.idle_session_time,
            ..Self::default()
        }
    }
}

fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

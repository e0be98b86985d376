//! Settings of one server with all defaults applied.

use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;
use serde::Serialize;

use crate::diagnostic::Position;
use crate::secret::{ExpandedValue, Secret};
use crate::settings::extra_keys::ExtraKeys;
use crate::settings::filter::ToolFilter;
use crate::settings::guard::GuardModes;
use crate::settings::inherited_environment::InheritedEnvironment;
use crate::settings::seconds;

/// The launch or connection settings, limits and permissions of one server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerConfig {
    /// Name, as written in the file.
    pub name: String,
    /// Key of the entry as written in the file, such as `mcpServers.fs`.
    pub key: String,
    /// Position of the entry.
    pub position: Position,
    /// Transport of the server.
    #[serde(flatten)]
    pub transport: TransportConfig,
    /// Whether the start of the host fails without this server. Default: true.
    pub required: bool,
    /// Servers that must be ready before this server starts.
    pub dependencies: Vec<String>,
    /// Maximum time of a call without a response or progress. Default: 30 s.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// Maximum time for start and handshake. Default: 30 s.
    #[serde(with = "seconds")]
    pub init_timeout: Duration,
    /// Maximum time for the server to exit on its own. Default: 10 s.
    #[serde(with = "seconds")]
    pub shutdown_timeout: Duration,
    /// Maximum time of a call, regardless of progress. Default: 10 minutes.
    #[serde(with = "seconds")]
    pub max_total_timeout: Duration,
    /// Maximum number of concurrent calls. Default: 64.
    pub max_concurrent: usize,
    /// Number of consecutive timeouts after which the server is unavailable. Default: 1.
    pub unavailable_after_timeouts: u32,
    /// The variables of the host that the child inherits. Default: the standard list.
    pub inherit_env: InheritedEnvironment,
    /// Filter for the server's tools. Default: all tools.
    pub tools: ToolFilter,
    /// Restart policy after a failure. Default: never.
    pub restart: RestartPolicy,
    /// Retry policy for requests that provably did not run.
    pub retry: RetryPolicy,
    /// Cache of resources and prompts.
    pub cache: CacheConfig,
    /// Resource limits of the process. Default: no limits.
    pub limits: ResourceLimits,
    /// Guard modes for the server's traffic. Default: off.
    pub guard: GuardModes,
    /// Sandbox of the process. Default: no sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxConfig>,
    /// Clients of `innkeeper serve` that share one process of the server. Default: all clients.
    pub share: Share,
    /// Time without a call after which `innkeeper serve` stops the process. Default: none.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds::serialize_option")]
    pub idle_timeout: Option<Duration>,
    /// Program with arguments that prints additional headers for a remote server. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers_helper: Vec<ExpandedValue>,
    /// OAuth settings of a remote server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthConfig>,
    /// Unknown keys.
    #[serde(skip_serializing_if = "ExtraKeys::is_empty")]
    pub extra: ExtraKeys,
}

/// The transport of a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum TransportConfig {
    /// A child process with MCP messages on standard input and output.
    Stdio {
        /// Program, looked up in the child's `PATH`.
        command: ExpandedValue,
        /// Arguments, passed one by one without a shell.
        args: Vec<ExpandedValue>,
        /// Environment variables for the child: `envFile`, overridden by `env`.
        env: IndexMap<String, Secret>,
        /// Variables removed from the child's environment, even if inherited (`null` in `env`).
        #[serde(skip_serializing_if = "Vec::is_empty")]
        unset_env: Vec<String>,
        /// Working directory, relative to the file's directory. Default: the host's working
        /// directory.
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<ExpandedValue<PathBuf>>,
    },
    /// Streamable HTTP.
    Http {
        /// Endpoint, `http://` or `https://`.
        url: ExpandedValue,
        /// Headers of every request.
        headers: IndexMap<String, Secret>,
    },
    /// The deprecated HTTP transport with server-sent events.
    Sse {
        /// URL of the event stream, `http://` or `https://`.
        url: ExpandedValue,
        /// Headers of every request.
        headers: IndexMap<String, Secret>,
    },
    /// A WebSocket.
    WebSocket {
        /// URL, `ws://` or `wss://`.
        url: ExpandedValue,
        /// Headers of the opening request.
        headers: IndexMap<String, Secret>,
    },
    /// A stream of the application to a server in its own process.
    #[serde(rename = "in-process")]
    InProcess,
}

impl TransportConfig {
    /// Returns the value of `type` in the file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
            Self::WebSocket { .. } => "websocket",
            Self::InProcess => "in-process",
        }
    }
}

/// The restart policy after a failure of the process, of its output or of the connection.
///
/// A timeout is not a failure, because the server may still be working.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RestartPolicy {
    /// The configuration has no `restart`: the server stays down until the application restarts it,
    /// or until the gateway of `innkeeper serve` brings it back.
    #[default]
    Unset,
    /// The server stays down until the application restarts it.
    Never,
    /// The host restarts the server with unchanged settings, after 1 s, 2 s, 4 s and so on up to 30
    /// s, ±10 % jitter.
    OnFailure {
        /// Maximum number of restarts; the count resets after the server has been ready for one
        /// minute.
        max: u32,
    },
}

/// The retry policy for requests that provably did not run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicy {
    /// Maximum number of retries of a request. Default: 3.
    pub max: u32,
    /// Delay before the first retry; each later delay is twice as long. Default: 1 s.
    #[serde(with = "seconds")]
    pub initial_delay: Duration,
    /// Maximum delay. Default: 30 s.
    #[serde(with = "seconds")]
    pub max_delay: Duration,
}

/// The limits of the cache for a server's results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheConfig {
    /// Lifetime of an entry; zero disables the cache. Default: 5 minutes.
    #[serde(with = "seconds")]
    pub ttl: Duration,
    /// Maximum number of entries. Default: 1,000.
    pub max_entries: usize,
    /// Maximum total size of the entries, in bytes. Default: 16 MiB.
    pub max_bytes: u64,
}

/// The resource limits of a server process; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLimits {
    /// Memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Total CPU time, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// Number of open files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Size of a written file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
    /// Number of processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

/// The sandbox of a server process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxConfig {
    /// Directories and files with read access.
    pub read: Vec<String>,
    /// Directories and files with read and write access.
    pub write: Vec<String>,
    /// Whether the process may open network connections. Default: false.
    pub network: bool,
}

/// The clients of a gateway (`innkeeper serve`) that share one process of a server.
///
/// A server can depend only on a server with the same or an earlier variant: the order is from many
/// clients to few, and the process of all replicas comes after those of each replica, which start
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Share {
    /// All clients share one process.
    #[default]
    Process,
    /// All clients of all replicas share one process.
    Singleton,
    /// The clients of one principal share one process.
    Principal,
    /// Each session has its own process.
    Session,
}

impl Share {
    /// Returns the value of `share` in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Singleton => "singleton",
            Self::Principal => "principal",
            Self::Session => "session",
        }
    }
}

/// The OAuth settings of a remote server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OauthConfig {
    /// Identifier of a registered client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<ExpandedValue>,
    /// Client secret, for confidential clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// Private key for client authentication in place of a secret, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<Secret>,
    /// Issuer identifier of the authorization server where the client is registered; no other
    /// authorization server gets the secret. Default: the first authorization server used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<ExpandedValue>,
    /// Scopes to request. Default: the scopes that the server names.
    pub scopes: Vec<String>,
    /// URL of the client ID metadata document, for authorization servers that accept the document
    /// in place of a registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<ExpandedValue>,
    /// Redirect URI. Default: the address where the application listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<ExpandedValue>,
    /// Grant type. Default: authorization code.
    pub grant: OauthGrant,
    /// Identity provider in place of a grant. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enterprise: Option<EnterpriseConfig>,
}

impl OauthConfig {
    /// Returns all secrets of these settings.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let client_secrets = [&self.client_secret, &self.private_key].into_iter().flatten();
        let enterprise_secrets = self.enterprise.iter().flat_map(|enterprise| {
            let token = match &enterprise.id_token {
                IdToken::Value(token) => Some(token),
                IdToken::File(_) => None,
            };
            enterprise.client_secret.iter().chain(token)
        });
        client_secrets.chain(enterprise_secrets)
    }
}

/// The identity provider of an enterprise (enterprise-managed authorization).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnterpriseConfig {
    /// Issuer identifier, as in the provider's metadata.
    pub issuer: ExpandedValue,
    /// Token exchange endpoint.
    pub token_endpoint: ExpandedValue,
    /// Client identifier at the identity provider.
    pub client_id: ExpandedValue,
    /// Client secret at the identity provider, for confidential clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// ID token of the user.
    #[serde(flatten)]
    pub id_token: IdToken,
}

/// The source of a user's ID token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum IdToken {
    /// The token itself.
    #[serde(rename = "idToken")]
    Value(Secret),
    /// A file with the token, read at every sign-in.
    #[serde(rename = "idTokenFile")]
    File(ExpandedValue<PathBuf>),
}

/// The OAuth grant type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OauthGrant {
    /// Authorization code: a user signs in with a browser.
    #[default]
    AuthorizationCode,
    /// Client credentials: the client itself has access.
    ClientCredentials,
}

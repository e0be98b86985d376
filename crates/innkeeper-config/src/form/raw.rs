//! Types of the file as its JSON Schema describes it, before checks and expansion.
//!
//! The schema is generated from these types, and the documentation comments are its descriptions.
//! Every key is optional: an entry without its invalid keys must stay readable, so that one run
//! reports its other problems too.

mod serve;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::form::raw_value::ByteSize;
pub(crate) use crate::form::raw_value::{EnvValue, InheritEnv, StringElement};
pub(crate) use serve::{
    ApiKey, Approval, CallRate, Console, Endpoint, NameStyle, RequestRate, Serve, ServeAuth,
    ServeLimits, ServeOauth, TokenAlgorithm,
};

/// Top-level keys of a file.
pub(crate) const TOP_LEVEL_KEYS: &[&str] = &["$schema", "servers", "mcpServers", "host", "serve"];

/// Maximum duration in seconds, one day: larger numbers are milliseconds by mistake.
const MAX_SECONDS: f64 = 86_400.0;

/// Minimum duration in seconds, one millisecond: no server responds faster.
const MIN_SECONDS: f64 = 0.001;

/// The configuration of an MCP host: the servers to start and their permissions.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase", title = "mcp.json")]
#[schemars(extend("anyOf" = [{"required": ["servers"]}, {"required": ["mcpServers"]}]))]
#[expect(dead_code, reason = "only the shape is used, for the schema of a whole file")]
pub(crate) struct File {
    /// URL of this schema, for editors.
    #[schemars(rename = "$schema")]
    schema: Option<String>,
    /// Servers by name: at most 128 visible characters.
    #[schemars(extend("propertyNames" = {"pattern": "^[^\\u0000-\\u001F\\u007F-\\u009F\\u2028\\u2029]{1,128}$"}))]
    servers: Option<IndexMap<String, Server>>,
    /// Alias of `servers`, as in other hosts.
    #[schemars(extend("propertyNames" = {"pattern": "^[^\\u0000-\\u001F\\u007F-\\u009F\\u2028\\u2029]{1,128}$"}))]
    mcp_servers: Option<IndexMap<String, Server>>,
    /// Host settings and defaults for servers.
    host: Option<Host>,
    /// Settings of `innkeeper serve`.
    serve: Option<Serve>,
}

/// One MCP server: launch or connection settings and permissions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Server {
    /// Transport. Default: `stdio` with a `command`, `http` with a `url`. An application connects
    /// servers of the type `in-process`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<Transport>,
    /// stdio: program to start, looked up in the child's `PATH`.
    pub(crate) command: Option<String>,
    /// stdio: arguments of the program, passed one by one without a shell.
    pub(crate) args: Option<Vec<StringElement>>,
    /// stdio: working directory of the program, relative to the file's directory.
    pub(crate) cwd: Option<String>,
    /// stdio: environment variables of the program; `null` removes a variable.
    pub(crate) env: Option<IndexMap<String, EnvValue>>,
    /// stdio: file of `NAME=value` lines; `env` takes precedence.
    pub(crate) env_file: Option<String>,
    /// stdio: the variables of the host that the program inherits: `false` for the standard list,
    /// `true` for all, `"strict"` for a shorter list without proxies and certificates.
    #[schemars(extend("default" = false))]
    pub(crate) inherit_env: Option<InheritEnv>,
    /// Remote: URL of the server.
    pub(crate) url: Option<String>,
    /// Remote: headers of every request.
    pub(crate) headers: Option<IndexMap<String, String>>,
    /// Remote: a program that prints additional headers as a JSON object. A string is the program;
    /// a list is the program with its arguments. The program runs without a shell.
    pub(crate) headers_helper: Option<HeadersHelper>,
    /// Remote: OAuth settings.
    pub(crate) oauth: Option<Oauth>,
    /// Whether the host ignores this server.
    #[schemars(extend("default" = false))]
    pub(crate) disabled: Option<bool>,
    /// Whether the start of the host fails without this server.
    #[schemars(extend("default" = true))]
    pub(crate) required: Option<bool>,
    /// Servers that must be ready before this server starts.
    pub(crate) dependencies: Option<Vec<StringElement>>,
    /// Filter for the server's tools.
    pub(crate) tools: Option<Tools>,
    /// Settings with defaults in `host`.
    #[serde(flatten)]
    pub(crate) shared: SharedSettings,
}

/// Host settings; every other key is the default for servers without that key.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Host {
    /// Maximum seconds for the start of all servers together.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 60))]
    pub(crate) start_timeout: Option<f64>,
    /// Maximum seconds for a package runner to download a server before the start.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 300))]
    pub(crate) install_timeout: Option<f64>,
    /// Maximum number of servers that start at the same time.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 8))]
    pub(crate) concurrent_starts: Option<u32>,
    /// Whether a tool may be called without the server name if the tool name is unique.
    #[schemars(extend("default" = false))]
    pub(crate) allow_bare_names: Option<bool>,
    /// The variables of the host that programs inherit.
    #[schemars(extend("default" = false))]
    pub(crate) inherit_env: Option<InheritEnv>,
    /// Defaults for servers.
    #[serde(flatten)]
    pub(crate) shared: SharedSettings,
}

/// Server settings with defaults in `host`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SharedSettings {
    /// Maximum seconds of a call without a response or progress.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 30))]
    pub(crate) timeout: Option<f64>,
    /// Maximum seconds for start and handshake.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 30))]
    pub(crate) init_timeout: Option<f64>,
    /// Maximum seconds for the server to exit on its own.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 10))]
    pub(crate) shutdown_timeout: Option<f64>,
    /// Maximum seconds of a call, regardless of progress.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 600))]
    pub(crate) max_total_timeout: Option<f64>,
    /// Maximum number of concurrent calls.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 64))]
    pub(crate) max_concurrent: Option<u32>,
    /// Number of consecutive timeouts after which the server is unavailable.
    #[schemars(range(min = 1, max = 1_000), extend("default" = 1))]
    pub(crate) unavailable_after_timeouts: Option<u32>,
    /// Restart policy after a failure.
    pub(crate) restart: Option<Restart>,
    /// Retry policy for requests that provably did not run.
    pub(crate) retry: Option<Retry>,
    /// Cache of resources and prompts.
    pub(crate) cache: Option<Cache>,
    /// Resource limits of the process.
    pub(crate) limits: Option<Limits>,
    /// Guard: content to scan and the action on findings.
    pub(crate) guard: Option<Guard>,
    /// Sandbox of the process.
    pub(crate) sandbox: Option<Sandbox>,
    /// Clients of `innkeeper serve` that share one process of the server. Only `innkeeper serve`
    /// reads this key.
    #[schemars(extend("default" = "process"))]
    pub(crate) share: Option<ShareScope>,
    /// Seconds without a call after which `innkeeper serve` stops the process; the next call starts
    /// the server again. Only `innkeeper serve` reads this key.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS))]
    pub(crate) idle_timeout: Option<f64>,
}

/// Clients that share one process: all clients, all clients of all replicas, the clients of one
/// principal, or one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ShareScope {
    Process,
    Singleton,
    Principal,
    Session,
}

/// Transport of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Transport {
    Stdio,
    Http,
    Sse,
    #[serde(rename = "websocket")]
    WebSocket,
    #[serde(rename = "in-process")]
    InProcess,
}

impl Transport {
    /// Returns the name of the transport in the file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
            Self::InProcess => "in-process",
        }
    }
}

/// Lists of tool names; `*` matches any sequence of characters.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tools {
    /// Allowed tools. Default: all tools.
    pub(crate) allow: Option<Vec<StringElement>>,
    /// Denied tools, even if `allow` matches.
    pub(crate) deny: Option<Vec<StringElement>>,
    /// Patterns that no string argument may match, by tool name; `*` works in names and patterns.
    pub(crate) deny_arguments: Option<IndexMap<String, Vec<StringElement>>>,
    /// Tools whose calls a chat runs without a question; `*` works in names.
    pub(crate) approve: Option<Vec<StringElement>>,
    /// Tools whose calls a chat runs without a question if one of the rules matches: a pattern for
    /// the whole value of each argument of the call. `*` works in names of tools and in patterns.
    pub(crate) approve_arguments: Option<IndexMap<String, Vec<IndexMap<String, StringElement>>>>,
    /// Tools whose calls a chat always asks about, even if `approve` matches.
    pub(crate) ask: Option<Vec<StringElement>>,
    /// Maximum seconds of a call without a response or progress, by tool name, in place of
    /// `timeout`; `*` works in names, and the first name that matches counts.
    pub(crate) timeouts: Option<IndexMap<String, Seconds>>,
}

/// A number of seconds.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Seconds(#[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS))] pub(crate) f64);

/// Restart policy after a failure.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Restart {
    /// The server stays down until the application restarts it.
    Never,
    /// The host restarts the server, at most `max` times.
    OnFailure {
        /// Maximum number of restarts; the count resets after the server has been ready for one
        /// minute.
        #[schemars(range(min = 1, max = 100))]
        max: u32,
    },
}

/// Retry policy for requests that provably did not run.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Retry {
    /// Maximum number of retries of a request.
    #[schemars(range(min = 0, max = 10), extend("default" = 3))]
    pub(crate) max: Option<u32>,
    /// Seconds before the first retry; each later delay is twice as long.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 1))]
    pub(crate) initial_delay: Option<f64>,
    /// Maximum delay in seconds.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 30))]
    pub(crate) max_delay: Option<f64>,
}

/// Limits of the cache for a server's results.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cache {
    /// Lifetime of an entry in seconds; 0 disables the cache.
    #[schemars(range(min = 0.0, max = MAX_SECONDS), extend("default" = 300))]
    pub(crate) ttl: Option<f64>,
    /// Maximum number of entries.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = 1000))]
    pub(crate) max_entries: Option<u32>,
    /// Maximum total size: bytes, or a number with `KiB`, `MiB`, `GiB`, `kB`, `MB` or `GB`.
    #[schemars(extend("default" = 16_777_216))]
    pub(crate) max_bytes: Option<ByteSize>,
}

/// Resource limits of a server process; an absent key means no limit.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Limits {
    /// Memory: bytes, or a number with `KiB`, `MiB`, `GiB`, `kB`, `MB` or `GB`.
    pub(crate) memory: Option<ByteSize>,
    /// Total CPU time in seconds.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub(crate) cpu_seconds: Option<u32>,
    /// Maximum number of open files.
    #[schemars(range(min = 16, max = 1_048_576))]
    pub(crate) open_files: Option<u32>,
    /// Maximum size of a written file: bytes, or a number with `KiB`, `MiB`, `GiB`, `kB`, `MB` or
    /// `GB`.
    pub(crate) file_size: Option<ByteSize>,
    /// Maximum number of processes.
    #[schemars(range(min = 1, max = 32_768))]
    pub(crate) processes: Option<u32>,
}

/// Sandbox of a server process.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Sandbox {
    /// Directories and files with read access.
    pub(crate) read: Option<Vec<StringElement>>,
    /// Directories and files with read and write access.
    pub(crate) write: Option<Vec<StringElement>>,
    /// Whether the process may open network connections.
    #[schemars(extend("default" = false))]
    pub(crate) network: Option<bool>,
}

/// Action on guard findings: one mode for all content, or one for each kind.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
// A misspelled key must be an error, because the content would stay unguarded.
#[serde(untagged, deny_unknown_fields)]
#[schemars(inline)]
pub(crate) enum Guard {
    /// The same mode for all content.
    All(GuardMode),
    /// A mode for each kind of content; an absent key takes the mode of `host`.
    Each {
        /// Definitions of tools, prompts and resources and instructions, on every read.
        definitions: Option<GuardMode>,
        /// Tool arguments, before they are sent.
        arguments: Option<GuardMode>,
        /// Results of tools, prompts and resources, before the application receives them.
        results: Option<GuardMode>,
    },
}

/// `off` does not scan, `flag` reports findings, `refuse` reports findings and withholds the
/// content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum GuardMode {
    Off,
    Flag,
    Refuse,
}

/// A program that prints headers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum HeadersHelper {
    /// The program alone.
    Program(String),
    /// The program and its arguments.
    CommandLine(Vec<StringElement>),
}

/// OAuth settings of a remote server.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Oauth {
    /// Identifier of a registered client.
    pub(crate) client_id: Option<String>,
    /// Client secret, for confidential clients.
    pub(crate) client_secret: Option<String>,
    /// Private key for client authentication in place of a secret, in PEM: P-256, Ed25519 or RSA.
    /// Only for the grant `client_credentials`.
    pub(crate) private_key: Option<String>,
    /// Issuer identifier of the authorization server where the client is registered; no other
    /// authorization server gets the secret. Default: the first authorization server used.
    pub(crate) issuer: Option<String>,
    /// Scopes to request. Default: the scopes that the server names.
    pub(crate) scopes: Option<Vec<StringElement>>,
    /// URL of the client ID metadata document, `https://`, for authorization servers that accept
    /// the document in place of a registration.
    pub(crate) client_metadata_url: Option<String>,
    /// Redirect URI. Default: the address where the application listens.
    pub(crate) redirect_uri: Option<String>,
    /// Grant type.
    pub(crate) grant: Option<Grant>,
    /// Identity provider of an enterprise, in place of a grant.
    pub(crate) enterprise: Option<Enterprise>,
}

/// Identity provider of an enterprise (enterprise-managed authorization).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Enterprise {
    /// Issuer identifier of the identity provider, as in its metadata.
    pub(crate) issuer: Option<String>,
    /// Token exchange endpoint, `https://`, or `http://` on this machine.
    pub(crate) token_endpoint: Option<String>,
    /// Client identifier at the identity provider.
    pub(crate) client_id: Option<String>,
    /// Client secret at the identity provider, for confidential clients.
    pub(crate) client_secret: Option<String>,
    /// ID token of the user.
    pub(crate) id_token: Option<String>,
    /// File with the ID token of the user, read at every sign-in; relative to the file's directory.
    pub(crate) id_token_file: Option<String>,
}

/// Grant type: consent of a user, or client credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Grant {
    AuthorizationCode,
    ClientCredentials,
}

/// Returns the valid strings of a list.
pub(crate) fn strings(list: Option<Vec<StringElement>>) -> Vec<String> {
    list.into_iter().flatten().filter_map(|StringElement(text)| text).collect()
}

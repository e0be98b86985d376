//! One server's settings as the host uses them, every default filled in.

use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;
use serde::Serialize;

use super::filter::ToolFilter;
use super::guard::GuardModes;
use super::kept::Kept;
use super::problem::Position;
use super::seconds;
use super::secret::{Expanded, Secret};

/// How to start one server, reach it, and what it may use.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerConfig {
    /// The name, as it stands in the file.
    pub name: String,
    /// The entry's key as it stands in the file, such as `mcpServers.fs`.
    pub key: String,
    /// Where the entry stands.
    pub position: Position,
    /// How the server is reached.
    #[serde(flatten)]
    pub transport: TransportConfig,
    /// Whether the host refuses to start without it. Default: true.
    pub required: bool,
    /// The servers that must be ready before this one is started.
    pub dependencies: Vec<String>,
    /// How long one call may go without an answer or progress. Default: 30 s.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// How long start and handshake may take. Default: 30 s.
    #[serde(with = "seconds")]
    pub init_timeout: Duration,
    /// How long the server may take to stop by itself. Default: 10 s.
    #[serde(with = "seconds")]
    pub shutdown_timeout: Duration,
    /// How long one call may take however much progress it reports. Default: 10 minutes.
    #[serde(with = "seconds")]
    pub max_total_timeout: Duration,
    /// How many calls may be under way at once. Default: 64.
    pub max_concurrent: usize,
    /// After how many time-outs in a row the server counts as unavailable. Default: 1.
    pub unavailable_after_timeouts: u32,
    /// Whether the child gets the whole environment and not only the short list. Default: false.
    pub inherit_env: bool,
    /// Which of its tools are offered. Default: all.
    pub tools: ToolFilter,
    /// Whether it is started again after a failure. Default: never.
    pub restart: Restart,
    /// How requests that provably did not run are repeated.
    pub retry: Retry,
    /// How long resources and prompts are kept.
    pub cache: Cache,
    /// What the process may use. Default: no limits.
    pub limits: Limits,
    /// What of its traffic is looked at for attacks. Default: nothing.
    pub guard: GuardModes,
    /// What the process may touch. Default: no sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// The program that prints further headers for a remote server, and its arguments. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers_helper: Vec<Expanded>,
    /// How to sign in at a remote server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<Oauth>,
    /// Keys that have no meaning here, kept as they are.
    #[serde(skip_serializing_if = "Kept::is_empty")]
    pub extra: Kept,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum TransportConfig {
    /// A child process that speaks over its standard input and output.
    Stdio {
        /// The program, looked up in the child's `PATH`.
        command: Expanded,
        /// Its arguments, handed over one by one and never through a shell.
        args: Vec<Expanded>,
        /// Variables for the child: `envFile` first, `env` over it.
        env: IndexMap<String, Secret>,
        /// Variables the child must not have, even where it would inherit them (`null` in `env`).
        #[serde(skip_serializing_if = "Vec::is_empty")]
        unset_env: Vec<String>,
        /// Where it runs; a relative directory starts at the file's. Default: the host's own.
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<Expanded<PathBuf>>,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint, `http://` or `https://`.
        url: Expanded,
        /// Headers sent with every request.
        headers: IndexMap<String, Secret>,
    },
    /// The older HTTP with server-sent events.
    Sse {
        /// The event stream's address, `http://` or `https://`.
        url: Expanded,
        /// Headers sent with every request.
        headers: IndexMap<String, Secret>,
    },
    /// A WebSocket.
    WebSocket {
        /// The address, `ws://` or `wss://`.
        url: Expanded,
        /// Headers of the opening request.
        headers: IndexMap<String, Secret>,
    },
}

impl TransportConfig {
    /// The name that `type` has in the file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
            Self::WebSocket { .. } => "websocket",
        }
    }
}

/// Whether a server is started again after it failed: its process ended, or its output or the
/// connection to it. One that does not answer in time has not failed; it may still be at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Restart {
    /// It stays down until the application asks for it.
    #[default]
    Never,
    /// It is started again with the settings it had, after 1 s, 2 s, 4 s and so on up to 30 s, give
    /// or take a tenth.
    OnFailure {
        /// The most restarts. Once it has been ready for a minute, they are counted anew.
        max: u32,
    },
}

/// How a request that provably did not run is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// How many times a request is sent again. Default: 3.
    pub max: u32,
    /// The first pause; each next one is twice as long. Default: 1 s.
    #[serde(with = "seconds")]
    pub initial_delay: Duration,
    /// The longest pause. Default: 30 s.
    #[serde(with = "seconds")]
    pub max_delay: Duration,
}

/// How long and how much of what a server answered is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cache {
    /// How long an entry is good for; zero keeps nothing. Default: 5 minutes.
    #[serde(with = "seconds")]
    pub ttl: Duration,
    /// The number of entries. Default: 1,000.
    pub max_entries: usize,
    /// Their size together, in bytes. Default: 16 MiB.
    pub max_bytes: u64,
}

/// What one server process may use; what is absent is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Processor time over the whole life, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// Open files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// The longest file it may write, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
    /// Processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

/// What one server process may touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sandbox {
    /// Directories and files it may read.
    pub read: Vec<String>,
    /// Directories and files it may read and write.
    pub write: Vec<String>,
    /// Whether it may open network connections. Default: false.
    pub network: bool,
}

/// How to sign in at a remote server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Oauth {
    /// The identifier of a client that is registered already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Expanded>,
    /// Its secret, for clients that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// The key it proves itself with in place of a secret, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<Secret>,
    /// The authorization server that the client is registered at; no other gets its secret. Default:
    /// the first one that it is used at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<Expanded>,
    /// The scopes to ask for. Default: those the server names.
    pub scopes: Vec<String>,
    /// The address of a description of the client, for authorization servers that read one in place
    /// of a registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<Expanded>,
    /// Where browsers are sent back to. Default: where the application listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<Expanded>,
    /// What tokens are given for. Default: a person's consent.
    pub grant: Grant,
    /// Who vouches for the user in place of a grant. Default: nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enterprise: Option<Enterprise>,
}

impl Oauth {
    /// Every secret that there is.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let own = [&self.client_secret, &self.private_key].into_iter().flatten();
        let theirs = self.enterprise.iter().flat_map(|enterprise| {
            let token = match &enterprise.id_token {
                IdToken::Value(token) => Some(token),
                IdToken::File(_) => None,
            };
            enterprise.client_secret.iter().chain(token)
        });
        own.chain(theirs)
    }
}

/// The identity provider of an enterprise, which vouches for the user (enterprise-managed
/// authorization).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Enterprise {
    /// Its own name, as it stands in its metadata.
    pub issuer: Expanded,
    /// Where it exchanges tokens.
    pub token_endpoint: Expanded,
    /// The identifier of the client that it knows.
    pub client_id: Expanded,
    /// That client's secret, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// Who the user is.
    #[serde(flatten)]
    pub id_token: IdToken,
}

/// Where a user's ID token is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum IdToken {
    /// Here.
    #[serde(rename = "idToken")]
    Value(Secret),
    /// In a file, which is read at every sign-in.
    #[serde(rename = "idTokenFile")]
    File(Expanded<PathBuf>),
}

/// What tokens are given for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A person signs in with a browser.
    #[default]
    AuthorizationCode,
    /// The client itself has access.
    ClientCredentials,
}

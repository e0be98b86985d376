//! What may be typed: the file as its JSON Schema describes it, before anything is made of it.
//!
//! The schema is generated from these types and the documentation comments are its descriptions.
//! Every key is optional here: an entry that lost its invalid keys must still be readable, so that
//! its other problems can be told in the same run.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::raw_value::ByteSize;
pub(super) use super::raw_value::{EnvValue, Text};

/// The keys at the top of a file.
pub(super) const TOP_LEVEL_KEYS: &[&str] = &["$schema", "servers", "mcpServers", "host"];

/// One day: nobody waits longer for one answer, and numbers above it are milliseconds.
const MAX_SECONDS: f64 = 86_400.0;

/// One millisecond: below it nothing could ever be answered.
const MIN_SECONDS: f64 = 0.001;

/// An MCP host's configuration: the servers to start and what they may do.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase", title = "mcp.json")]
#[schemars(extend("anyOf" = [{"required": ["servers"]}, {"required": ["mcpServers"]}]))]
#[expect(dead_code, reason = "only the shape is used, for the schema of a whole file")]
pub(super) struct File {
    /// Where an editor finds this schema.
    #[schemars(rename = "$schema")]
    schema: Option<String>,
    /// The servers by name: letters, digits, `_`, `-` and `.`, at most 128 of them.
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z0-9_.-]{1,128}$"}))]
    servers: Option<IndexMap<String, Server>>,
    /// The same as `servers`, as other hosts call it.
    #[schemars(extend("propertyNames" = {"pattern": "^[A-Za-z0-9_.-]{1,128}$"}))]
    mcp_servers: Option<IndexMap<String, Server>>,
    /// The host's own settings, and the defaults it gives to servers.
    host: Option<Host>,
}

/// One MCP server: how to start it or reach it, and what it may do.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Server {
    /// The transport. Without it a `command` means `stdio` and a `url` means `http`.
    #[serde(rename = "type")]
    pub(super) kind: Option<Transport>,
    /// stdio: the program to start, looked up in the child's `PATH`.
    pub(super) command: Option<String>,
    /// stdio: the program's arguments, one by one; no shell is involved.
    pub(super) args: Option<Vec<Text>>,
    /// stdio: where the program runs; a relative directory starts at the file's.
    pub(super) cwd: Option<String>,
    /// stdio: variables for the program; `null` takes one away.
    pub(super) env: Option<IndexMap<String, EnvValue>>,
    /// stdio: a file of `NAME=value` lines; `env` wins over it.
    pub(super) env_file: Option<String>,
    /// stdio: whether the program gets the host's whole environment.
    #[schemars(extend("default" = false))]
    pub(super) inherit_env: Option<bool>,
    /// Remote: the server's address.
    pub(super) url: Option<String>,
    /// Remote: headers sent with every request.
    pub(super) headers: Option<IndexMap<String, String>>,
    /// Remote: a program that prints further headers as a JSON object. A text is the program; with
    /// arguments it is a list. No shell is involved.
    pub(super) headers_helper: Option<HeadersHelper>,
    /// Remote: how to sign in.
    pub(super) oauth: Option<Oauth>,
    /// Whether the entry is left out.
    #[schemars(extend("default" = false))]
    pub(super) disabled: Option<bool>,
    /// Whether the host refuses to start without this server.
    #[schemars(extend("default" = true))]
    pub(super) required: Option<bool>,
    /// Servers that must be ready before this one is started.
    pub(super) dependencies: Option<Vec<Text>>,
    /// Which tools are offered.
    pub(super) tools: Option<Tools>,
    /// The settings that `host` gives defaults for.
    #[serde(flatten)]
    pub(super) shared: Shared,
}

/// The host's own settings; every other key is the default for servers that do not set it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Host {
    /// Seconds that all servers together may take to start.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 60))]
    pub(super) start_timeout: Option<f64>,
    /// Seconds that a package runner may take to fetch a server before it starts.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 300))]
    pub(super) install_timeout: Option<f64>,
    /// Whether a tool may be called without its server's name when only one server has it.
    #[schemars(extend("default" = false))]
    pub(super) allow_bare_names: Option<bool>,
    /// Whether programs get the host's whole environment.
    #[schemars(extend("default" = false))]
    pub(super) inherit_env: Option<bool>,
    /// The defaults of servers.
    #[serde(flatten)]
    pub(super) shared: Shared,
}

/// Settings of a server that `host` gives defaults for.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shared {
    /// Seconds that one call may go without an answer or progress.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 30))]
    pub(super) timeout: Option<f64>,
    /// Seconds that start and handshake may take.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 30))]
    pub(super) init_timeout: Option<f64>,
    /// Seconds that the server may take to stop by itself.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 10))]
    pub(super) shutdown_timeout: Option<f64>,
    /// Seconds that one call may take however much progress it reports.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 600))]
    pub(super) max_total_timeout: Option<f64>,
    /// How many calls may be under way at once.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 64))]
    pub(super) max_concurrent: Option<u32>,
    /// After how many time-outs in a row the server counts as unavailable.
    #[schemars(range(min = 1, max = 1_000), extend("default" = 1))]
    pub(super) unavailable_after_timeouts: Option<u32>,
    /// Whether the server is started again after a failure.
    pub(super) restart: Option<Restart>,
    /// How requests that provably did not run are repeated.
    pub(super) retry: Option<Retry>,
    /// How long resources and prompts are kept.
    pub(super) cache: Option<Cache>,
    /// What the process may use.
    pub(super) limits: Option<Limits>,
    /// What is looked at for attacks, and what is done about what looks like one.
    pub(super) guard: Option<Guard>,
    /// What the process may touch.
    pub(super) sandbox: Option<Sandbox>,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum Transport {
    Stdio,
    Http,
    Sse,
    #[serde(rename = "websocket")]
    WebSocket,
}

impl Transport {
    /// The name it has in the file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
        }
    }
}

/// Lists of tool names; `*` stands for any run of characters.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tools {
    /// What is offered; without this list every tool is.
    pub(super) allow: Option<Vec<Text>>,
    /// What is not offered, whatever `allow` says.
    pub(super) deny: Option<Vec<Text>>,
    /// Texts that arguments must not have, by the tools they are for; `*` as above in both.
    pub(super) deny_arguments: Option<IndexMap<String, Vec<Text>>>,
}

/// Whether a server is started again after a failure.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum Restart {
    /// It stays down until the application asks for it.
    Never,
    /// It is started again, `max` times at most.
    OnFailure {
        /// The number of restarts, counted anew once it has been ready for a minute.
        #[schemars(range(min = 1, max = 100))]
        max: u32,
    },
}

/// How requests that provably did not run are repeated.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Retry {
    /// How many times a request is sent again.
    #[schemars(range(min = 0, max = 10), extend("default" = 3))]
    pub(super) max: Option<u32>,
    /// Seconds before the first repetition; each later pause is twice as long.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 1))]
    pub(super) initial_delay: Option<f64>,
    /// Seconds that no pause is longer than.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 30))]
    pub(super) max_delay: Option<f64>,
}

/// How long and how much of what a server answered is kept.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cache {
    /// Seconds that an entry is good for; 0 keeps nothing.
    #[schemars(range(min = 0.0, max = MAX_SECONDS), extend("default" = 300))]
    pub(super) ttl: Option<f64>,
    /// The number of entries.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = 1000))]
    pub(super) max_entries: Option<u32>,
    /// Their size together: bytes, or a number with `KiB`, `MiB`, `GiB`, `kB`, `MB` or `GB`.
    #[schemars(extend("default" = 16_777_216))]
    pub(super) max_bytes: Option<ByteSize>,
}

/// What one server process may use; what is absent is not limited.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Limits {
    /// Memory: bytes, or a number with `KiB`, `MiB`, `GiB`, `kB`, `MB` or `GB`.
    pub(super) memory: Option<ByteSize>,
    /// Seconds of processor time over the whole life.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub(super) cpu_seconds: Option<u32>,
    /// Open files.
    #[schemars(range(min = 16, max = 1_048_576))]
    pub(super) open_files: Option<u32>,
    /// The longest file it may write: bytes, or a number with `KiB`, `MiB`, `GiB`, `kB`, `MB` or
    /// `GB`.
    pub(super) file_size: Option<ByteSize>,
    /// Processes.
    #[schemars(range(min = 1, max = 32_768))]
    pub(super) processes: Option<u32>,
}

/// What one server process may touch.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(super) struct Sandbox {
    /// Directories and files it may read.
    pub(super) read: Option<Vec<Text>>,
    /// Directories and files it may read and write.
    pub(super) write: Option<Vec<Text>>,
    /// Whether it may open network connections.
    #[schemars(extend("default" = false))]
    pub(super) network: Option<bool>,
}

/// What is done about what looks like an attack: one word for everything, or one for each part.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
// A slip of the pen must not leave a part unguarded.
#[serde(untagged, deny_unknown_fields)]
#[schemars(inline)]
pub(super) enum Guard {
    /// The same for everything.
    All(GuardMode),
    /// What is not there is as the host has it.
    Each {
        /// Tools, prompts, resources and instructions, whenever they are read.
        definitions: Option<GuardMode>,
        /// Arguments of tools, before they are sent.
        arguments: Option<GuardMode>,
        /// What is answered by tools and for prompts and resources, before the application is given it.
        results: Option<GuardMode>,
    },
}

/// Nothing is looked at; what is found is told and passes; what is found is told and held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum GuardMode {
    Off,
    Flag,
    Refuse,
}

/// A program that prints headers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(super) enum HeadersHelper {
    /// The program alone.
    Program(String),
    /// The program and its arguments.
    Words(Vec<Text>),
}

/// How to sign in at a remote server.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Oauth {
    /// The identifier of a client that is registered already.
    pub(super) client_id: Option<String>,
    /// Its secret, for clients that have one.
    pub(super) client_secret: Option<String>,
    /// The key it proves itself with in place of a secret, in PEM: P-256, Ed25519 or RSA. For the
    /// grant `client_credentials`.
    pub(super) private_key: Option<String>,
    /// The authorization server that the client is registered at, by its own name; no other gets its
    /// secret. Without it the first one that it is used at.
    pub(super) issuer: Option<String>,
    /// The scopes to ask for; without them those that the server names.
    pub(super) scopes: Option<Vec<Text>>,
    /// Where a description of the client is published, `https://`; for authorization servers that
    /// read it in place of a registration.
    pub(super) client_metadata_url: Option<String>,
    /// Where browsers are sent back to; without it where the application listens.
    pub(super) redirect_uri: Option<String>,
    /// What tokens are given for.
    pub(super) grant: Option<Grant>,
    /// The identity provider of an enterprise, which vouches for the user in place of a grant.
    pub(super) enterprise: Option<Enterprise>,
}

/// Who vouches for the user: the identity provider of an enterprise and what it knows us by.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Enterprise {
    /// The identity provider's own name, as it stands in its metadata.
    pub(super) issuer: Option<String>,
    /// Where it exchanges tokens, `https://`, or `http://` on this machine.
    pub(super) token_endpoint: Option<String>,
    /// The identifier of the client that it knows.
    pub(super) client_id: Option<String>,
    /// That client's secret, if it has one.
    pub(super) client_secret: Option<String>,
    /// The user's ID token.
    pub(super) id_token: Option<String>,
    /// The file with the user's ID token, read at every sign-in; a relative path starts at the
    /// file's directory.
    pub(super) id_token_file: Option<String>,
}

/// What tokens are given for: a person's consent, or the client itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum Grant {
    AuthorizationCode,
    ClientCredentials,
}

/// The texts of a list, without what was refused.
pub(super) fn texts(list: Option<Vec<Text>>) -> Vec<String> {
    list.into_iter().flatten().filter_map(|Text(text)| text).collect()
}

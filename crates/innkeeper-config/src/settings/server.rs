//! Settings of one server with all defaults applied.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::Serialize;

use crate::diagnostic::Position;
use crate::secret::{ExpandedValue, Secret};
use crate::settings::extra_keys::ExtraKeys;
use crate::settings::filter::ToolFilter;
use crate::settings::guard::GuardModes;
use crate::settings::host::HostConfig;
use crate::settings::inherited_environment::InheritedEnvironment;
use crate::settings::shared::{CallConfig, ConfinementConfig, LifecycleConfig};

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
    /// Start, failure and end of the process.
    #[serde(flatten)]
    pub lifecycle: LifecycleConfig,
    /// Limits of calls.
    #[serde(flatten)]
    pub calls: CallConfig,
    /// What the process can reach.
    #[serde(flatten)]
    pub confinement: ConfinementConfig,
    /// Filter for the server's tools. Default: all tools.
    pub tools: ToolFilter,
    /// Guard modes for the server's traffic. Default: off.
    pub guard: GuardModes,
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

impl ServerConfig {
    /// Creates a server with the defaults of `host`.
    pub(crate) fn new(
        host: &HostConfig,
        name: String,
        key: String,
        position: Position,
        transport: TransportConfig,
    ) -> Self {
        Self {
            name,
            key,
            position,
            transport,
            required: true,
            dependencies: Vec::new(),
            lifecycle: host.lifecycle,
            calls: host.calls,
            // The server has no environment of its own.
            confinement: ConfinementConfig {
                inherit_env: InheritedEnvironment::Standard,
                ..host.confinement.clone()
            },
            tools: ToolFilter::default(),
            guard: host.guard,
            headers_helper: Vec::new(),
            oauth: None,
            extra: ExtraKeys::default(),
        }
    }
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

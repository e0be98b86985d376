//! Types of the top-level object `serve` as its JSON Schema describes the object.
//!
//! Every struct denies unknown keys: with a misspelled key, a check of the gateway would be missing.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ByteSize, MAX_SECONDS, MIN_SECONDS, StringElement};

/// Settings of `innkeeper serve`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct Serve {
    /// Address and port to listen on.
    #[schemars(extend("default" = "127.0.0.1:7300"))]
    pub(crate) listen: Option<String>,
    /// Whether clients without authentication are served on an address of the network, and other users
    /// of this machine on a loopback address. The command line must also say so.
    #[schemars(extend("default" = false))]
    pub(crate) allow_unauthenticated: Option<bool>,
    /// Names of tools and prompts: with the server as prefix, or without.
    #[schemars(extend("default" = "prefixed"))]
    pub(crate) names: Option<NameStyle>,
    /// Origins of web pages that may send requests, such as `https://app.example.com`. On a loopback
    /// address, the pages of this machine may send requests too.
    pub(crate) allowed_origins: Option<Vec<StringElement>>,
    /// Values of the header `Host`, such as `mcp.example.com`, in addition to the names of this
    /// machine and, on an address of the network, IP addresses. A value without a port allows every
    /// port.
    pub(crate) allowed_hosts: Option<Vec<StringElement>>,
    /// Authentication of clients.
    pub(crate) auth: Option<ServeAuth>,
    /// Maximum rate of the requests of each client. Default: no maximum.
    pub(crate) rate: Option<RequestRate>,
    /// Calls and forms that wait for the answer of an operator.
    pub(crate) approval: Option<Approval>,
    /// Limits of the gateway.
    pub(crate) limits: Option<ServeLimits>,
    /// Console for operators at `/console`.
    pub(crate) console: Option<Console>,
    /// Further endpoints by name: the endpoint `NAME` has the path `/mcp/NAME`.
    pub(crate) endpoints: Option<IndexMap<String, Endpoint>>,
}

/// Console for operators.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct Console {
    /// Whether the gateway has the console.
    #[schemars(extend("default" = true))]
    pub(crate) enabled: Option<bool>,
    /// Principals that may use the console, which shows data of all clients: the `principal` of an API
    /// key, `oauth:` with the identity of a token, or `local` for everyone who reaches a gateway
    /// without authentication. Default: none, or `local` on a loopback address without
    /// authentication.
    pub(crate) operators: Option<Vec<StringElement>>,
}

/// Names of tools and prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum NameStyle {
    Prefixed,
    Flat,
}

/// Authentication of clients.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct ServeAuth {
    /// API keys of clients.
    pub(crate) api_keys: Option<Vec<ApiKey>>,
    /// Access tokens of an authorization server.
    pub(crate) oauth: Option<ServeOauth>,
}

/// One API key with the permissions of its client.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct ApiKey {
    /// Name of the client. Several keys may have the same name.
    pub(crate) principal: Option<String>,
    /// SHA-256 hash of the key, in hexadecimal.
    pub(crate) sha256: Option<String>,
    /// The key itself, from a variable: `${NAME}`.
    pub(crate) key: Option<String>,
    /// Tools that the client may use, by the offered name or as `SERVER.TOOL`; `*` matches any sequence
    /// of characters. Default: all tools.
    pub(crate) allow: Option<Vec<StringElement>>,
    /// Tools that the client may not use, by any of their names, even if `allow` matches.
    pub(crate) deny: Option<Vec<StringElement>>,
    /// Servers that the client may use. Default: all servers.
    pub(crate) servers: Option<Vec<StringElement>>,
    /// Names of the endpoints that the client may use; `/mcp` is the endpoint without a name. Default:
    /// all endpoints.
    pub(crate) endpoints: Option<Vec<StringElement>>,
    /// Maximum rate of the requests of this client, in place of `serve.rate`.
    pub(crate) rate: Option<RequestRate>,
}

/// Access tokens of an authorization server: signed JWTs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct ServeOauth {
    /// Issuer identifier of the authorization server, as in its metadata and in the claim `iss`.
    pub(crate) issuer: Option<String>,
    /// URL of this gateway as clients use it, such as `https://mcp.example.com/mcp`. The claim `aud`
    /// must contain this URL.
    pub(crate) audience: Option<String>,
    /// URL of the signing keys of the authorization server: `https://`, or `http://` on this machine.
    pub(crate) jwks_url: Option<String>,
    /// Signature algorithms of tokens. Default: `RS256` and `ES256`.
    pub(crate) algorithms: Option<Vec<TokenAlgorithm>>,
    /// Scopes that each token must contain.
    pub(crate) required_scopes: Option<Vec<StringElement>>,
    /// Claim with the identity of the client.
    #[schemars(extend("default" = "sub"))]
    pub(crate) principal_claim: Option<String>,
    /// Tools that clients with a token may use, by the offered name or as `SERVER.TOOL`; `*` matches any
    /// sequence of characters. Default: all tools.
    pub(crate) allow: Option<Vec<StringElement>>,
    /// Tools that these clients may not use, by any of their names, even if `allow` matches.
    pub(crate) deny: Option<Vec<StringElement>>,
    /// Servers that clients with a token may use. Default: all servers.
    pub(crate) servers: Option<Vec<StringElement>>,
    /// Names of the endpoints that these clients may use; `/mcp` is the endpoint without a name.
    /// Default: all endpoints.
    pub(crate) endpoints: Option<Vec<StringElement>>,
    /// Maximum rate of the requests of each of these clients, in place of `serve.rate`.
    pub(crate) rate: Option<RequestRate>,
}

/// Signature algorithm of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum TokenAlgorithm {
    #[serde(rename = "RS256")]
    Rs256,
    #[serde(rename = "RS384")]
    Rs384,
    #[serde(rename = "RS512")]
    Rs512,
    #[serde(rename = "PS256")]
    Ps256,
    #[serde(rename = "PS384")]
    Ps384,
    #[serde(rename = "PS512")]
    Ps512,
    #[serde(rename = "ES256")]
    Es256,
    #[serde(rename = "ES384")]
    Es384,
    #[serde(rename = "EdDSA")]
    EdDsa,
}

/// Maximum rate of the requests of one client, and of its calls of some tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RequestRate {
    /// Requests per minute. Default: no maximum.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) per_minute: Option<u32>,
    /// Requests that may come at once. Default: the value of `perMinute`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) burst: Option<u32>,
    /// Maximum rate of the calls of a tool, by any of its names; `*` matches any sequence of
    /// characters, and the first entry that matches counts.
    pub(crate) tools: Option<IndexMap<String, CallRate>>,
}

/// Maximum rate of the calls of one tool by one client.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct CallRate {
    /// Calls per minute.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) per_minute: Option<u32>,
    /// Calls that may come at once. Default: the value of `perMinute`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) burst: Option<u32>,
}

/// Calls and forms that wait for the answer of an operator.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct Approval {
    /// Tools whose calls wait for an approval, by any of their names; `*` matches any sequence of
    /// characters.
    pub(crate) tools: Option<Vec<StringElement>>,
    /// Seconds until an operator must answer.
    #[schemars(range(min = 1, max = 2_592_000), extend("default" = 3_600))]
    pub(crate) expiry_seconds: Option<f64>,
    /// Whether operators answer forms of servers (elicitations), beside clients that can, and in place
    /// of clients that cannot.
    #[schemars(extend("default" = false))]
    pub(crate) elicitations: Option<bool>,
}

/// Limits of the gateway.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct ServeLimits {
    /// Maximum size of the body of a request: bytes, or a number with a unit.
    #[schemars(extend("default" = 8_388_608))]
    pub(crate) body_bytes: Option<ByteSize>,
    /// Maximum size of all headers of a request: bytes, or a number with a unit.
    #[schemars(extend("default" = 65_536))]
    pub(crate) header_bytes: Option<ByteSize>,
    /// Maximum seconds for a client to send a request.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 30))]
    pub(crate) request_seconds: Option<f64>,
    /// Seconds without a request after which a session ends.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 1800))]
    pub(crate) idle_session_seconds: Option<f64>,
    /// Maximum number of open sessions.
    #[schemars(range(min = 1, max = 10_000_000), extend("default" = 10_000))]
    pub(crate) sessions: Option<u32>,
    /// Maximum number of open connections of one remote address.
    #[schemars(range(min = 1, max = 10_000), extend("default" = 256))]
    pub(crate) connections_per_address: Option<u32>,
    /// Maximum number of server processes of all clients together.
    #[schemars(range(min = 1, max = 32_768), extend("default" = 256))]
    pub(crate) processes: Option<u32>,
    /// Maximum memory of all server processes together: bytes, or a number with a unit. Default: no
    /// maximum.
    pub(crate) memory: Option<ByteSize>,
}

/// A further endpoint: a selection of servers and tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct Endpoint {
    /// Offered servers. Default: all servers.
    pub(crate) servers: Option<Vec<StringElement>>,
    /// Offered tools: `allow` by the name on this endpoint or as `SERVER.TOOL`, `deny` by any name.
    pub(crate) tools: Option<EndpointTools>,
    /// Names of tools and prompts. Default: as in `serve.names`.
    pub(crate) names: Option<NameStyle>,
    /// Whether the endpoint offers tools to search, describe and call its tools, in place of the
    /// tools.
    #[schemars(extend("default" = false))]
    pub(crate) search: Option<bool>,
    /// Tools that the endpoint offers beside the search; `*` matches any sequence of characters.
    pub(crate) pinned: Option<Vec<StringElement>>,
    /// Storage of large results as resources. Default: large results are sent as they are.
    pub(crate) large_results: Option<LargeResults>,
}

/// Offered tools of an endpoint; `*` matches any sequence of characters.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct EndpointTools {
    /// Offered tools. Default: all tools.
    pub(crate) allow: Option<Vec<StringElement>>,
    /// Tools that are not offered, even if `allow` matches.
    pub(crate) deny: Option<Vec<StringElement>>,
}

/// Storage of large results as resources.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct LargeResults {
    /// Size above which a result is stored: bytes, or a number with a unit.
    #[schemars(extend("default" = 262_144))]
    pub(crate) bytes: Option<ByteSize>,
    /// Seconds until a stored result is deleted.
    #[schemars(range(min = MIN_SECONDS, max = MAX_SECONDS), extend("default" = 600))]
    pub(crate) ttl: Option<f64>,
}

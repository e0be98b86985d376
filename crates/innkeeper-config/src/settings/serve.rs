//! Settings of the gateway, with all defaults applied.
//!
//! An error in `serve` rejects the whole configuration: a gateway without one of its checks must not
//! start.

mod approval;
mod auth;
mod console;
mod endpoint;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use indexmap::IndexMap;
use serde::Serialize;

use crate::settings::seconds;

pub use approval::ApprovalConfig;
pub use auth::{
    ApiKeyConfig, BindingConfig, KeyDigest, MCP_ENDPOINT, ServeAuth, ServeOauth, TokenAlgorithm,
};
pub use console::ConsoleConfig;
pub use endpoint::{EndpointConfig, LargeResults};

/// The top-level `serve` object with all defaults applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServeConfig {
    /// Address to listen on. Default: `127.0.0.1:7300`.
    pub listen: SocketAddr,
    /// Whether clients without authentication may be served on an address of the network. Default:
    /// false.
    pub allow_unauthenticated: bool,
    /// Names of tools and prompts. Default: with prefix.
    pub names: NameStyle,
    /// Origins of web pages that may send requests: scheme, host and port in their canonical form.
    pub allowed_origins: Vec<String>,
    /// Values of the header `Host` in lower case.
    pub allowed_hosts: Vec<String>,
    /// Authentication of clients. Default: none.
    pub auth: ServeAuth,
    /// Maximum rates for each client. Default: none.
    pub rate: RateConfig,
    /// Calls and forms that wait for the answer of an operator. Default: none.
    pub approval: ApprovalConfig,
    /// Limits of the gateway.
    pub limits: ServeLimits,
    /// The console for operators.
    pub console: ConsoleConfig,
    /// Further endpoints by name.
    pub endpoints: IndexMap<String, EndpointConfig>,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7300)),
            allow_unauthenticated: false,
            names: NameStyle::Prefixed,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            auth: ServeAuth::default(),
            rate: RateConfig::default(),
            approval: ApprovalConfig::default(),
            limits: ServeLimits::default(),
            console: ConsoleConfig::default(),
            endpoints: IndexMap::new(),
        }
    }
}

/// The form of the names that clients see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NameStyle {
    /// The name of the server precedes the name of the tool.
    #[default]
    Prefixed,
    /// The name of the tool alone.
    Flat,
}

/// Maximum rates of the requests of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RateConfig {
    /// Maximum rate of all requests; `None` without a maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Rate>,
    /// Maximum rate of the calls of a tool, by name or pattern; the first match counts.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub tools: IndexMap<String, Rate>,
}

/// A maximum rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// Requests per minute.
    pub per_minute: u32,
    /// Requests that may come at once. Default: the requests per minute.
    pub burst: u32,
}

/// Limits of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServeLimits {
    /// Maximum size of the body of a request. Default: 8 MiB.
    pub body_bytes: u64,
    /// Maximum size of all headers of a request. Default: 64 KiB.
    pub header_bytes: u64,
    /// Maximum time for a client to send a request. Default: 30 s.
    #[serde(rename = "requestSeconds", with = "seconds")]
    pub request_time: Duration,
    /// Time without a request after which a session ends. Default: 30 minutes.
    #[serde(rename = "idleSessionSeconds", with = "seconds")]
    pub idle_session_time: Duration,
    /// Maximum number of open sessions. Default: 10,000.
    pub sessions: u32,
    /// Maximum number of open connections of one remote address. Default: 256.
    pub connections_per_address: u32,
    /// Maximum number of server processes of all clients together. Default: 256.
    pub processes: u32,
    /// Maximum memory of all server processes together, in bytes. Default: no maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            body_bytes: 8 << 20,
            header_bytes: 64 << 10,
            request_time: Duration::from_secs(30),
            idle_session_time: Duration::from_mins(30),
            sessions: 10_000,
            connections_per_address: 256,
            processes: 256,
            memory: None,
        }
    }
}

#[cfg(test)]
mod tests;

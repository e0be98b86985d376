//! The settings of the host itself, and the defaults it gives to servers.

use std::time::Duration;

use serde::Serialize;

use super::guard::GuardModes;
use super::seconds;
use super::server::{Cache, Limits, Restart, Retry, Sandbox};

/// The top-level `host` object, every default filled in.
///
/// What has the name of a server's key is the default for servers that do not set it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostConfig {
    /// How long all servers together may take to start. Default: 60 s.
    #[serde(with = "seconds")]
    pub start_timeout: Duration,
    /// How long a package runner may take to fetch a server before it starts. Default: 5 minutes.
    #[serde(with = "seconds")]
    pub install_timeout: Duration,
    /// Whether a tool may be called without its server's name when only one has it. Default: false.
    pub allow_bare_names: bool,
    /// Default 30 s.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// Default 30 s.
    #[serde(with = "seconds")]
    pub init_timeout: Duration,
    /// Default 10 s.
    #[serde(with = "seconds")]
    pub shutdown_timeout: Duration,
    /// Default 10 minutes.
    #[serde(with = "seconds")]
    pub max_total_timeout: Duration,
    /// Default 64.
    pub max_concurrent: usize,
    /// Default 1.
    pub unavailable_after_timeouts: u32,
    /// Default false.
    pub inherit_env: bool,
    /// Default never.
    pub restart: Restart,
    /// Default 3 times, after 1 s, 2 s and 4 s.
    pub retry: Retry,
    /// Default 5 minutes, 1,000 entries, 16 MiB.
    pub cache: Cache,
    /// Default none.
    pub limits: Limits,
    /// Default: nothing is looked at.
    pub guard: GuardModes,
    /// Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(60),
            install_timeout: Duration::from_mins(5),
            allow_bare_names: false,
            timeout: Duration::from_secs(30),
            init_timeout: Duration::from_secs(30),
            shutdown_timeout: Duration::from_secs(10),
            max_total_timeout: Duration::from_mins(10),
            max_concurrent: 64,
            unavailable_after_timeouts: 1,
            inherit_env: false,
            restart: Restart::Never,
            retry: Retry {
                max: 3,
                initial_delay: Duration::from_secs(1),
                max_delay: Duration::from_secs(30),
            },
            cache: Cache {
                ttl: Duration::from_mins(5),
                max_entries: 1_000,
                max_bytes: 16 * 1024 * 1024,
            },
            limits: Limits::default(),
            guard: GuardModes::default(),
            sandbox: None,
        }
    }
}

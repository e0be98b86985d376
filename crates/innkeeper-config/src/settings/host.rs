//! Host settings, including defaults for servers.

use std::time::Duration;

use serde::Serialize;

use crate::settings::guard::GuardModes;
use crate::settings::inherited_environment::InheritedEnvironment;
use crate::settings::seconds;
use crate::settings::server::{
    CacheConfig, ResourceLimits, RestartPolicy, RetryPolicy, SandboxConfig, Share,
};

/// The top-level `host` object with all defaults applied.
///
/// A field with the name of a server key is the default for servers without that key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostConfig {
    /// Maximum time for the start of all servers together. Default: 60 s.
    #[serde(with = "seconds")]
    pub start_timeout: Duration,
    /// Maximum time for a package runner to download a server before the start. Default: 5 minutes.
    #[serde(with = "seconds")]
    pub install_timeout: Duration,
    /// Maximum number of servers that start at the same time. Default: 8.
    pub concurrent_starts: usize,
    /// Whether a tool may be called without the server name if the tool name is unique. Default:
    /// false.
    pub allow_bare_names: bool,
    /// Default of the server setting `timeout`: 30 s.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// Default of the server setting `init_timeout`: 30 s.
    #[serde(with = "seconds")]
    pub init_timeout: Duration,
    /// Default of the server setting `shutdown_timeout`: 10 s.
    #[serde(with = "seconds")]
    pub shutdown_timeout: Duration,
    /// Default of the server setting `max_total_timeout`: 10 minutes.
    #[serde(with = "seconds")]
    pub max_total_timeout: Duration,
    /// Default of the server setting `max_concurrent`: 64.
    pub max_concurrent: usize,
    /// Default of the server setting `unavailable_after_timeouts`: 1.
    pub unavailable_after_timeouts: u32,
    /// Default of the server setting `inherit_env`: the standard list.
    pub inherit_env: InheritedEnvironment,
    /// Default of the server setting `restart`: unset.
    pub restart: RestartPolicy,
    /// Default of the server setting `retry`: 3 retries, after 1 s, 2 s and 4 s.
    pub retry: RetryPolicy,
    /// Default of the server setting `cache`: 5 minutes, 1,000 entries, 16 MiB.
    pub cache: CacheConfig,
    /// Default of the server setting `limits`: none.
    pub limits: ResourceLimits,
    /// Default of the server setting `guard`: off.
    pub guard: GuardModes,
    /// Default of the server setting `sandbox`: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxConfig>,
    /// Default of the server setting `share`: all clients.
    pub share: Share,
    /// Default of the server setting `idle_timeout`: none.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds::serialize_option")]
    pub idle_timeout: Option<Duration>,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(60),
            install_timeout: Duration::from_mins(5),
            concurrent_starts: 8,
            allow_bare_names: false,
            timeout: Duration::from_secs(30),
            init_timeout: Duration::from_secs(30),
            shutdown_timeout: Duration::from_secs(10),
            max_total_timeout: Duration::from_mins(10),
            max_concurrent: 64,
            unavailable_after_timeouts: 1,
            inherit_env: InheritedEnvironment::Standard,
            restart: RestartPolicy::Unset,
            retry: RetryPolicy {
                max: 3,
                initial_delay: Duration::from_secs(1),
                max_delay: Duration::from_secs(30),
            },
            cache: CacheConfig {
                ttl: Duration::from_mins(5),
                max_entries: 1_000,
                max_bytes: 16 * 1024 * 1024,
            },
            limits: ResourceLimits::default(),
            guard: GuardModes::default(),
            sandbox: None,
            share: Share::Process,
            idle_timeout: None,
        }
    }
}

//! Settings that servers and `host` share: `host` has the defaults of the servers.

use std::time::Duration;

use serde::Serialize;

use crate::settings::inherited_environment::InheritedEnvironment;
use crate::settings::seconds;

/// The start, failures and end of a server's process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleConfig {
    /// Maximum time for start and handshake. Default: 30 s.
    #[serde(with = "seconds")]
    pub init_timeout: Duration,
    /// Maximum time for the server to exit on its own. Default: 10 s.
    #[serde(with = "seconds")]
    pub shutdown_timeout: Duration,
    /// Restart policy after a failure. Default: unset.
    pub restart: RestartPolicy,
    /// Clients of `innkeeper serve` that share one process of the server. Default: all clients.
    pub share: Share,
    /// Time without a call after which `innkeeper serve` stops the process. Default: none.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds::serialize_option")]
    pub idle_timeout: Option<Duration>,
}

impl Default for LifecycleConfig {
    fn default() -> Self {
        Self {
            init_timeout: Duration::from_secs(30),
            shutdown_timeout: Duration::from_secs(10),
            restart: RestartPolicy::Unset,
            share: Share::Process,
            idle_timeout: None,
        }
    }
}

/// The limits of a server's calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallConfig {
    /// Maximum time of a call without a response or progress. Default: 30 s.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// Maximum time of a call, regardless of progress. Default: 10 minutes.
    #[serde(with = "seconds")]
    pub max_total_timeout: Duration,
    /// Maximum number of concurrent calls. Default: 64.
    pub max_concurrent: usize,
    /// Number of consecutive timeouts after which the server is unavailable. Default: 1.
    pub unavailable_after_timeouts: u32,
    /// Retry policy for requests that provably did not run. Default: 3 retries, after 1 s, 2 s and
    /// 4 s.
    pub retry: RetryPolicy,
    /// Cache of resources and prompts. Default: 5 minutes, 1,000 entries, 16 MiB.
    pub cache: CacheConfig,
}

impl Default for CallConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_total_timeout: Duration::from_mins(10),
            max_concurrent: 64,
            unavailable_after_timeouts: 1,
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
        }
    }
}

/// What a server's process can reach. A change of these settings needs a new trust decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfinementConfig {
    /// The variables of the host that the child inherits. Default: the standard list.
    pub inherit_env: InheritedEnvironment,
    /// Resource limits of the process. Default: no limits.
    pub limits: ResourceLimits,
    /// Sandbox of the process. Default: no sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxConfig>,
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

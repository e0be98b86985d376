//! Host settings, including defaults for servers.

use std::time::Duration;

use serde::Serialize;

use crate::settings::guard::GuardModes;
use crate::settings::seconds;
use crate::settings::shared::{CallConfig, ConfinementConfig, LifecycleConfig};

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
    /// Defaults of the servers' lifecycles.
    #[serde(flatten)]
    pub lifecycle: LifecycleConfig,
    /// Defaults of the servers' limits of calls.
    #[serde(flatten)]
    pub calls: CallConfig,
    /// Defaults of the servers' confinements.
    #[serde(flatten)]
    pub confinement: ConfinementConfig,
    /// Defaults of the servers' guard modes: off.
    pub guard: GuardModes,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(60),
            install_timeout: Duration::from_mins(5),
            concurrent_starts: 8,
            allow_bare_names: false,
            lifecycle: LifecycleConfig::default(),
            calls: CallConfig::default(),
            confinement: ConfinementConfig::default(),
            guard: GuardModes::default(),
        }
    }
}

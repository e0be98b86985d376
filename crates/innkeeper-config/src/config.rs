//! The configuration of a host.

use indexmap::IndexMap;
use serde::Serialize;

use crate::diagnostic::{Diagnostic, Position};
use crate::invalid_server::InvalidServer;
use crate::origin::ConfigOrigin;
use crate::settings::extra_keys::ExtraKeys;
use crate::settings::host::HostConfig;
use crate::settings::serve::ServeConfig;
use crate::settings::server::ServerConfig;
use crate::variables::environment::Environment;

/// The complete configuration of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Enabled servers, in file order.
    pub servers: IndexMap<String, ServerConfig>,
    /// Settings of the host.
    pub host: HostConfig,
    /// Settings of the gateway; `None` without a `serve` object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serve: Option<ServeConfig>,
    /// Warnings, sorted by position.
    pub warnings: Vec<Diagnostic>,
    /// Disabled servers with the position of each entry.
    pub disabled: IndexMap<String, Position>,
    /// Servers whose entries have errors, in file order; only [`Config::load_partial`] sets servers
    /// aside.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub invalid: IndexMap<String, InvalidServer>,
    /// Files of the configuration, as the user named them.
    pub sources: Vec<String>,
    /// Unknown top-level keys.
    #[serde(skip_serializing_if = "ExtraKeys::is_empty")]
    pub extra: ExtraKeys,
    /// Environment that the configuration was read against; servers inherit from this environment.
    #[serde(skip)]
    pub environment: Environment,
    /// Origin of the configuration, for reloads.
    #[serde(skip)]
    pub origin: ConfigOrigin,
}

impl Config {
    /// Makes all servers optional: a host starts the other servers if one server fails. A reload
    /// keeps this setting.
    #[must_use]
    pub fn with_optional_servers(mut self) -> Self {
        for server in self.servers.values_mut() {
            server.required = false;
        }
        self.origin.all_optional = true;
        self
    }
}

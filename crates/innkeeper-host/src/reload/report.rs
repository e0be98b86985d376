//! What a reload does, and what it did.

use std::sync::Arc;

use innkeeper_config::{Config, ConfigError, Diagnostic};

use crate::error::ServerFailure;
use crate::trust::TrustPolicy;

/// The options of a reload.
#[derive(Clone, Debug, Default)]
pub struct ReloadOptions {
    /// New configuration. Default: the current content of the files.
    pub config: Option<Config>,
    /// Whether to restart servers with changed settings at once, dependencies first, and to start
    /// servers again whose last start failed. Default: servers keep running, or stay unavailable,
    /// until [`Host::restart_server`](crate::Host::restart_server).
    pub apply_changes: bool,
    /// The decision about new servers and servers with a changed launch. Default: all launches are
    /// approved, because the application requested the reload.
    pub trust: Option<TrustPolicy>,
}

/// The result of a reload; all lists are in the order of the configuration.
#[derive(Debug, Default)]
pub struct ReloadReport {
    /// New servers, ready or not.
    pub added: Vec<Arc<str>>,
    /// Removed servers; their calls had one second to finish.
    pub removed: Vec<Arc<str>>,
    /// Servers with changed settings.
    pub changed: Vec<ServerChange>,
    /// Servers that did not become ready and are unavailable; other servers are unaffected.
    pub failed: Vec<ServerFailure>,
    /// Changed keys of `host` that need a new host.
    pub host_keys: Vec<&'static str>,
    /// Servers without approval: new servers are not started, changed servers keep their settings.
    pub not_trusted: Vec<Arc<str>>,
    /// Servers whose entries have errors, if the configuration was loaded with
    /// [`Config::load_partial`]: a new server is unavailable, a running server keeps its settings.
    pub invalid: Vec<Arc<str>>,
    /// Warnings about the configuration.
    pub warnings: Vec<Diagnostic>,
}

/// A server with changed settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerChange {
    /// Name of the server.
    pub server: Arc<str>,
    /// Changed keys.
    pub keys: Vec<&'static str>,
    /// Changed keys that take effect at the next restart.
    pub pending: Vec<&'static str>,
}

impl ReloadReport {
    /// Returns whether the reload found no difference.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
            && self.host_keys.is_empty()
            && self.not_trusted.is_empty()
            && self.invalid.is_empty()
    }
}

/// The reason why a configuration was not applied; the host is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The configuration is invalid.
    #[error("cannot apply the configuration")]
    Config(#[from] ConfigError),
    /// The current configuration has no files, and the options have no configuration.
    #[error("cannot reload a configuration without files")]
    NoFiles,
    /// The host is shutting down or was shut down.
    #[error("the host is shutting down")]
    Shutdown,
}

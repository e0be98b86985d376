//! The settings of the servers that concern the gateway.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_host::Config;
use innkeeper_host::config::{RestartPolicy, TransportConfig};

/// When the gateway stops servers, which servers need each other, and which it needs itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerSettings {
    idle_timeouts: HashMap<String, Duration>,
    dependencies: HashMap<String, Vec<String>>,
    processes: HashSet<String>,
    stoppable: Arc<HashSet<String>>,
    /// The servers that the host restarts after a failure.
    restarted: HashSet<String>,
    /// The servers without which the gateway is not ready.
    required: Vec<String>,
}

impl ServerSettings {
    /// Reads the settings of a configuration. With a maximum of memory, the gateway may stop every
    /// server that has a process.
    pub(crate) fn new(config: &Config, has_memory_limit: bool) -> Self {
        let mut settings = Self::default();
        let mut stoppable = HashSet::new();
        for (name, server) in &config.servers {
            if let Some(limit) = server.lifecycle.idle_timeout {
                settings.idle_timeouts.insert(name.clone(), limit);
            }
            if matches!(server.lifecycle.restart, RestartPolicy::OnFailure { .. }) {
                settings.restarted.insert(name.clone());
            }
            settings.dependencies.insert(name.clone(), server.dependencies.clone());
            let has_process = matches!(server.transport, TransportConfig::Stdio { .. });
            if has_process {
                settings.processes.insert(name.clone());
            }
            if server.lifecycle.idle_timeout.is_some() || (has_process && has_memory_limit) {
                stoppable.insert(name.clone());
            }
        }
        Self { stoppable: Arc::new(stoppable), ..settings }
    }

    /// Sets the servers without which the gateway is not ready.
    pub(crate) fn with_required(self, required: Vec<String>) -> Self {
        Self { required, ..self }
    }

    pub(crate) fn is_required(&self, name: &str) -> bool {
        self.required.iter().any(|required| required == name)
    }

    /// Returns the time without a use after which a server stops.
    pub(crate) fn idle_timeout(&self, name: &str) -> Option<Duration> {
        self.idle_timeouts.get(name).copied()
    }

    /// Returns whether the next use of a server starts it after its end.
    pub(crate) fn starts_on_use(&self, name: &str) -> bool {
        self.idle_timeouts.contains_key(name) && !self.restarted.contains(name)
    }

    pub(crate) fn shortest_idle_timeout(&self) -> Option<Duration> {
        self.idle_timeouts.values().min().copied()
    }

    pub(crate) fn dependencies(&self, name: &str) -> &[String] {
        self.dependencies.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a server depends on another server.
    pub(crate) fn depends_on(&self, name: &str, dependency: &str) -> bool {
        self.dependencies(name).iter().any(|known| known == dependency)
    }

    pub(crate) fn has_process(&self, name: &str) -> bool {
        self.processes.contains(name)
    }

    /// Returns the servers that the gateway may stop.
    pub(crate) fn stoppable(&self) -> Arc<HashSet<String>> {
        self.stoppable.clone()
    }
}

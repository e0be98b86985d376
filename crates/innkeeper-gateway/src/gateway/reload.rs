//! Changes of the servers that all clients share, while the gateway runs.

use std::sync::Arc;

use innkeeper_host::Config;
use innkeeper_host::error::RestartError;

use super::{Gateway, ServerSettings};

impl Gateway {
    /// Restarts a server that all clients share. Calls in flight at this server fail. The next use starts
    /// a server that the gateway stopped.
    ///
    /// # Errors
    ///
    /// See [`Host::restart_server`](innkeeper_host::Host::restart_server).
    pub async fn restart_server(&self, name: &str) -> Result<(), RestartError> {
        if self.0.shared.is_stopped(name) {
            return Ok(());
        }
        self.0.shared.host.restart_server(name).await
    }

    /// Takes over the settings of the servers that all clients share. Call it immediately before
    /// [`Host::reload_with`](innkeeper_host::Host::reload_with) with the same configuration: clients then
    /// see added servers, and removed ones no more. The settings of private servers and of clients stay.
    pub fn reload(&self, config: &Config) {
        let settings = ServerSettings::new(config, self.0.options.max_memory.is_some());
        self.0.shared.set_stoppable(settings.stoppable());
        self.0.servers.store(Arc::new(settings));
        let required = config.servers.iter().filter(|(_, server)| server.required);
        self.0.required_servers.store(Arc::new(required.map(|(name, _)| name.clone()).collect()));
    }
}

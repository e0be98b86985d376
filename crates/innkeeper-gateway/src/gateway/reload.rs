//! Changes of the servers that all clients share, while the gateway runs.

use innkeeper_host::Config;
use innkeeper_host::error::RestartError;

use super::Gateway;

impl Gateway {
    /// Restarts a server that all clients share. Calls in flight at this server fail. The next use starts
    /// a server that the gateway stopped.
    ///
    /// # Errors
    ///
    /// See [`Host::restart_server`](innkeeper_host::Host::restart_server).
    pub async fn restart_server(&self, name: &str) -> Result<(), RestartError> {
        if self.state.servers.is_stopped(name) {
            return Ok(());
        }
        self.state.servers.shared_host().restart_server(name).await
    }

    /// Takes over the settings of the servers that all clients share. Call it immediately before
    /// [`Host::reload_with`](innkeeper_host::Host::reload_with) with the same configuration: clients then
    /// see added servers, and removed ones no more. The settings of private servers and of clients stay.
    pub fn reload(&self, config: &Config) {
        self.state.servers.reload(config);
    }
}

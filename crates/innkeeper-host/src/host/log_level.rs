//! The level of the log messages that servers send.

use futures_util::future::join_all;

use super::Host;
use crate::connection::log_level::{self, LogLevel};
use crate::error::{CallError, RoutingError, Violation};
use crate::lifecycle::ServerState;

impl Host {
    /// Sets the minimum level of the log messages of one server, or of all servers with `None`. The
    /// setting lasts until the next call, also for servers that start later. Log messages are
    /// [`HostEvent::Message`](crate::HostEvent::Message) events.
    ///
    /// In the legacy era the host sends `logging/setLevel` to each server that declares `logging`,
    /// and waits at most the server's `timeout` for each response. In the modern era the level is a
    /// part of each later request. Dropping the future cancels the requests without a response; the
    /// setting stays.
    ///
    /// # Errors
    ///
    /// Returns an error for an unknown server, and for a named server of the legacy era that does
    /// not declare `logging`. If servers reject the level, returns the error of the first such
    /// server after all servers responded.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use innkeeper_host::{CallError, Host, LogLevel};
    /// # async fn example(host: Host) -> Result<(), CallError> {
    /// host.set_log_level(None, LogLevel::Warning).await?;
    /// host.set_log_level(Some("files"), LogLevel::Debug).await?;
    /// # Ok(()) }
    /// ```
    pub async fn set_log_level(
        &self,
        server: Option<&str>,
        level: LogLevel,
    ) -> Result<(), CallError> {
        let registry = &self.0.registry;
        let levels = &self.0.launcher.client.log_levels;
        let servers = match server {
            None => {
                levels.set_all(level);
                registry.servers()
            }
            Some(name) => {
                let server = registry.server(name).ok_or_else(|| RoutingError::UnknownServer {
                    name: name.into(),
                    suggestion: None,
                })?;
                levels.set(&server.name, level);
                vec![server]
            }
        };
        let requests = servers.iter().map(|known| async {
            let entry = {
                let status = known.status();
                status.entry.clone().filter(|_| status.state == ServerState::Ready)
            };
            // A server that is not ready gets the level when it starts.
            let Some(entry) = entry else { return Ok(()) };
            let connection = &entry.connection;
            if server.is_some() && !log_level::can_set(connection) {
                return Err(undeclared(&known.name));
            }
            log_level::set(connection, level, known.config().calls.timeout).await
        });
        join_all(requests).await.into_iter().collect()
    }
}

/// Returns the error for a server that does not declare `logging`.
fn undeclared(server: &str) -> CallError {
    let message = format!("server `{server}` does not declare `logging`");
    let problems = vec![Violation { pointer: String::new(), message }];
    CallError::Validation { item: innkeeper_protocol::method::LOGGING_SET_LEVEL.into(), problems }
}

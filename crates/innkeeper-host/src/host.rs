//! The public API of a host.

mod builder;

mod log_level;
mod remote_sessions;
mod requests;
mod sign_in;
mod status;

mod change;
mod end;

use std::sync::Arc;

use innkeeper_config::Config;
use tokio::sync::{OnceCell, broadcast};

use crate::catalog::Catalog;
use crate::error::StartError;
use crate::event::HostEvent;
use crate::registry::Registry;
use crate::reload::Reloader;
use crate::server::launch::Launcher;
use crate::shutdown::{AwaitedShutdowns, ShutdownReport};
use crate::tasks::BackgroundTasks;

pub use builder::{HostBuilder, RunnerCheck};
pub use status::ServerStatus;

/// A set of running MCP servers with one namespace. Clones share the host. When the last clone is
/// dropped without [`Host::shutdown`], the host kills all servers at once.
///
/// # Examples
///
/// ```no_run
/// use innkeeper_host::{Config, Host};
/// use serde_json::json;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let host = Host::start(Config::from_file("mcp.json")?).await?;
/// let result = host.call_tool("files.read", json!({"path": "a.txt"})).await?;
/// println!("{}", result.raw());
/// let report = host.shutdown().await;
/// println!("clean: {}, after {:?}", report.is_clean(), report.took);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Host(Arc<HostInner>);

#[derive(Debug)]
struct HostInner {
    registry: Arc<Registry>,
    tasks: BackgroundTasks,
    launcher: Arc<Launcher>,
    reloader: Arc<Reloader>,
    shutdown: OnceCell<ShutdownReport>,
    awaited_shutdowns: AwaitedShutdowns,
}

impl Host {
    /// Starts all servers of a configuration with default options. The time limits and the effect
    /// of a dropped future are those of [`HostBuilder::start`].
    ///
    /// # Errors
    ///
    /// See [`HostBuilder::start`].
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::builder(config).start().await
    }

    /// Returns a builder for a host.
    pub fn builder(config: Config) -> HostBuilder {
        HostBuilder::new(config)
    }

    /// Returns a snapshot of the servers that accept calls, with their listings. Needs no await and
    /// no traffic.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.registry.catalog()
    }

    /// Subscribes to the events from now on. A receiver that lags more than 1,024 events loses the
    /// oldest events.
    ///
    /// The events contain every notification of the servers. To handle notifications, filter the
    /// events for [`HostEvent::Notification`]; without a receiver the host does no work for
    /// notifications of unknown methods.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use innkeeper_host::{Host, HostEvent};
    /// use tokio::sync::broadcast::error::RecvError;
    ///
    /// # async fn example(host: &Host) {
    /// let mut events = host.events();
    /// loop {
    ///     match events.recv().await {
    ///         Ok(HostEvent::Ready { server, tools, .. }) => println!("{server}: {tools} tools"),
    ///         Ok(HostEvent::Notification { server, method, params, .. }) => {
    ///             println!("{server}: {method:?} {}", params.map_or("null".into(), |raw| raw.to_string()));
    ///         }
    ///         Ok(_) => {}
    ///         Err(RecvError::Lagged(count)) => println!("{count} events lost"),
    ///         Err(RecvError::Closed) => break,
    ///     }
    /// }
    /// # }
    /// ```
    pub fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.0.registry.events().subscribe()
    }
}

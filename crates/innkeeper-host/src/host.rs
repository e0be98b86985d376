//! The face: start, catalog, calls, status, events, metrics, restart, shutdown. It forwards.

mod builder;

mod requests;
mod status;

mod change;
mod end;

use std::sync::Arc;

use tokio::sync::{OnceCell, broadcast};

use crate::catalog::Catalog;
use crate::config::Config;
use crate::error::StartError;
use crate::event::Event;
use crate::registry::Registry;
use crate::reload::Reloader;
use crate::server::launch::Launcher;
use crate::shutdown::ShutdownReport;
use crate::tasks::Tasks;

pub use builder::HostBuilder;
pub use status::ServerStatus;

/// Running MCP servers behind one set of names. Clones share the host; when the last one is
/// dropped without [`Host::shutdown`], all servers are killed at once.
#[derive(Clone, Debug)]
pub struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Arc<Registry>,
    tasks: Tasks,
    launcher: Arc<Launcher>,
    reloader: Arc<Reloader>,
    shutdown: OnceCell<ShutdownReport>,
}

impl Host {
    /// Starts all servers of a configuration with everything at its default.
    ///
    /// # Errors
    ///
    /// As [`HostBuilder::start`].
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::builder(config).start().await
    }

    /// A host that is not started yet.
    pub fn builder(config: Config) -> HostBuilder {
        HostBuilder::of(config)
    }

    /// The servers that take calls and all they offer, as of now; no await and no traffic.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.registry.catalog()
    }

    /// What happens from here on. A listener that lags more than 1,024 events loses the oldest.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.registry.events().listen()
    }
}

//! Options for the start of the servers, and the start.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use innkeeper_config::{ConfigError, ConfigWatcher};
use tokio::sync::{Mutex, OnceCell};

use super::HostBuilder;
use crate::error::StartError;
use crate::guard;
use crate::host::{Host, HostInner};
use crate::own_files::OwnFiles;
use crate::registry::{self, Registry};
use crate::reload::Reloader;
use crate::remote_session::RemoteSession;
use crate::server::launch::{Launcher, SilentServers, StartLimits, StartSlots};
use crate::server::{Server, endpoint_resolution};
use crate::shutdown::AwaitedShutdowns;
use crate::start;
use crate::trust::TrustPolicy;

/// How the servers start.
#[derive(Debug, Default)]
pub(super) struct StartOptions {
    /// Maximum wait for servers that start; `None` for as long as the starts take.
    wait: Option<Duration>,
    /// Default: as many as the configuration says.
    slots: Option<StartSlots>,
    leaves_stopped: bool,
    handshake_notes: Option<PathBuf>,
    continued_sessions: HashMap<String, RemoteSession>,
}

impl HostBuilder {
    /// Sets the longest time that [`start`](Self::start) waits for servers. After this time it returns a
    /// host whose slow servers go on starting: their state is
    /// [`ServerState::Starting`](crate::ServerState::Starting), and [`HostEvent::Ready`](crate::HostEvent::Ready) and
    /// [`HostEvent::CatalogChanged`](crate::HostEvent::CatalogChanged) follow. All servers are optional then, as with
    /// [`Config::with_optional_servers`](crate::Config::with_optional_servers). Default: as long as the starts take.
    #[must_use]
    pub fn start_wait(mut self, limit: Duration) -> Self {
        self.start.wait = Some(limit);
        self
    }

    /// Sets the directory for notes about servers that do not answer `server/discover`. For a week,
    /// the next host with the same directory sends them `initialize` first, and does not wait 5 s.
    /// The notes contain nothing but hashes of commands with their arguments. Default: the notes
    /// exist only in memory, for restarts.
    #[must_use]
    pub fn handshake_notes(mut self, directory: impl Into<PathBuf>) -> Self {
        self.start.handshake_notes = Some(directory.into());
        self
    }

    /// Continues a session of another host with a remote server ([`Host::remote_sessions`]), in place of the
    /// handshake of the first start. The server keeps what it knows of the session. The other host must no
    /// longer use the session.
    ///
    /// The host begins a session of its own if the server has another address or other configured headers
    /// than the session, or if the server forgot the session: [`RemoteSession::is_same`] tells. If the start fails, the
    /// session is not ended at the server. A session for an unknown server is ignored.
    #[must_use]
    pub fn continue_remote_session(
        mut self,
        server: impl Into<String>,
        session: RemoteSession,
    ) -> Self {
        self.start.continued_sessions.insert(server.into(), session);
        self
    }

    /// Sets the slots of servers that start at the same time, for hosts that share them. Default:
    /// `concurrentStarts` of the host's configuration.
    #[must_use]
    pub fn start_slots(mut self, slots: StartSlots) -> Self {
        self.start.slots = Some(slots);
        self
    }

    /// Leaves every server stopped, as after [`Host::stop_server`]: [`Host::restart_server`] starts a
    /// server, and does not wait for its dependencies. [`Self::start`] then runs no program. Default:
    /// all servers start.
    #[must_use]
    pub fn leave_stopped(mut self) -> Self {
        self.start.leaves_stopped = true;
        self
    }

    /// Starts all servers in dependency order.
    ///
    /// A server in [`Config::invalid`](crate::Config::invalid) is unavailable, and the servers that depend on the server do
    /// not start.
    ///
    /// At most `concurrentStarts` servers (default: 8) start at the same time. The host's
    /// `startTimeout` (default: 60 s) limits the start of all servers together. The `initTimeout` of
    /// each server (default: 30 s) limits the start of that server. Neither includes the wait for
    /// other starts, a sign-in, or the installation of a package, which `installTimeout` (default: 5
    /// minutes) limits. Dropping the future kills the started servers.
    ///
    /// # Errors
    ///
    /// Returns all problems of an invalid configuration. If a required server does not become
    /// ready, stops all servers and returns every such server.
    pub async fn start(self) -> Result<Host, StartError> {
        let protected = self.protected();
        let environment = self.inherited_environment().clone();
        let Self { mut config, mut endpoints, mut start, host, .. } = self;
        let connectors = std::mem::take(&mut endpoints.connectors);
        if start.wait.is_some() {
            config = config.with_optional_servers();
        }
        // The watcher exists before the start, so a change during the start is detected.
        let watch = self.watch.map(|trust| (ConfigWatcher::new(&config), trust));
        connectors.complete(&mut config)?;
        let own_files = OwnFiles::new(&config, &protected);
        let servers = config.servers.values();
        let servers =
            endpoint_resolution::prepare_start(servers, &environment, &connectors, &own_files)?;
        guard::prepare(config.servers.values());
        let servers = servers.into_iter().map(|settings| {
            let server = Server::new(settings);
            server.status().next_start.continued_session =
                start.continued_sessions.remove(&*server.name);
            Arc::new(server)
        });
        let bare = config.host.allow_bare_names;
        let invalid = registry::invalid_servers(&config);
        let events = host.events.clone();
        let registry = Arc::new(Registry::new(servers, invalid, bare, events, self.pin_verifier));
        let tasks = host.tasks.clone();
        let (supervisor, opener) = endpoints.open().await;
        let launcher = Arc::new(Launcher {
            host,
            client: self.client,
            sign_in: self.sign_in,
            supervisor,
            opener,
            start_limits: StartLimits {
                start_timeout: config.host.start_timeout,
                install_timeout: config.host.install_timeout,
                slots: start
                    .slots
                    .unwrap_or_else(|| StartSlots::new(config.host.concurrent_starts)),
            },
            silent_servers: SilentServers::new(start.handshake_notes),
        });
        let reloader = Arc::new(Reloader {
            registry: registry.clone(),
            launcher: launcher.clone(),
            environment,
            connectors,
            protected,
            host: config.host.clone(),
            config: ArcSwap::from_pointee(config.clone()),
            reload_lock: Mutex::default(),
        });
        let shutdown = OnceCell::new();
        let awaited_shutdowns = AwaitedShutdowns::default();
        let inner = HostInner { registry, tasks, launcher, reloader, shutdown, awaited_shutdowns };
        // The host exists before the first launch, so dropping this future kills the servers.
        let host = Host(Arc::new(inner));
        let HostInner { registry, launcher, .. } = &*host.0;
        if start.leaves_stopped {
            registry.leave_stopped();
        } else {
            match start.wait {
                Some(wait) => start::start_in_background(registry, launcher, &config, wait).await,
                None => start::start_all(registry, launcher, &config).await?,
            }
        }
        registry.open();
        host.watch(watch);
        Ok(host)
    }
}

impl Host {
    fn watch(&self, watch: Option<(Result<ConfigWatcher, ConfigError>, TrustPolicy)>) {
        let HostInner { reloader, tasks, .. } = &*self.0;
        match watch {
            Some((Ok(watch), trust)) => tasks.spawn(reloader.clone().watch(watch, trust)),
            Some((Err(error), _)) => reloader.report_failure(&error),
            None => {}
        }
    }
}

//! Takes up another configuration while the host runs: starts, stops and keeps exactly what it should.

pub(crate) mod difference;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

use crate::audit::Fact;
use crate::config::{Config, ConfigError, Environment, HostConfig, Problem, ServerConfig, Watch};
use crate::error::{RestartError, ServerFailure};
use crate::event::Event;
use crate::guard;
use crate::registry::Registry;
use crate::server::launch::{Launcher, Limit};
use crate::server::{Server, Settings};
use crate::shutdown::{self, DRAIN};
use crate::start::{self, Start, Wish};
use crate::trust::{LaunchSpec, Trust};

/// What is taken up, and how far.
#[derive(Clone, Debug, Default)]
pub struct ReloadOptions {
    /// The configuration. Default: what stands now in the files of the one before.
    pub config: Option<Config>,
    /// Whether servers whose settings changed are started again at once, those others depend on
    /// first. Default: they run on until [`Host::restart_server`](crate::Host::restart_server).
    pub apply_changes: bool,
}

/// What a reload has done; all lists are in the order of the configuration.
#[derive(Debug, Default)]
pub struct ReloadReport {
    /// Servers that are new, whether they became ready or not.
    pub added: Vec<Arc<str>>,
    /// Servers that are no longer there; their calls had a second to finish.
    pub removed: Vec<Arc<str>>,
    /// Servers that run with other settings than the configuration has had since they were started.
    pub changed: Vec<ServerChange>,
    /// Those that did not become ready; they are unavailable and the others are not touched.
    pub failed: Vec<ServerFailure>,
    /// Keys of `host` that changed and need a new host.
    pub host: Vec<&'static str>,
    /// Servers that nobody has decided on: new ones stay out, changed ones stay as they are.
    pub not_trusted: Vec<Arc<str>>,
    /// What is doubtful in the configuration.
    pub warnings: Vec<Problem>,
}

/// A server with changed settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerChange {
    /// The server.
    pub server: Arc<str>,
    /// The keys that changed.
    pub keys: Vec<&'static str>,
    /// Those of them that wait until the server is started again.
    pub pending: Vec<&'static str>,
}

impl ReloadReport {
    /// Whether nothing at all was different.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
            && self.host.is_empty()
            && self.not_trusted.is_empty()
    }
}

/// Why a configuration was not taken up; everything is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It cannot be used.
    #[error("the configuration was not taken up")]
    Config(#[from] ConfigError),
    /// The one before was not read from files, and none was given.
    #[error("the configuration was not read from a file, so it cannot be read again")]
    NoFiles,
    /// The host is shutting down or was shut down.
    #[error("the host is shutting down")]
    Shutdown,
}

/// What is needed to take up another configuration.
#[derive(Debug)]
pub(crate) struct Reloader {
    pub(crate) registry: Arc<Registry>,
    pub(crate) launcher: Arc<Launcher>,
    /// What servers inherit from.
    pub(crate) environment: Environment,
    /// The settings the host was started with; they stay.
    pub(crate) host: HostConfig,
    /// The configuration that was taken up last.
    pub(crate) config: ArcSwap<Config>,
    /// Held during a reload: one at a time.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// What a configuration asks for.
struct Plan {
    /// Servers there are, with what the configuration says of them.
    kept: Vec<Kept>,
    /// Every server from now on, in order.
    servers: Vec<Arc<Server>>,
    report: ReloadReport,
}

struct Kept {
    server: Arc<Server>,
    config: ServerConfig,
    /// What it is started with the next time, if that is something else.
    start: Option<Settings>,
}

impl Reloader {
    /// Takes up a configuration. Dropping the future leaves it half done.
    pub(crate) async fn reload(
        &self,
        options: ReloadOptions,
        trust: &Trust,
    ) -> Result<ReloadReport, ReloadError> {
        let _turn = self.turn.lock().await;
        let result = tokio::select! {
            biased;
            () = self.registry.closed() => Err(ReloadError::Shutdown),
            result = self.take_up(options, trust) => result,
        };
        self.tell(&result);
        result
    }

    /// Takes up what the files hold whenever that is something else, for as long as the host lives.
    pub(crate) async fn watch(self: Arc<Self>, mut watch: Watch, trust: Trust) {
        loop {
            tokio::select! {
                biased;
                () = self.registry.closed() => return,
                () = watch.changed() => {}
            }
            // How it went was told, but for this.
            let reloaded = self.reload(ReloadOptions::default(), &trust).await;
            if matches!(reloaded, Err(ReloadError::NoFiles)) {
                tracing::warn!("the configuration comes from no file any more, none is watched");
                return;
            }
        }
    }

    async fn take_up(
        &self,
        options: ReloadOptions,
        trust: &Trust,
    ) -> Result<ReloadReport, ReloadError> {
        let before = self.config.load_full();
        let config = match options.config {
            Some(config) => config,
            None => before.read_again().ok_or(ReloadError::NoFiles)??,
        };
        let Plan { kept, servers, mut report } = self.plan(&config, trust)?;
        guard::prepare(config.servers.values());
        for Kept { server, config, start } in kept {
            let change = server.want(&config, start);
            if !change.now.is_empty() {
                self.registry.shelve_again(&server);
            }
            if !change.is_empty() {
                let (server, keys) = (server.name.clone(), change.keys());
                report.changed.push(ServerChange { server, keys, pending: change.later });
            }
        }
        for undecided in report.not_trusted.iter().filter_map(|name| self.registry.server(name)) {
            // What waited is not what the configuration says any more.
            undecided.status().pending = None;
        }
        let leaving = self.registry.replace(servers);
        report.removed = leaving.iter().map(|server| server.name.clone()).collect();
        report.warnings.clone_from(&config.warnings);
        self.config.store(Arc::new(config.clone()));
        self.stop(&before, &leaving).await;
        let waiting = |name: &str| options.apply_changes && self.is_pending(name);
        report.failed = self.start(&config, &report.added, waiting).await;
        Ok(report)
    }

    /// Decides what is to be done and makes sure that it can be, before anything is.
    fn plan(&self, config: &Config, trust: &Trust) -> Result<Plan, ReloadError> {
        let host = difference::of_host(&self.host, &config.host);
        let mut report = ReloadReport { host, ..ReloadReport::default() };
        let mut launched = Vec::new();
        for server in config.servers.values() {
            let running = self.registry.server(&server.name);
            if running.as_ref().is_some_and(|running| !may_start(running, server)) {
                continue;
            }
            if decided(running.as_deref(), server, config, trust) {
                launched.push(server);
            } else {
                report.not_trusted.push(server.name.as_str().into());
            }
        }
        let prepared = start::prepare(launched, &self.environment)?.into_iter();
        let mut prepared: HashMap<String, Settings> =
            prepared.map(|settings| (settings.config.name.clone(), settings)).collect();
        let (mut kept, mut servers) = (Vec::new(), Vec::new());
        for config in config.servers.values() {
            let start = prepared.remove(&config.name);
            match (self.registry.server(&config.name), start) {
                (Some(server), start) => {
                    servers.push(server.clone());
                    if !report.not_trusted.contains(&server.name) {
                        kept.push(Kept { server, config: config.clone(), start });
                    }
                }
                (None, Some(settings)) => {
                    let server = Arc::new(Server::new(settings));
                    report.added.push(server.name.clone());
                    servers.push(server);
                }
                // Nobody has decided on it.
                (None, None) => {}
            }
        }
        Ok(Plan { kept, servers, report })
    }

    fn is_pending(&self, name: &str) -> bool {
        self.registry.server(name).is_some_and(|server| server.status().pending.is_some())
    }

    /// Lets the calls of these finish for a while, then stops them, dependents first.
    async fn stop(&self, before: &Config, leaving: &[Arc<Server>]) {
        let finish = async {
            for server in leaving {
                // Whoever is starting it gives up at once.
                drop(server.turn.lock().await);
                let shelf = server.status().shelf.clone();
                if let Some(shelf) = shelf {
                    shelf.connection.session.idle().await;
                }
            }
        };
        // Calls that need longer fail as the servers stop.
        drop(timeout(DRAIN, finish).await);
        let find = |name: &str| leaving.iter().find(|server| &*server.name == name).cloned();
        shutdown::stop_waves(before, find).await;
        self.registry.left();
        for server in leaving {
            self.launcher.sign_in.forget(&server.name);
        }
    }

    /// Starts what was added and starts again what `waits` for it, those others depend on first.
    async fn start(
        &self,
        config: &Config,
        added: &[Arc<str>],
        waits: impl Fn(&str) -> bool,
    ) -> Vec<ServerFailure> {
        let allowed = self.host.start_timeout;
        let mut failed = Vec::new();
        for wave in config.waves() {
            // Restarts have a time of their own, which is not to be taken from those after them.
            let limit = Limit { ends: Instant::now() + allowed, allowed };
            let starts = wave.into_iter().filter_map(|name| {
                let server = self.registry.server(name)?;
                let start = Start::of(&self.registry, &self.launcher, &server);
                let is_new = added.contains(&server.name);
                (is_new || waits(name)).then_some((start, is_new))
            });
            let starts = starts.map(async |(start, is_new)| {
                if is_new {
                    return start.added(limit).await.err();
                }
                match start::restart(start, Wish::Asked).await {
                    Err(RestartError::Failed(failure)) => Some(*failure),
                    // Another reload cannot have removed it; of a shutdown nothing is told.
                    Ok(()) | Err(RestartError::Unknown(_) | RestartError::Shutdown) => None,
                }
            });
            failed.extend(join_all(starts).await.into_iter().flatten());
        }
        failed.sort_by_key(|failure| config.servers.get_index_of(&*failure.server));
        failed
    }

    /// Tells of a configuration that cannot be used, or not be watched.
    pub(crate) fn failed(&self, error: &ConfigError) {
        let problems = error.0.clone();
        let error: &dyn std::error::Error = error;
        tracing::error!(error, "reload failed");
        self.registry.events().publish(Event::ReloadFailed { problems });
    }

    fn tell(&self, result: &Result<ReloadReport, ReloadError>) {
        let events = self.registry.events();
        match result {
            Ok(report) if report.is_empty() => tracing::debug!("reloaded, nothing changed"),
            Ok(report) => {
                let changed: Vec<_> =
                    report.changed.iter().map(|change| change.server.clone()).collect();
                let (added, removed) = (report.added.join(","), report.removed.join(","));
                let (host, names) = (report.host.join(","), changed.join(","));
                tracing::info!(added, removed, changed = names, host, "reloaded");
                for change in report.changed.iter().filter(|change| !change.pending.is_empty()) {
                    let (server, keys) = (&*change.server, change.pending.join(","));
                    tracing::info!(server, keys, "settings wait until it is started again");
                }
                for server in &report.not_trusted {
                    Fact::NotTrusted.tell(server);
                    events.publish(Event::NotTrusted { server: server.clone() });
                }
                let (added, removed) = (report.added.clone(), report.removed.clone());
                events.publish(Event::Reloaded { added, removed, changed });
            }
            Err(ReloadError::Config(error)) => self.failed(error),
            Err(ReloadError::NoFiles | ReloadError::Shutdown) => {}
        }
    }
}

/// Whether this configuration needs a decision, or can be news to a server at its next start. Where
/// other settings wait for that, a restart may put them into effect before this one is wanted.
fn may_start(running: &Server, config: &ServerConfig) -> bool {
    let pending = running.status().pending.is_some();
    let running = running.config();
    let weaker = !config.guard.covers(running.guard);
    pending || weaker || !difference::between(&running, config).later.is_empty()
}

/// Whether a server may be started in this way: because somebody says so now, or did before.
fn decided(
    running: Option<&Server>,
    server: &ServerConfig,
    config: &Config,
    trust: &Trust,
) -> bool {
    let of = |server: &ServerConfig| LaunchSpec::of(server, config.environment.current_dir());
    let launch = of(server);
    let Some(running) = running else { return trust.allows(&launch) };
    let waits = running.status().pending.as_ref().map(|waits| waits.settings.config.clone());
    let known =
        waits.iter().any(|waits| launch.is(&of(waits))) || launch.is(&of(&running.config()));
    known || trust.allows(&launch)
}

#[cfg(test)]
mod tests;

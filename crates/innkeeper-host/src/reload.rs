//! Applies a new configuration to a running host.

mod plan;
mod report;

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::{join, join_all};
use innkeeper_config::difference;
use innkeeper_config::{Config, ConfigError, ConfigWatcher, Environment, HostConfig};
use tokio::time::{Instant, timeout};

use crate::audit::AuditEvent;
use crate::error::{RestartError, ServerFailure, UnavailableReason};
use crate::event::HostEvent;
use crate::guard;
use crate::lifecycle::ServerState;
use crate::registry::{self, Registry};
use crate::server::Server;
use crate::server::connector::Connectors;
use crate::server::launch::{Launcher, StartDeadline};
use crate::shutdown::{self, DRAIN_TIMEOUT};
use crate::start::{self, RestartTrigger, ServerStart};
use crate::trust::TrustPolicy;
use plan::{ReloadPlan, RetainedServer};
pub use report::{ReloadError, ReloadOptions, ReloadReport, ServerChange};

#[derive(Debug)]
pub(crate) struct Reloader {
    pub(crate) registry: Arc<Registry>,
    pub(crate) launcher: Arc<Launcher>,
    /// Environment that servers inherit from.
    pub(crate) environment: Environment,
    /// In-process servers of the application.
    pub(crate) connectors: Connectors,
    /// Files and directories of the application that no sandbox may write.
    pub(crate) protected: Vec<PathBuf>,
    /// Settings at the start of the host, which a reload does not change.
    pub(crate) host: HostConfig,
    /// Last applied configuration.
    pub(crate) config: ArcSwap<Config>,
    /// Held during a reload, so that reloads do not overlap.
    pub(crate) reload_lock: tokio::sync::Mutex<()>,
}

impl Reloader {
    /// Applies a configuration. Dropping the future leaves the configuration partly applied.
    pub(crate) async fn reload(
        &self,
        options: ReloadOptions,
        trust: &TrustPolicy,
    ) -> Result<ReloadReport, ReloadError> {
        let _turn = self.reload_lock.lock().await;
        let result = tokio::select! {
            biased;
            () = self.registry.closed() => Err(ReloadError::Shutdown),
            result = self.apply(options, trust) => result,
        };
        self.report_result(&result);
        result
    }

    /// Reloads after every change of the files, for the lifetime of the host.
    pub(crate) async fn watch(self: Arc<Self>, mut watch: ConfigWatcher, trust: TrustPolicy) {
        loop {
            tokio::select! {
                biased;
                () = self.registry.closed() => return,
                () = watch.changed() => {}
            }
            // `reload` reports all other results itself.
            let reloaded = self.reload(ReloadOptions::default(), &trust).await;
            if matches!(reloaded, Err(ReloadError::NoFiles)) {
                tracing::warn!("file watch stopped: the configuration has no files");
                return;
            }
        }
    }

    async fn apply(
        &self,
        options: ReloadOptions,
        trust: &TrustPolicy,
    ) -> Result<ReloadReport, ReloadError> {
        let before = self.config.load_full();
        let mut config = match options.config {
            Some(config) => config,
            None => before.reload().ok_or(ReloadError::NoFiles)??,
        };
        let invalid_names = config.invalid.keys().map(|name| name.as_str().into()).collect();
        keep_earlier_entries(&mut config, &before);
        self.connectors.complete(&mut config)?;
        let ReloadPlan { retained: retained_servers, servers, mut report } =
            self.plan(&config, trust)?;
        guard::prepare(config.servers.values());
        for RetainedServer { server, config, restart_settings } in retained_servers {
            let change = server.apply_config(&config, restart_settings);
            if !change.immediate.is_empty() {
                self.registry.rebuild_entry(&server);
            }
            if !change.is_empty() {
                let server = server.name.clone();
                let keys = change.keys();
                report.changed.push(ServerChange { server, keys, pending: change.deferred });
            }
        }
        for undecided in report.not_trusted.iter().filter_map(|name| self.registry.server(name)) {
            // The pending settings are no longer those of the configuration.
            undecided.status().next_start.pending_settings = None;
        }
        report.invalid = invalid_names;
        let leaving = self.registry.replace(servers, registry::invalid_servers(&config));
        self.registry.report_invalid_servers();
        report.removed = leaving.iter().map(|server| server.name.clone()).collect();
        report.warnings.clone_from(&config.warnings);
        self.config.store(Arc::new(config.clone()));
        let stopping = self.stop_removed(&before, &leaving);
        let starting = self.start_servers(&config, &report.added, |name| {
            options.apply_changes && (self.is_pending(name) || self.has_failed_start(name))
        });
        report.failed = if has_renamed_server(&config, &report.added, &leaving) {
            stopping.await;
            starting.await
        } else {
            // A slow stop delays no start.
            join(stopping, starting).await.1
        };
        Ok(report)
    }

    fn is_pending(&self, name: &str) -> bool {
        self.registry.server(name).is_some_and(|server| {
            let status = server.status();
            // A stopped server applies the settings when the application starts it again.
            status.next_start.pending_settings.is_some() && !status.is_stop_requested
        })
    }

    /// Returns whether the last start of a server failed: what it lacked may be there now.
    fn has_failed_start(&self, name: &str) -> bool {
        self.registry.server(name).is_some_and(|server| {
            let status = server.status();
            status.state == ServerState::Unavailable
                && !status.is_stop_requested
                && matches!(status.unavailable_reason, Some(UnavailableReason::NotStarted(_)))
        })
    }

    /// Drains the calls of removed servers, then stops the servers, dependents first.
    async fn stop_removed(&self, before: &Config, leaving: &[Arc<Server>]) {
        let drain = async {
            for server in leaving {
                // A concurrent start of this server gives up at once.
                let _ = server.restart_lock.lock().await;
                let current = server.status().entry.clone();
                if let Some(current) = current {
                    current.connection.session.idle().await;
                }
            }
        };
        // Longer calls fail when the servers stop.
        let _ = timeout(DRAIN_TIMEOUT, drain).await;
        shutdown::stop_waves(before, None, |name| {
            leaving.iter().find(|server| &*server.name == name).cloned()
        })
        .await;
        self.registry.clear_draining();
        for server in leaving {
            self.launcher.sign_in.forget(&server.name);
        }
    }

    /// Starts added servers and restarts servers for which `waits` returns true, dependencies
    /// first.
    async fn start_servers(
        &self,
        config: &Config,
        added: &[Arc<str>],
        waits: impl Fn(&str) -> bool,
    ) -> Vec<ServerFailure> {
        let timeout = self.host.start_timeout;
        let mut failures = Vec::new();
        for wave in config.waves() {
            // Each wave has its own deadline, so that restarts take no time from later waves.
            let limit = StartDeadline { deadline: Instant::now() + timeout, timeout };
            let starts = wave.into_iter().filter_map(|name| {
                let server = self.registry.server(name)?;
                let start = ServerStart::new(&self.registry, &self.launcher, &server);
                let is_new = added.contains(&server.name);
                (is_new || waits(name)).then_some((start, is_new))
            });
            let starts = starts.map(async |(start, is_new)| {
                if is_new {
                    return start.start_added(limit).await.err();
                }
                match start::restart(start, RestartTrigger::Requested).await {
                    Err(RestartError::Failed(failure)) => Some(*failure),
                    // No other reload can have removed the server; a shutdown is not reported.
                    Ok(()) | Err(RestartError::UnknownServer(_) | RestartError::Shutdown) => None,
                }
            });
            failures.extend(join_all(starts).await.into_iter().flatten());
        }
        failures.sort_by_key(|failure| config.servers.get_index_of(&*failure.server));
        failures
    }

    /// Reports a configuration that cannot be used or watched.
    pub(crate) fn report_failure(&self, error: &ConfigError) {
        let diagnostics = error.0.clone();
        let error: &dyn std::error::Error = error;
        tracing::error!(error, "reload failed");
        self.registry.events().publish(HostEvent::ReloadFailed { diagnostics });
    }

    fn report_result(&self, result: &Result<ReloadReport, ReloadError>) {
        let events = self.registry.events();
        match result {
            Ok(report) if report.is_empty() => tracing::debug!("reloaded without changes"),
            Ok(report) => {
                let changed: Vec<_> =
                    report.changed.iter().map(|change| change.server.clone()).collect();
                let added = report.added.join(",");
                let removed = report.removed.join(",");
                let host = report.host_keys.join(",");
                let names = changed.join(",");
                tracing::info!(added, removed, changed = names, host, "reloaded");
                for change in report.changed.iter().filter(|change| !change.pending.is_empty()) {
                    let server = &*change.server;
                    let keys = change.pending.join(",");
                    tracing::info!(server, keys, "settings pending until restart");
                }
                for server in &report.not_trusted {
                    AuditEvent::NotTrusted.emit(server);
                    events.publish(HostEvent::NotTrusted { server: server.clone() });
                }
                let added = report.added.clone();
                let removed = report.removed.clone();
                events.publish(HostEvent::Reloaded { added, removed, changed });
            }
            Err(ReloadError::Config(error)) => self.report_failure(error),
            Err(ReloadError::NoFiles | ReloadError::Shutdown) => {}
        }
    }
}

/// Replaces each entry with errors by the earlier entry of the server, if any.
fn keep_earlier_entries(config: &mut Config, before: &Config) {
    let Config { servers, invalid, .. } = config;
    invalid.retain(|name, entry| {
        let Some(earlier) = before.servers.get(name) else { return true };
        let problems = entry.reason();
        tracing::warn!(server = &**name, problems, "invalid entry; the server keeps its settings");
        servers.insert(name.clone(), earlier.clone());
        false
    });
}

/// Returns whether an added server is a removed one under another name: both may need the same file or
/// port.
fn has_renamed_server(config: &Config, added: &[Arc<str>], leaving: &[Arc<Server>]) -> bool {
    let mut added = added.iter().filter_map(|name| config.servers.get(&**name));
    added.any(|new| {
        leaving
            .iter()
            .any(|server| difference::compare_servers(&server.config(), new).deferred.is_empty())
    })
}

#[cfg(test)]
mod tests;

//! The steps of a reload, which are computed and checked before any of them runs.

use std::collections::HashMap;
use std::sync::Arc;

use innkeeper_config::{Config, ServerConfig, difference};

use super::{ReloadError, ReloadReport, Reloader};
use crate::own_files::OwnFiles;
use crate::server::{Server, ServerSettings, endpoint_resolution};
use crate::trust::{LaunchSpec, TrustPolicy};

/// The steps to apply a configuration.
pub(super) struct ReloadPlan {
    /// Running servers with their new configuration.
    pub(super) retained: Vec<RetainedServer>,
    /// All servers after the reload, in order.
    pub(super) servers: Vec<Arc<Server>>,
    pub(super) report: ReloadReport,
}

pub(super) struct RetainedServer {
    pub(super) server: Arc<Server>,
    pub(super) config: ServerConfig,
    /// Settings for the next start, if they differ.
    pub(super) restart_settings: Option<ServerSettings>,
}

impl Reloader {
    /// Computes all steps and checks that they are possible, before any step runs.
    pub(super) fn plan(
        &self,
        config: &Config,
        trust: &TrustPolicy,
    ) -> Result<ReloadPlan, ReloadError> {
        let host_keys = difference::changed_host_keys(&self.host, &config.host);
        let mut report = ReloadReport { host_keys, ..ReloadReport::default() };
        let mut launched = Vec::new();
        for server in config.servers.values() {
            let running = self.registry.server(&server.name);
            if running.as_ref().is_some_and(|running| !may_need_approval(running, server)) {
                continue;
            }
            if is_approved(running.as_deref(), server, config, trust) {
                launched.push(server);
            } else {
                report.not_trusted.push(server.name.as_str().into());
            }
        }
        let prepared = endpoint_resolution::prepare_start(
            launched,
            &self.environment,
            &self.connectors,
            &OwnFiles::new(config, &self.protected),
        )?;
        let mut prepared: HashMap<String, ServerSettings> =
            prepared.into_iter().map(|settings| (settings.config.name.clone(), settings)).collect();
        let mut retained_servers = Vec::new();
        let mut servers = Vec::new();
        for config in config.servers.values() {
            let start = prepared.remove(&config.name);
            match (self.registry.server(&config.name), start) {
                (Some(server), restart_settings) => {
                    servers.push(server.clone());
                    if !report.not_trusted.contains(&server.name) {
                        retained_servers.push(RetainedServer {
                            server,
                            config: config.clone(),
                            restart_settings,
                        });
                    }
                }
                (None, Some(settings)) => {
                    let server = Arc::new(Server::new(settings));
                    report.added.push(server.name.clone());
                    servers.push(server);
                }
                // The server has no approval.
                (None, None) => {}
            }
        }
        Ok(ReloadPlan { retained: retained_servers, servers, report })
    }
}

/// Returns whether this configuration may need approval: it can change the server at its next
/// start. While settings are pending, a restart may apply them before this configuration.
pub(super) fn may_need_approval(running: &Server, config: &ServerConfig) -> bool {
    let pending = running.status().next_start.pending_settings.is_some();
    let running = running.config();
    let weaker = !config.guard.covers(running.guard);
    pending || weaker || !difference::compare_servers(&running, config).deferred.is_empty()
}

/// Returns whether a server may start with this launch: the user approves it now or approved it
/// before.
fn is_approved(
    running: Option<&Server>,
    server: &ServerConfig,
    config: &Config,
    trust: &TrustPolicy,
) -> bool {
    let here = config.environment.current_dir();
    let launch = LaunchSpec::for_server(server, here);
    let Some(running) = running else { return trust.allows(&launch) };
    let waits = running
        .status()
        .next_start
        .pending_settings
        .as_ref()
        .map(|waits| waits.settings.config.clone());
    waits
        .into_iter()
        .chain([running.config()])
        .any(|approved| launch.is_covered_by(&LaunchSpec::for_server(&approved, here)))
        || trust.allows(&launch)
}

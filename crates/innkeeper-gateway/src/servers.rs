//! Who runs what: the host of all clients, the hosts of one principal or session, and which of their
//! servers run.
//!
//! A host of one principal or session starts when its client first needs it (`sharing.rs`); its servers
//! start at their first use and stop when nobody uses them (`idle.rs`). Events of all hosts come back
//! through `events.rs`.

mod builder;
mod callbacks;
mod events;
mod first_use;
mod idle;
mod owned;
mod private_servers;
mod settings;
mod sharing;
mod start_turns;

use std::sync::Arc;

use arc_swap::ArcSwap;
use innkeeper_host::{Config, Host, ServerState};

use crate::audit_log::AuditLog;
use crate::bindings::Endpoints;
use crate::parked_calls::ParkedCalls;
use crate::process_limits::ProcessLimits;
use crate::sole_client::SoleClient;
use crate::subscribers::Subscribers;
use crate::tasks::GatewayTasks;
use crate::upstream::Upstream;
pub(crate) use builder::{ServersBuilder, ServersContext};
use callbacks::GatewayCallbacks;
pub(crate) use first_use::{FirstUser, UnstartedServer};
pub(crate) use owned::ChangedSessions;
use owned::ReplicatedServers;
pub(crate) use private_servers::PrepareHost;
use settings::ServerSettings;
use sharing::Sharing;
pub(crate) use sharing::{Continuation, PrivateState, SharedHost};
use start_turns::StartTurns;

/// The servers of a gateway, in hosts.
#[derive(Debug)]
pub(crate) struct Servers {
    /// The host of all clients.
    shared: Arc<Upstream>,
    /// The hosts of single principals and sessions.
    sharing: Sharing,
    starts: ServerStarts,
    callbacks: GatewayCallbacks,
    replicated: Option<ReplicatedServers>,
    endpoints: Arc<Endpoints>,
    observers: ServerObservers,
    tasks: GatewayTasks,
}

#[derive(Debug)]
struct ServerStarts {
    settings: ArcSwap<ServerSettings>,
    limits: ProcessLimits,
    turns: Arc<StartTurns>,
}

/// What changes of servers concern.
#[derive(Debug)]
pub(crate) struct ServerObservers {
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) parked_calls: Arc<ParkedCalls>,
    pub(crate) audit_log: Arc<AuditLog>,
}

impl Servers {
    /// Returns the host of all clients.
    pub(crate) fn shared_host(&self) -> &Host {
        &self.shared.host
    }

    /// Returns whether the gateway stopped a server that all clients share: its next use starts it.
    pub(crate) fn is_stopped(&self, name: &str) -> bool {
        self.shared.dormant.is_stopped(name)
    }

    /// Returns the client of a gateway that has only one.
    pub(crate) fn sole_client(&self) -> Option<&SoleClient> {
        self.callbacks.sole_client.as_ref()
    }

    /// Returns a required server that is not ready, and its state.
    pub(crate) fn missing_required(&self) -> Option<(Arc<str>, ServerState)> {
        let settings = self.starts.settings.load();
        let mut missing = self.shared.host.status().into_iter().filter(|(name, status)| {
            settings.is_required(name)
                && status.state != ServerState::Ready
                && !self.shared.dormant.is_stopped(name)
        });
        missing.next().map(|(name, status)| (name, status.state))
    }

    fn settings(&self) -> Arc<ServerSettings> {
        self.starts.settings.load_full()
    }

    /// Takes over the settings of the servers that all clients share.
    pub(crate) fn reload(&self, config: &Config) {
        let required = config.servers.iter().filter(|(_, server)| server.required);
        let required = required.map(|(name, _)| name.clone()).collect();
        let settings = ServerSettings::new(config, self.starts.limits.memory().is_some());
        let settings = settings.with_required(required);
        self.shared.servers.set_stoppable(settings.stoppable());
        self.starts.settings.store(Arc::new(settings));
    }
}

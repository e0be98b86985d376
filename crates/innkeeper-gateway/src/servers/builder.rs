//! From the settings of a gateway to its servers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use innkeeper_host::{Config, Host, HostBuilder};
use tokio::time::sleep;

use super::callbacks::{GatewayCallbacks, UpstreamCell};
use super::owned::ReplicatedServers;
use super::private_servers::{PrepareHost, PrivateServers};
use super::settings::ServerSettings;
use super::sharing::Sharing;
use super::start_turns::StartTurns;
use super::{ServerObservers, ServerStarts, Servers, events, idle, owned};
use crate::bindings::Endpoints;
use crate::options::{GatewayOptions, ServerLimits};
use crate::principal::Principal;
use crate::process_limits::ProcessLimits;
use crate::replicas::Replicas;
use crate::sole_client::SoleClient;
use crate::tasks::GatewayTasks;
use crate::upstream::Upstream;
use crate::view::View;

/// Interval of the search for unused hosts.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(10);

/// Prepares the servers: a host must know the gateway's callbacks before its servers start.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServersBuilder {
    callbacks: GatewayCallbacks,
    settings: ServerSettings,
    start_turns: Arc<StartTurns>,
    private: PrivateServers,
    /// The host of all clients, once the gateway is built.
    shared: UpstreamCell,
}

/// What the servers use of the gateway.
pub(crate) struct ServersContext<'a> {
    pub(crate) options: &'a GatewayOptions,
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) observers: ServerObservers,
    pub(crate) replicas: Option<Replicas>,
    pub(crate) tasks: GatewayTasks,
}

impl ServersBuilder {
    pub(crate) fn for_one_client() -> Self {
        let callbacks = GatewayCallbacks { sole_client: Some(SoleClient::default()) };
        Self { callbacks, ..Self::default() }
    }

    /// Sets when servers start and stop. With a maximum of memory, each server with a process may stop.
    pub(crate) fn configure(&mut self, config: &Config, has_memory_limit: bool) {
        self.settings = ServerSettings::new(config, has_memory_limit);
        self.start_turns = Arc::new(StartTurns::new(config.host.concurrent_starts));
    }

    /// Adds the servers of a configuration that not all clients share.
    pub(crate) fn add_private(&mut self, config: &Config, prepare: &PrepareHost) {
        self.private = PrivateServers::new(config, prepare);
    }

    /// Registers the callbacks with the host of all clients.
    pub(crate) fn register(&self, builder: HostBuilder) -> HostBuilder {
        let builder = self.callbacks.register(builder, &self.shared, None);
        builder.start_slots(self.start_turns.slots())
    }

    /// Creates the servers from the started host of all clients.
    pub(crate) fn build(self, host: Host, context: ServersContext<'_>) -> Arc<Servers> {
        let ServersContext { options, endpoints, tasks, .. } = context;
        let settings = self.settings.with_required(options.required_servers.clone());
        let ServerLimits { max_processes, max_memory } = options.server_limits;
        let process_limits = ProcessLimits::new(max_processes, max_memory);
        let with_process = host.status().into_keys().filter(|name| settings.has_process(name));
        let all_clients = Principal::local_user();
        let processes = with_process
            .filter_map(|name| Some((name, process_limits.reserve_running(&all_clients)?)))
            .collect();
        let shared = Arc::new(Upstream::new(host, settings.stoppable(), processes));
        // A builder that builds two gateways passes requests to the first.
        let _ = self.shared.set(Arc::downgrade(&shared));
        let view = Arc::new(View::shared(shared.clone(), endpoints.all().len()));
        // Warns of items that are left out.
        let common = endpoints.all().iter().enumerate();
        for (index, endpoint) in common.filter(|(_, one)| !one.is_legacy && !one.is_bound) {
            view.offering(index, &endpoint.options);
        }
        let replicas = context.replicas;
        let servers = Arc::new(Servers {
            shared: shared.clone(),
            sharing: Sharing::new(self.private, view, options.idle_session),
            starts: ServerStarts {
                settings: ArcSwap::from_pointee(settings),
                limits: process_limits,
                turns: self.start_turns,
            },
            callbacks: self.callbacks,
            replicated: replicas.clone().map(ReplicatedServers::new),
            endpoints,
            observers: context.observers,
            tasks: tasks.clone(),
        });
        tasks.spawn(events::forward_events(Arc::downgrade(&servers), &shared, None));
        tasks.spawn(end_unused(Arc::downgrade(&servers)));
        tasks.spawn(idle::stop_idle_servers(Arc::downgrade(&servers)));
        if let Some(replicas) = replicas {
            let weak = Arc::downgrade(&servers);
            tasks.spawn(owned::end_singletons_in_time(weak, replicas));
        }
        servers
    }
}

async fn end_unused(servers: Weak<Servers>) {
    loop {
        sleep(CLEANUP_INTERVAL).await;
        let Some(servers) = servers.upgrade() else { return };
        servers.upstreams().iter().for_each(|upstream| upstream.remove_ended_tasks());
        servers.end_unused_hosts();
    }
}

//! The servers that not all clients share, by their sharing policy.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use innkeeper_host::config::{Share, TransportConfig};
use innkeeper_host::{Config, HostBuilder};

pub(crate) type PrepareHost = Arc<dyn Fn(HostBuilder) -> HostBuilder + Send + Sync>;

/// The servers of a gateway that not all clients share.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrivateServers {
    pub(super) singleton: Option<ServerGroup>,
    pub(super) principal: Option<ServerGroup>,
    pub(super) session: Option<ServerGroup>,
}

/// Servers with one sharing policy: the servers of one host.
#[derive(Clone)]
pub(super) struct ServerGroup {
    pub(super) config: Config,
    pub(super) prepare: PrepareHost,
}

impl fmt::Debug for ServerGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerGroup").field("config", &self.config).finish_non_exhaustive()
    }
}

impl ServerGroup {
    fn new(config: &Config, share: Share, prepare: &PrepareHost) -> Option<Self> {
        // A server that does not start must not take the others from the client.
        let config = config.shared_by(share).with_optional_servers();
        (!config.servers.is_empty()).then(|| Self { config, prepare: prepare.clone() })
    }
}

impl PrivateServers {
    /// Returns the servers of a configuration; `prepare` completes each of their hosts.
    pub(super) fn new(config: &Config, prepare: &PrepareHost) -> Self {
        Self {
            singleton: ServerGroup::new(config, Share::Singleton, prepare),
            principal: ServerGroup::new(config, Share::Principal, prepare),
            session: ServerGroup::new(config, Share::Session, prepare),
        }
    }

    /// Returns the servers with a sharing policy.
    pub(super) fn group(&self, share: Share) -> Option<&ServerGroup> {
        match share {
            Share::Process => None,
            Share::Singleton => self.singleton.as_ref(),
            Share::Principal => self.principal.as_ref(),
            Share::Session => self.session.as_ref(),
        }
    }

    fn groups(&self) -> impl Iterator<Item = &ServerGroup> {
        self.singleton.iter().chain(&self.principal).chain(&self.session)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups().next().is_none()
    }

    /// Returns the names of the servers, with their sharing policy.
    pub(crate) fn list(&self) -> Vec<(&str, Share)> {
        let servers = self.groups().flat_map(|group| &group.config.servers);
        servers.map(|(name, server)| (name.as_str(), server.lifecycle.share)).collect()
    }

    pub(super) fn names(&self) -> HashSet<String> {
        self.groups().flat_map(|group| group.config.servers.keys().cloned()).collect()
    }

    /// Returns whether each session has a process of its own of a server.
    pub(crate) fn has_session_server(&self, name: &str) -> bool {
        self.session.as_ref().is_some_and(|group| group.config.servers.contains_key(name))
    }

    /// Returns whether the servers of a session keep its state outside of this replica.
    pub(crate) fn has_movable_state(&self) -> bool {
        let Some(session) = &self.session else { return false };
        // The servers of a principal, and those of all replicas, run at one replica.
        self.singleton.is_none()
            && self.principal.is_none()
            && session
                .config
                .servers
                .values()
                .all(|server| matches!(server.transport, TransportConfig::Http { .. }))
    }
}

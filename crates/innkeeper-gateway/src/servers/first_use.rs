//! Starts the servers that not all clients share, at the first use of each one.

use std::sync::Arc;

use futures_util::future::join_all;
use innkeeper_host::config::Share;

use super::Servers;
use crate::client::Client;
use crate::error::RpcError;
use crate::principal::Principal;
use crate::view::View;

/// Who uses servers, and at which endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstUser<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) client: Option<&'a Arc<Client>>,
    pub(crate) endpoint: usize,
}

/// A server of a client that never started.
#[derive(Clone, Debug)]
pub(crate) struct UnstartedServer {
    pub(crate) name: Arc<str>,
    share: Share,
    /// Whether a start failed. A limit of the processes is no failure.
    pub(crate) has_failed: bool,
}

impl Servers {
    /// Returns the servers that an endpoint offers to a client and that never started.
    pub(crate) fn unstarted_servers(&self, view: &View, endpoint: usize) -> Vec<UnstartedServer> {
        if !view.is_private() {
            return Vec::new();
        }
        let options = self.endpoints.options(endpoint);
        let private = self.sharing.private.list().into_iter();
        let servers = private.filter(|(name, _)| options.has_server(name));
        let unstarted = servers.filter_map(|(name, share)| {
            let host = view.host_of(name);
            let is_unstarted = host.as_ref().is_none_or(|host| host.dormant.is_unstarted(name));
            let has_failed = host.is_some_and(|host| host.dormant.has_failed(name));
            is_unstarted.then(|| UnstartedServer { name: name.into(), share, has_failed })
        });
        unstarted.collect()
    }

    /// Starts servers of a client at the same time. Returns those that do not start, with their errors.
    /// Dropping the future ends no start.
    pub(crate) async fn start_for(
        self: &Arc<Self>,
        user: FirstUser<'_>,
        view: &View,
        servers: &[UnstartedServer],
    ) -> Vec<(Arc<str>, RpcError)> {
        let starts = servers.iter().map(async |server| {
            let started = self.start_one(user, view, server).await;
            started.err().map(|error| (server.name.clone(), error))
        });
        join_all(starts).await.into_iter().flatten().collect()
    }

    async fn start_one(
        self: &Arc<Self>,
        user: FirstUser<'_>,
        view: &View,
        server: &UnstartedServer,
    ) -> Result<(), RpcError> {
        let UnstartedServer { name, share, .. } = server;
        if let Some(upstream) = view.host_of(name) {
            return self.use_server(&upstream, name, None).await.map(drop);
        }
        let owner = match share {
            Share::Process | Share::Singleton => &Principal::local_user(),
            Share::Principal | Share::Session => user.principal,
        };
        // First: a session whose client has no process left gets no host either.
        let reserved = match self.settings().has_process(name) {
            true => Some(self.reserve_process(owner, name).await?),
            false => None,
        };
        let (upstream, _cells) = self.private_host(user, *share).await?;
        self.use_server(&upstream, name, reserved).await.map(drop)
    }
}

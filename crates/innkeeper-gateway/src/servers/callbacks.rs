//! The callbacks that a host gets before its servers start: requests of servers that belong to no
//! call.

use std::future::ready;
use std::sync::{Arc, OnceLock, Weak};

use innkeeper_host::{
    Callback, CallbackCapabilities, CallbackFuture, HostBuilder, LogLevel, ServerRequest,
};

use crate::client::Client;
use crate::sole_client::SoleClient;
use crate::task_ids::related_task;
use crate::upstream::Upstream;

/// The host that callbacks belong to, once it runs.
pub(crate) type UpstreamCell = Arc<OnceLock<Weak<Upstream>>>;

/// The callbacks of the gateway, for any number of hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct GatewayCallbacks {
    pub(crate) sole_client: Option<SoleClient>,
}

impl GatewayCallbacks {
    /// Registers the callbacks with the builder of a host. `session` is the client of a session with a
    /// host of its own: every request of its servers is for this client.
    pub(crate) fn register(
        &self,
        builder: HostBuilder,
        upstream: &UpstreamCell,
        session: Option<&Weak<Client>>,
    ) -> HostBuilder {
        let kinds = [
            CallbackCapabilities::sampling_with_tools(),
            CallbackCapabilities::elicitation_with_urls(),
            CallbackCapabilities::roots(),
            CallbackCapabilities::custom(),
        ];
        // Each client has a minimum level of its own.
        let builder =
            builder.log_level(LogLevel::Debug).ping_unresponsive(true).revive_servers(true);
        kinds.iter().fold(builder, |builder, kind| {
            let sole_client = self.sole_client.clone();
            let upstream = upstream.clone();
            let session = session.cloned();
            let kind = match sole_client {
                Some(_) => kind.clone(),
                None => kind.clone().for_many_clients(),
            };
            builder.callback(&kind, HostCallback { sole_client, session, upstream })
        })
    }
}

/// Passes the requests of servers that belong to no certain call.
#[derive(Debug)]
struct HostCallback {
    sole_client: Option<SoleClient>,
    session: Option<Weak<Client>>,
    upstream: UpstreamCell,
}

impl Callback for HostCallback {
    fn respond(&self, request: ServerRequest) -> CallbackFuture {
        let upstream = self.upstream.get().and_then(Weak::upgrade);
        let server_use = upstream.map(|upstream| upstream.servers.server_use(&request.server));
        let task = related_task(request.params.as_deref());
        if let Some(client) = self.sole_client.clone() {
            let open = server_use.zip(task.as_deref());
            let ids = open.and_then(|(server_use, task)| Some(server_use.open_tasks.find(task)?.0));
            return Box::pin(async move { client.respond(request, ids).await });
        }
        // During a call, its stream has the request, which each client reads.
        if let Some(client) = self.session.as_ref().and_then(Weak::upgrade)
            && let Some(server_use) = &server_use
            && !server_use.question_owners.has_calls()
        {
            let ids = task.and_then(|task| Some(server_use.open_tasks.find(&task)?.0));
            return Box::pin(async move { client.respond_outside_call(request, ids).await });
        }
        match server_use.filter(|_| task.is_none()) {
            Some(server_use) => server_use.question_owners.ask(request),
            // The server names a task that no call waits for.
            None => Box::pin(ready(Err(SoleClient::not_attributed(&request)))),
        }
    }
}

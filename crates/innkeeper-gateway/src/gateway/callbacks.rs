//! The callbacks that a host gets before its servers start: requests of servers that belong to no
//! call.

use std::sync::{Arc, OnceLock, Weak};

use innkeeper_host::{CallbackCapabilities, HostBuilder, LogLevel, ServerRequest};

use crate::sole_client::SoleClient;
use crate::upstream::Upstream;

/// The host that callbacks belong to, once it runs.
pub(crate) type UpstreamCell = Arc<OnceLock<Weak<Upstream>>>;

/// The callbacks of the gateway, for any number of hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct GatewayCallbacks {
    pub(crate) sole_client: Option<SoleClient>,
}

impl GatewayCallbacks {
    /// Registers the callbacks with the builder of a host.
    pub(crate) fn register(&self, builder: HostBuilder, upstream: &UpstreamCell) -> HostBuilder {
        let kinds = [
            CallbackCapabilities::sampling_with_tools(),
            CallbackCapabilities::elicitation_with_urls(),
            CallbackCapabilities::roots(),
            CallbackCapabilities::custom(),
        ];
        // Each client has a minimum level of its own.
        let builder = builder.log_level(LogLevel::Debug);
        kinds.iter().fold(builder, |builder, kind| {
            let (sole_client, upstream) = (self.sole_client.clone(), upstream.clone());
            builder.callback(kind, move |request: ServerRequest| {
                let sole_client = sole_client.clone();
                let upstream = upstream.get().and_then(Weak::upgrade);
                async move {
                    if let Some(client) = sole_client {
                        return client.respond(request).await;
                    }
                    // Beside the running call, the client whose turn it is has calls that wait for
                    // its input.
                    let running = upstream
                        .and_then(|upstream| upstream.server_use(&request.server).turns.callback());
                    match running {
                        Some(callback) => callback.respond(request).await,
                        None => Err(SoleClient::not_attributed(&request)),
                    }
                }
            })
        })
    }
}

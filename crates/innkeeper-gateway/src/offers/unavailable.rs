//! The error of an item whose server accepts no requests now.

use std::sync::Arc;

use innkeeper_host::Catalog;
use innkeeper_host::config::NameStyle;

use super::{CallerOffering, Need, Offers};
use crate::caller::Caller;
use crate::error::RpcError;
use crate::item_names::ItemNames;
use crate::options::EndpointOptions;
use crate::upstream::Upstream;

/// A server of an endpoint with the catalog of its host.
struct KnownServer {
    name: Arc<str>,
    upstream: Arc<Upstream>,
    catalog: Arc<Catalog>,
}

impl KnownServer {
    /// Returns whether the server offered the item while it was ready.
    fn offered(&self, need: Need<'_>) -> bool {
        self.catalog.unavailable_server(&self.name).is_some_and(|server| match need {
            Need::Tool(name) => server.has_tool(name),
            Need::Prompt(name) => server.has_prompt(name),
            Need::Resource(uri) => server.has_resource(uri),
            Need::Known | Need::Lists => false,
        })
    }

    /// Returns whether the server is unavailable and its items are unknown.
    fn was_never_ready(&self) -> bool {
        self.catalog.unavailable_server(&self.name).is_some_and(|server| !server.was_ready())
    }
}

impl Offers {
    /// Returns the error of an item that is not offered: why a server that may have it did not start, or why
    /// its server is unavailable, else `unknown`.
    pub(crate) fn missing_item(
        &self,
        caller: &Caller,
        offering: &CallerOffering,
        need: Need<'_>,
        unknown: RpcError,
    ) -> RpcError {
        let not_started = offering.not_started.first().cloned();
        not_started.or_else(|| self.owner_error(caller, offering, need)).unwrap_or(unknown)
    }

    /// Returns why the server of an item is unavailable; `None` for an item without an unavailable
    /// server, and for a tool that the client may not use.
    fn owner_error(
        &self,
        caller: &Caller,
        offering: &CallerOffering,
        need: Need<'_>,
    ) -> Option<RpcError> {
        let options = self.endpoints.options(caller.endpoint);
        let servers = known_servers(options, offering);
        let (Need::Tool(name) | Need::Prompt(name) | Need::Resource(name)) = need else {
            return None;
        };
        let own_name = |server: &KnownServer| match (options.names, need) {
            (NameStyle::Prefixed, Need::Tool(_) | Need::Prompt(_)) => {
                name.strip_prefix(&*server.name)?.strip_prefix('.')
            }
            _ => Some(name),
        };
        let owner = match (options.names, need) {
            // The longest name: `a.b.c` never belongs to `a` beside `a.b`.
            (NameStyle::Prefixed, Need::Tool(_) | Need::Prompt(_)) => servers
                .iter()
                .filter(|server| own_name(server).is_some_and(|own| !own.is_empty()))
                .max_by_key(|server| server.name.len()),
            _ => servers.iter().find(|server| server.offered(need)).or(match &servers[..] {
                [only] if only.was_never_ready() => Some(only),
                _ => None,
            }),
        }?;
        if owner.upstream.dormant.is_stopped(&owner.name)
            || owner.upstream.dormant.is_unstarted(&owner.name)
        {
            return None;
        }
        if matches!(need, Need::Tool(_)) {
            let names = ItemNames::new(options.names, &owner.name, own_name(owner)?);
            if !options.has_tool(&names) || !self.policy.permits(&caller.principal, &names) {
                return None;
            }
        }
        let unavailable = owner.catalog.unavailable_server(&owner.name)?;
        Some(RpcError::from_call_error(unavailable.error(), name))
    }
}

fn known_servers(options: &EndpointOptions, offering: &CallerOffering) -> Vec<KnownServer> {
    let mut servers = Vec::new();
    for upstream in offering.view.upstreams().iter() {
        let catalog = upstream.host.catalog();
        for name in upstream.servers.names().iter().filter(|name| options.has_server(name)) {
            let catalog = catalog.clone();
            servers.push(KnownServer { name: name.clone(), upstream: upstream.clone(), catalog });
        }
    }
    servers
}

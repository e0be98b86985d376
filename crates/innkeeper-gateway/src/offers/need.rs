//! What a request needs of the servers that its client has not used yet.

use std::sync::Arc;

use innkeeper_host::config::NameStyle;

use super::{CallerOffering, Offers};
use crate::caller::Caller;
use crate::error::RpcError;
use crate::item_names::ItemNames;
use crate::offering::Offering;
use crate::servers::{FirstUser, UnstartedServer};
use crate::view::View;

/// The items that a request needs. Servers start for it that may have them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need<'a> {
    /// What is known: nothing starts.
    Known,
    /// All items.
    Lists,
    /// The tool with this name.
    Tool(&'a str),
    /// The prompt with this name.
    Prompt(&'a str),
    /// The resource with this URI.
    Resource(&'a str),
}

impl Need<'_> {
    fn is_met(self, offering: &Offering) -> bool {
        match self {
            Self::Known => true,
            Self::Lists => false,
            Self::Tool(name) => offering.tool(name).is_some(),
            Self::Prompt(name) => offering.prompt(name).is_some(),
            Self::Resource(uri) => offering.lists_resource(uri),
        }
    }
}

impl Offers {
    /// Returns everything that the endpoint of a caller offers. Starts the servers of the caller that no
    /// request has used. Those that do not start are left out.
    pub(crate) async fn offering(&self, caller: &Caller) -> Result<CallerOffering, RpcError> {
        self.offering_for(caller, Need::Lists).await
    }

    /// Returns what the endpoint of a caller offers, with what the request needs, after the start of the
    /// servers that may have it.
    pub(crate) async fn offering_for(
        &self,
        caller: &Caller,
        need: Need<'_>,
    ) -> Result<CallerOffering, RpcError> {
        let (view, offering) = self.current_offering(caller)?;
        let needed = self.needed_servers(caller, need, &view, &offering);
        if needed.is_empty() {
            return Ok(CallerOffering { view, offering, not_started: Vec::new() });
        }
        let user = FirstUser {
            principal: &caller.principal,
            client: caller.client.as_ref(),
            endpoint: caller.endpoint,
        };
        // Boxed, because a request without a first use needs no room for it.
        let not_started = Box::pin(self.servers.start_for(user, &view, &needed)).await;
        let (view, offering) = self.current_offering(caller)?;
        if matches!(need, Need::Lists) {
            not_started.iter().for_each(|(server, _)| view.record_missed(server));
        }
        let not_started = not_started.into_iter().map(|(_, error)| error).collect();
        Ok(CallerOffering { view, offering, not_started })
    }

    fn current_offering(&self, caller: &Caller) -> Result<(Arc<View>, Arc<Offering>), RpcError> {
        let view = self.servers.view(&caller.principal, caller.client.as_ref(), caller.endpoint)?;
        let offering = view.offering(caller.endpoint, self.endpoints.options(caller.endpoint));
        Ok((view, offering))
    }

    fn needed_servers(
        &self,
        caller: &Caller,
        need: Need<'_>,
        view: &View,
        offering: &Offering,
    ) -> Vec<UnstartedServer> {
        if !view.is_private() || need.is_met(offering) {
            return Vec::new();
        }
        let mut servers = self.servers.unstarted_servers(view, caller.endpoint);
        let options = self.endpoints.options(caller.endpoint);
        servers.retain(|server| match need {
            Need::Tool(name) | Need::Prompt(name) if options.names == NameStyle::Prefixed => {
                let own = name.strip_prefix(&*server.name).and_then(|rest| rest.strip_prefix('.'));
                own.is_some_and(|own| {
                    let names = ItemNames::new(options.names, &server.name, own);
                    !matches!(need, Need::Tool(_))
                        || options.has_tool(&names)
                            && self.policy.permits(&caller.principal, &names)
                })
            }
            // Of the names of a failed server, the client cannot know any.
            _ => !server.has_failed,
        });
        servers
    }
}

//! What a client is offered: the items of its endpoint, of the servers that it shares or has for itself,
//! as far as it may use them.

mod need;
mod unavailable;

use std::ops::Deref;
use std::sync::Arc;

use crate::bindings::Endpoints;
use crate::caller::Caller;
use crate::error::RpcError;
use crate::gateway_tools::GatewayTool;
use crate::offering::{NamedItem, Offering};
use crate::policy::ToolPolicy;
use crate::principal::Principal;
use crate::servers::Servers;
use crate::view::View;
pub(crate) use need::Need;

/// What every client is offered.
#[derive(Debug)]
pub(crate) struct Offers {
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) policy: ToolPolicy,
}

/// The offering for one request. The hosts of the caller run on until the value is dropped.
#[derive(Debug)]
pub(crate) struct CallerOffering {
    pub(crate) view: Arc<View>,
    pub(crate) offering: Arc<Offering>,
    /// Why servers that may have what the request needs did not start.
    pub(crate) not_started: Vec<RpcError>,
}

impl Deref for CallerOffering {
    type Target = Offering;

    fn deref(&self) -> &Offering {
        &self.offering
    }
}

impl Offers {
    pub(crate) fn new(
        endpoints: Arc<Endpoints>,
        servers: Arc<Servers>,
        policy: ToolPolicy,
    ) -> Self {
        Self { endpoints, servers, policy }
    }

    /// Returns the tool of a server with an offered name, if the client may use it.
    pub(crate) fn permitted_tool<'a>(
        &self,
        principal: &Principal,
        offering: &'a Offering,
        name: &str,
    ) -> Option<&'a NamedItem> {
        self.policy.find(principal, name, |name| offering.tool(name))
    }

    /// Returns whether an endpoint shows a listed tool to a client: a tool that the client may use, or
    /// one of the gateway.
    pub(crate) fn shows_tool(&self, caller: &Caller, offering: &Offering, name: &str) -> bool {
        GatewayTool::find(self.endpoints.options(caller.endpoint), name).is_some()
            || self.permitted_tool(&caller.principal, offering, name).is_some()
    }
}

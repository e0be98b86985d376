//! Who sends a request.

use std::sync::Arc;

use innkeeper_host::TraceContext;
use innkeeper_protocol::Era;

use crate::bindings::Endpoints;
use crate::client::{Client, ClientIdentity};
use crate::metrics::ClientTransport;
use crate::owned_calls::OwnedCalls;
use crate::pending_questions::QuestionAsker;
use crate::principal::Principal;
use crate::question_owners::CallClient;
use crate::subscribers::Subscription;

/// Who sends a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    pub(crate) endpoint: usize,
    /// The connection or session; `None` for a client of the modern era over HTTP.
    pub(crate) client: Option<Arc<Client>>,
    /// The change subscription of a client of the legacy era.
    pub(crate) subscription: Option<Arc<Subscription>>,
    pub(crate) identity: ClientIdentity,
    pub(crate) transport: ClientTransport,
    /// The trace context in the HTTP headers; `None` without telemetry.
    pub(crate) header_trace: Option<TraceContext>,
    /// The calls of the request; `None` without replicas.
    pub(crate) calls: Option<Arc<OwnedCalls>>,
}

impl Caller {
    pub(crate) fn era(&self) -> Era {
        self.identity.revision.era()
    }

    /// Returns who asks a question during a call.
    pub(crate) fn asker(&self, endpoints: &Endpoints) -> QuestionAsker {
        let revision = self.identity.revision.as_str();
        QuestionAsker {
            principal: (**self.principal.id()).to_owned(),
            client: format!("{} {revision}", self.transport.as_str()),
            endpoint: endpoints.label(self.endpoint),
            revision: revision.to_owned(),
        }
    }

    pub(crate) fn call_client(&self) -> CallClient {
        CallClient::new(self.principal.clone(), self.client.as_ref())
    }
}

//! What the transports of a gateway share: Streamable HTTP, HTTP+SSE, plain HTTP, the connection
//! service, the console, and connections with lines.

use std::sync::Arc;

use crate::audit_log::AuditLog;
use crate::calls::Calls;
use crate::connections::ConnectionService;
use crate::methods::Methods;
use crate::metrics::{GatewayMetrics, RejectionReason};
use crate::offers::Offers;
use crate::options::{ConsoleOptions, GatewayOptions};
use crate::principal::Principal;
use crate::rate_limits::{RateExceeded, RateLimits};
use crate::replicas::Replicas;
use crate::response_memory::ResponseMemory;
use crate::servers::Servers;
use crate::tasks::GatewayTasks;

/// Services that a gateway need not have.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionalServices {
    pub(crate) console: Option<ConsoleOptions>,
    pub(crate) connections: Option<ConnectionService>,
    pub(crate) replicas: Option<Replicas>,
}

/// What counts, limits and records the requests of clients.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub(crate) responses: ResponseMemory,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) audit_log: Arc<AuditLog>,
    pub(crate) rate_limits: Arc<RateLimits>,
}

impl Traffic {
    /// Counts a message of a batch as a request of its client. The router has counted the HTTP request
    /// for the first message.
    pub(crate) fn count_batched(
        &self,
        principal: &Principal,
        index: usize,
    ) -> Result<(), RateExceeded> {
        if index == 0 {
            return Ok(());
        }
        let counted = self.rate_limits.count_request(principal);
        counted.inspect_err(|_| self.metrics.count_rejection(RejectionReason::Rate))
    }
}

/// What the transports of a gateway share.
#[derive(Debug)]
pub(crate) struct GatewayState {
    pub(crate) options: GatewayOptions,
    pub(crate) servers: Arc<Servers>,
    pub(crate) offers: Arc<Offers>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) methods: Methods,
    pub(crate) traffic: Traffic,
    pub(crate) services: OptionalServices,
    pub(crate) tasks: GatewayTasks,
}

impl GatewayState {
    /// Returns what an endpoint is called among replicas, whose configurations can differ during a
    /// change: an underscore and the name, if it has one.
    pub(crate) fn replica_label(&self, index: usize) -> String {
        let endpoint = self.offers.endpoints.get(index);
        format!("_{}", endpoint.and_then(|endpoint| endpoint.name.as_deref()).unwrap_or_default())
    }

    /// Returns the index of the endpoint with a label that a client gets.
    pub(crate) fn endpoint_with_label(&self, principal: &Principal, label: &str) -> Option<usize> {
        let name = label.strip_prefix('_')?;
        self.offers.endpoints.find(principal, (!name.is_empty()).then_some(name))
    }

    /// Returns the reason why the gateway cannot serve now.
    pub(crate) fn not_ready(&self) -> Option<String> {
        if self.tasks.closing.initialized() {
            return Some("the gateway is closing".to_owned());
        }
        let (name, state) = self.servers.missing_required()?;
        Some(format!("required server `{name}` is {}", state.as_str()))
    }

    /// Waits until the gateway accepts no more requests.
    pub(crate) async fn drained(&self) {
        self.tasks.closing.wait().await;
    }
}

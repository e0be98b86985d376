//! `initialize` and `server/discover`.

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::handshake::{
    CacheScope, DiscoverResponse, InitializeParams, InitializeResponse,
};
use innkeeper_protocol::request_meta::Implementation;
use innkeeper_protocol::{Era, Revision, skim};
use serde_json::value::{RawValue, to_raw_value};

use super::Methods;
use crate::caller::Caller;
use crate::client::ClientIdentity;
use crate::error::RpcError;
use crate::gateway_tools::add_capabilities;
use crate::offering::{aggregate_capabilities, declare_all};
use crate::offers::{CallerOffering, Need};
use crate::request::{ClientRequest, Reply};

const SERVER_INFO: Implementation<'static> =
    Implementation { name: "innkeeper", version: env!("CARGO_PKG_VERSION"), title: None };

/// Maximum size in bytes of capabilities that stay with a session as they were sent: a client can have
/// many sessions, and `experimental` is of any size.
const MAX_KEPT_BYTES: usize = 2 << 10;

/// The capabilities that servers or the gateway know.
const KNOWN_CAPABILITIES: &[&str] = &["elicitation", "extensions", "roots", "sampling", "tasks"];

/// Returns what stays of the capabilities. Of large ones, these are the known members, without their
/// details where these are large.
fn kept_capabilities(sent: &str) -> String {
    if sent.len() <= MAX_KEPT_BYTES {
        return sent.to_owned();
    }
    let known = KNOWN_CAPABILITIES.iter().filter_map(|name| {
        let details = skim::member(sent, name).filter(|details| details.starts_with('{'))?;
        let is_small = details.len() <= MAX_KEPT_BYTES / KNOWN_CAPABILITIES.len();
        Some(format!("\"{name}\":{}", if is_small { details } else { "{}" }))
    });
    format!("{{{}}}", known.collect::<Vec<_>>().join(","))
}

/// Reads what a client declares in `initialize`.
pub(crate) fn read_initialize(params: Option<&RawValue>) -> Result<ClientIdentity, RpcError> {
    let params = InitializeParams::from_raw(
        params.ok_or_else(|| RpcError::invalid_params("`initialize` requires `params`"))?,
    )
    .map_err(|error| RpcError::invalid_params(error.to_string()))?;
    let revision = Revision::negotiate(&params.protocol_version);
    let capabilities = RawValue::from_string(kept_capabilities(params.capabilities));
    Ok(ClientIdentity { revision, capabilities: capabilities.map_err(internal)?.into() })
}

impl Methods {
    pub(super) async fn initialize(&self, request: &ClientRequest<'_>) -> Reply {
        let identity = read_initialize(request.params.raw())?;
        let revision = identity.revision;
        let client = request.caller.client.as_ref();
        if client.is_none_or(|client| !client.settings.initialize(identity)) {
            return Err(RpcError::new(code::INVALID_REQUEST, "the client is already initialized"));
        }
        let (capabilities, instructions) = self.describe(request.caller, revision).await?;
        let response = InitializeResponse {
            revision,
            capabilities: &capabilities,
            server_info: SERVER_INFO,
            instructions: instructions.as_deref(),
        };
        to_raw_value(&response).map_err(internal)
    }

    pub(super) async fn discover(&self, request: &ClientRequest<'_>) -> Reply {
        let revision = request.caller.identity.revision;
        let (capabilities, instructions) = self.describe(request.caller, revision).await?;
        let response = DiscoverResponse {
            supported_versions: &supported_versions(Era::Modern),
            capabilities: &capabilities,
            server_info: SERVER_INFO,
            instructions: instructions.as_deref(),
            ttl_ms: 0,
            cache_scope: CacheScope::Private,
        };
        to_raw_value(&response).map_err(internal)
    }

    /// Returns the capabilities and the instructions for a caller. Servers that the client has not used
    /// do not start for it: what they have is unknown, as is what servers have that are not ready yet.
    async fn describe(
        &self,
        caller: &Caller,
        revision: Revision,
    ) -> Result<(Box<RawValue>, Option<String>), RpcError> {
        let offering = self.offers.offering_for(caller, Need::Known).await?;
        let mut capabilities =
            aggregate_capabilities(offering.servers.iter().map(|server| &**server), revision);
        if self.may_offer_more(&offering, caller.endpoint) {
            declare_all(&mut capabilities, revision);
        }
        if !self.calls.passes_tasks(caller) {
            capabilities.remove("tasks");
        }
        add_capabilities(&mut capabilities, self.offers.endpoints.options(caller.endpoint));
        Ok((to_raw_value(&capabilities).map_err(internal)?, offering.instructions()))
    }

    /// Returns whether a server of the caller has not offered anything yet, and may do so later. Many
    /// clients never ask for the lists of a capability that was not declared at the start.
    fn may_offer_more(&self, offering: &CallerOffering, endpoint: usize) -> bool {
        let options = self.offers.endpoints.options(endpoint);
        let upstreams = offering.view.upstreams();
        let mut names = upstreams.iter().flat_map(|upstream| Vec::clone(&upstream.servers.names()));
        names.any(|name| {
            options.has_server(&name) && offering.servers.iter().all(|server| server.name != name)
        }) || !self.offers.servers.unstarted_servers(&offering.view, endpoint).is_empty()
    }
}

pub(crate) fn supported_versions(era: Era) -> Vec<Revision> {
    Revision::ALL.into_iter().filter(|revision| revision.era() == era).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of `map_err`")]
fn internal(error: serde_json::Error) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Attack: remote | a client opens sessions with capabilities of 60 KiB | a session keeps the known
    /// ones in 2 KiB | No unbounded memory
    #[test]
    fn large_capabilities_do_not_stay_with_a_session() {
        let filler = "x".repeat(60 << 10);
        let sent = json!({
            "experimental": { "filler": &filler },
            "elicitation": { "form": {}, "url": {} },
            "extensions": { "io.example/large": { "filler": &filler } },
            "roots": { "listChanged": true },
            "sampling": null,
        });
        let kept = kept_capabilities(&sent.to_string());
        assert!(kept.len() <= MAX_KEPT_BYTES);
        let expected = json!({
            "elicitation": { "form": {}, "url": {} },
            "extensions": {},
            "roots": { "listChanged": true },
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&kept).unwrap(), expected);
        let small = r#"{"experimental": {"a": 1.50}}"#;
        assert_eq!(kept_capabilities(small), small);
    }
}

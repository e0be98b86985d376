//! Requests and notifications of clients, independent of their transport.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use innkeeper_host::TraceContext;
use innkeeper_protocol::envelope::ErrorId;
use innkeeper_protocol::request_meta::IncomingMeta;
use innkeeper_protocol::{Era, RequestId, RequestParams, Revision, envelope, method};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::caller::Caller;
use crate::client::{Client, ClientIdentity, RequestGuard, RequestRejection};
use crate::error::RpcError;
use crate::json_text::{empty_object, legacy_result};
use crate::metrics::ClientTransport;
use crate::owned_calls::OwnedCalls;
use crate::request::{ClientRequest, Reply};
use crate::sink::MessageSink;
use crate::state::GatewayState;
use crate::subscribers::Subscription;

/// Maximum size in bytes of the parameters of `initialize`, because a session keeps them.
pub(super) const MAX_INITIALIZE_BYTES: usize = 64 << 10;

/// A request of a client, as its message has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonRpcRequest<'a> {
    pub(super) id: &'a RequestId,
    pub(super) method: &'a str,
    pub(super) params: Option<&'a RawValue>,
}

/// The connection or session of a request.
#[derive(Clone, Debug)]
pub(super) struct Connected {
    pub(super) transport: ClientTransport,
    pub(super) client: Arc<Client>,
    pub(super) subscription: Option<Arc<Subscription>>,
    /// The trace context in the HTTP headers; `None` without telemetry.
    pub(super) header_trace: Option<TraceContext>,
    /// The calls of the request; `None` without replicas.
    pub(super) calls: Option<Arc<OwnedCalls>>,
}

/// Returns the revision in the `_meta` of a request: only requests of the modern era have one.
pub(super) fn modern_version(params: Option<&RawValue>) -> Option<String> {
    let meta = innkeeper_protocol::skim::member(params?.get(), "_meta")?;
    let key = innkeeper_protocol::request_meta::META_PROTOCOL_VERSION;
    let version = innkeeper_protocol::skim::member(meta, key)?;
    Some(innkeeper_protocol::skim::decode_string(version).unwrap_or_default().into_owned())
}

/// Returns what a request of the modern era declares in its `_meta`.
pub(super) fn modern_identity(meta: &IncomingMeta<'_>) -> Result<ClientIdentity, RpcError> {
    let required = meta.required()?;
    let known = required.protocol_version.parse::<Revision>().ok();
    let Some(revision) = known.filter(|revision| revision.era() == Era::Modern) else {
        return Err(unsupported_version(required.protocol_version, Era::Modern));
    };
    let capabilities = required.client_capabilities;
    let capabilities = RawValue::from_string(capabilities.to_owned()).unwrap_or_default();
    Ok(ClientIdentity { revision, capabilities: capabilities.into() })
}

/// Returns the error for a revision that the gateway does not support. `era` is that of the client: only
/// revisions of this era help it.
pub(super) fn unsupported_version(requested: &str, era: Era) -> RpcError {
    let supported = crate::methods::supported_versions(era);
    let data = to_raw_value(&json!({ "supported": supported, "requested": requested })).ok();
    let message =
        format!("unsupported protocol version `{}`", innkeeper_host::display_safe(requested));
    RpcError { data, ..RpcError::new(envelope::code::UNSUPPORTED_PROTOCOL_VERSION, message) }
}

/// Handles a request of a client with a connection or session. Returns the response line, or `None`
/// if the client cancelled the request.
pub(super) async fn respond_connected(
    gateway: &Arc<GatewayState>,
    connected: &Connected,
    sink: &MessageSink,
    request: JsonRpcRequest<'_>,
) -> Option<Bytes> {
    let started = connected.client.start_request(request.id);
    respond_started(gateway, connected, started, sink, request).await
}

/// Works like [`respond_connected`], for a request that the client can already cancel.
pub(super) async fn respond_started(
    gateway: &Arc<GatewayState>,
    connected: &Connected,
    started: Result<RequestGuard, RequestRejection>,
    sink: &MessageSink,
    request: JsonRpcRequest<'_>,
) -> Option<Bytes> {
    let JsonRpcRequest { id, method, params } = request;
    let client = &connected.client;
    let counted = gateway.traffic.metrics.start_request(connected.transport, method);
    let guard = match started {
        Ok(guard) => guard,
        Err(rejection) => {
            // A request that is passed on again still runs: its connection broke.
            let forwarded = connected.calls.as_ref().filter(|calls| calls.is_forwarded());
            let error = match (rejection, forwarded) {
                (RequestRejection::DuplicateId, Some(calls)) => {
                    RpcError::outcome_unknown(&calls.id_of(id))
                }
                (rejection, _) => rejection_error(rejection, id),
            };
            let reply = counted.finish(Err(error));
            return Some(response_line(id, &reply));
        }
    };
    let responding = async {
        if method == method::INITIALIZE
            && params.is_some_and(|params| params.get().len() > MAX_INITIALIZE_BYTES)
        {
            let limit = MAX_INITIALIZE_BYTES;
            let message = format!("the parameters of `initialize` are longer than {limit} bytes");
            return Err(RpcError::invalid_params(message));
        }
        let params = &RequestParams::from_raw(params)?;
        let meta = IncomingMeta::from_params(params)?;
        let identity = match meta.protocol_version {
            Some(_) if gateway.offers.endpoints.is_legacy(client.endpoint) => {
                return Err(RpcError::method_not_found(method));
            }
            Some(_) => modern_identity(&meta)?,
            None => client.settings.identity().cloned().unwrap_or_else(unknown_identity),
        };
        let principal = client.principal.clone();
        let endpoint = client.endpoint;
        let subscription = connected.subscription.clone();
        let client = Some(client.clone());
        let transport = connected.transport;
        let header_trace = connected.header_trace.clone();
        let caller = Caller {
            principal,
            endpoint,
            client,
            subscription,
            identity,
            transport,
            header_trace,
            calls: connected.calls.clone(),
        };
        let era = caller.era();
        let request =
            ClientRequest { id, method, params, meta, caller: &caller, sink, param_headers: None };
        let result = gateway.methods.handle(request).await?;
        Ok(match era == Era::Legacy && !gateway.offers.endpoints.is_legacy(caller.endpoint) {
            true => legacy_result(result),
            false => result,
        })
    };
    tokio::select! {
        biased;
        () = guard.cancelled() => None,
        reply = responding => Some(response_line(id, &counted.finish(reply))),
    }
}

/// Handles a request of the modern era without a connection. `param_headers` are the headers in which
/// the client repeats arguments.
pub(super) async fn respond_stateless(
    gateway: &Arc<GatewayState>,
    caller: &Caller,
    sink: &MessageSink,
    param_headers: &HeaderMap,
    request: JsonRpcRequest<'_>,
) -> Reply {
    let JsonRpcRequest { id, method, params } = request;
    let counted = gateway.traffic.metrics.start_request(ClientTransport::Http, method);
    let responding = async {
        let params = &RequestParams::from_raw(params)?;
        let meta = IncomingMeta::from_params(params)?;
        let param_headers = Some(param_headers);
        gateway
            .methods
            .handle(ClientRequest { id, method, params, meta, caller, sink, param_headers })
            .await
    };
    counted.finish(responding.await)
}

/// Returns the identity of a client that has not sent `initialize`: no capabilities.
pub(super) fn unknown_identity() -> ClientIdentity {
    ClientIdentity { revision: Revision::LATEST_LEGACY, capabilities: empty_object().into() }
}

fn rejection_error(rejection: RequestRejection, id: &RequestId) -> RpcError {
    let message = match rejection {
        RequestRejection::DuplicateId => format!("request id {id} is already in use"),
        RequestRejection::TooMany => "too many requests in flight".to_owned(),
    };
    RpcError::new(envelope::code::INVALID_REQUEST, message)
}

pub(super) fn response_line(id: &RequestId, reply: &Reply) -> Bytes {
    let mut line = Vec::new();
    let written = match reply {
        Ok(result) => {
            line.reserve(result.get().len() + 64);
            envelope::write_response(&mut line, id, result)
        }
        Err(error) => write_error(&mut line, Some(id), error),
    };
    // Raw JSON and strings always serialize.
    drop(written);
    line.into()
}

/// Returns the error of a message without a usable id as a line.
pub(super) fn error_line(id: Option<&RequestId>, error: &RpcError) -> Bytes {
    let mut line = Vec::new();
    let _ = write_error(&mut line, id, error);
    line.into()
}

fn write_error(
    line: &mut Vec<u8>,
    id: Option<&RequestId>,
    error: &RpcError,
) -> Result<(), serde_json::Error> {
    let RpcError { kind: _, code, message, data } = error;
    let id = id.map_or(ErrorId::Null, ErrorId::Request);
    envelope::write_error_with_data(line, id, *code, message, data.as_deref())
}

/// Calls the gateway for a notification, and the client for a response.
pub(super) fn accept(gateway: &GatewayState, client: &Client, incoming: envelope::Incoming<'_>) {
    match incoming {
        envelope::Incoming::Notification { method, params } => {
            gateway.methods.handle_notification(client, &method, params);
        }
        envelope::Incoming::Response { id, outcome } => client.answer(&id, outcome),
        envelope::Incoming::Request { .. } => {}
    }
}

/// Returns the error for a message that is no request, notification or response.
pub(crate) fn malformed_error(malformed: &innkeeper_protocol::MalformedMessage) -> RpcError {
    use innkeeper_protocol::MalformedKind;
    let code = match malformed.kind {
        MalformedKind::NotJson | MalformedKind::NotUtf8 | MalformedKind::MultiLineJson => {
            envelope::code::PARSE_ERROR
        }
        _ => envelope::code::INVALID_REQUEST,
    };
    RpcError::new(code, malformed.to_string())
}

//! Requests for a session or a principal that another replica owns: passed on to it, once.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use innkeeper_protocol::RequestId;
use subtle::ConstantTimeEq;
use tokio::time::{Instant, sleep, timeout};

use super::Replication;
use crate::error::RpcError;
use crate::metrics::ForwardedOutcome;
use crate::owned_calls::call_id;
use crate::principal::Principal;
use crate::rejection::Rejection;
use crate::replicas::{Claim, OwnedKey, Ownership, ReplicaAddress, Replicas};
use crate::store_error::StoreError;
use crate::transport::http::batch::batch_line;
use crate::transport::http::response::{EVENTS, json_response, rejected};
use crate::transport::http::{HttpRequest, HttpTransport, Origin, ReplicaTarget, incoming};

/// The start of the paths for requests of other replicas.
pub(crate) const REPLICA_PATH: &str = "/replica";

/// The principal of a forwarded request, in the URL alphabet of base64.
const PRINCIPAL: HeaderName = HeaderName::from_static("innkeeper-principal");

/// The id that the first replica gave to a request.
const REQUEST_ID: HeaderName = HeaderName::from_static("innkeeper-request-id");

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Time before the owner is looked up again.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Time after which a client can try again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Headers that belong to one connection or to the client's own request: its credentials stay here.
const NOT_FORWARDED: [HeaderName; 15] = [
    header::HOST,
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    header::AUTHORIZATION,
    API_KEY,
    header::PROXY_AUTHORIZATION,
    header::COOKIE,
    header::ORIGIN,
    header::ACCEPT_ENCODING,
];

/// What became of an attempt to pass a request on.
enum Attempt {
    Response(Response<Incoming>),
    /// The owner did not receive the request, or is no longer the owner.
    NotReceived,
    /// The owner may have received the request.
    Lost,
}

/// Returns the ownership of a key, or the response of the replica that owns the key. `requests` are
/// the ids of the client's requests.
pub(in crate::transport::http) async fn own_or_forward(
    from: &HttpRequest<'_>,
    replication: &Replication,
    key: &OwnedKey,
    create: bool,
    requests: &[RequestId],
) -> Result<Option<Arc<Ownership>>, Box<Response<Body>>> {
    let replicas = &replication.replicas;
    let deadline = Instant::now() + replicas.owner_time();
    // Whether an owner may have received the request.
    let mut is_sent = false;
    let failed = |error: &StoreError, is_sent: bool| {
        let unknown = if is_sent { outcomes(from, requests, |_| true) } else { None };
        Box::new(unknown.unwrap_or_else(|| unavailable(error)))
    };
    loop {
        let claim = replicas.claim(key, create).await;
        let owner = match claim.map_err(|error| failed(&error, is_sent))? {
            Claim::Owned(ownership) if is_sent => {
                let lost = lost_calls(from, replicas, &ownership, requests).await;
                return lost.map_or(Ok(Some(ownership)), |response| Err(Box::new(response)));
            }
            Claim::Owned(ownership) => return Ok(Some(ownership)),
            // Redis lost the session, or a client ended it.
            Claim::Unknown if is_sent => {
                let unknown = outcomes(from, requests, |_| true);
                return unknown.map_or(Ok(None), |response| Err(Box::new(response)));
            }
            Claim::Unknown => return Ok(None),
            Claim::Elsewhere(owner) => owner,
        };
        if from.is_forwarded {
            // The owner changed under way: the first replica looks again.
            let message = "this replica does not own the session";
            return Err(Box::new(rejected(StatusCode::MISDIRECTED_REQUEST, message)));
        }
        match attempt(from, replication, &owner).await {
            Attempt::Response(response) => {
                let passing = Passing {
                    body: response.into_parts(),
                    replicas: replicas.clone(),
                    owner,
                    key: key.clone(),
                    calls: requests.iter().map(|id| call_id(&from.id, id)).collect(),
                };
                return Err(Box::new(passing.response()));
            }
            Attempt::NotReceived => {}
            // Nothing says whether the request had an effect, also while its owner runs.
            Attempt::Lost if !from.may_repeat() => return Err(Box::new(outcome_unknown())),
            Attempt::Lost => is_sent = true,
        }
        if Instant::now() >= deadline {
            let reason = format!("no replica owns `{key}`");
            return Err(failed(&StoreError { reason }, is_sent));
        }
        sleep(RETRY_DELAY).await;
    }
}

/// A replica that the parameters of a request name.
pub(in crate::transport::http) struct NamedReplica {
    pub(in crate::transport::http) id: String,
    /// Whether the request continues a call that the replica sent to its server.
    pub(in crate::transport::http) has_sent_call: bool,
}

/// Passes a request without a session on to the replica that a text of the client names, if it is
/// another one. The replica has what the text stands for: a call that waits for input, a task or a
/// result.
pub(in crate::transport::http) async fn forward_to_named(
    from: &HttpRequest<'_>,
    replication: &Replication,
    named: &NamedReplica,
    request: &RequestId,
) -> Result<(), Box<Response<Body>>> {
    let replicas = &replication.replicas;
    if named.id == replicas.id() || from.is_forwarded {
        return Ok(());
    }
    let found = replicas.address(&named.id).await.map_err(|error| Box::new(unavailable(&error)))?;
    let failed = |error: &RpcError| {
        Err(Box::new(json_response(StatusCode::OK, incoming::error_line(Some(request), error))))
    };
    let owner = match found {
        Some(owner) => owner,
        // The server got the call, and its replica has ended.
        None if named.has_sent_call => {
            return failed(&RpcError::outcome_unknown(&call_id(&from.id, request)));
        }
        // The result or the task is unknown here, and the error says so.
        None => return Ok(()),
    };
    let error = match attempt(from, replication, &owner).await {
        Attempt::Response(response) => {
            let key = OwnedKey::Principal(from.principal.clone());
            let calls = vec![call_id(&from.id, request)];
            let body = response.into_parts();
            let replicas = replicas.clone();
            let passing = Passing { body, replicas, owner, key, calls };
            return Err(Box::new(passing.response()));
        }
        Attempt::NotReceived => RpcError::not_run(),
        Attempt::Lost => RpcError::outcome_unknown(&call_id(&from.id, request)),
    };
    failed(&error)
}

/// Makes this replica the owner of what a request of plain HTTP needs, or passes the request on to the
/// owner. Returns the body if this replica handles the request.
pub(crate) async fn place_rest_request(
    transport: &Arc<HttpTransport>,
    origin: Origin,
    path: &str,
    parts: &Parts,
    body: Body,
) -> Result<Body, Response<Body>> {
    let gateway = &transport.gateway;
    let endpoint = origin.endpoint;
    let Some(replication) = &transport.replication else { return Ok(body) };
    let Some(key) = gateway.servers.owned_key(&origin.principal, None, endpoint) else {
        return Ok(body);
    };
    let read = transport.bodies.read(&origin.principal, body).await;
    let (body, _reservation) = read.map_err(|rejection| rejection.into_response())?;
    let from = origin.request(transport, parts, body.clone());
    let from = HttpRequest { target: ReplicaTarget::Rest(path), ..from };
    match own_or_forward(&from, replication, &key, true, &[]).await {
        Ok(_) => Ok(Body::from(body)),
        Err(response) => Err(*response),
    }
}

impl HttpRequest<'_> {
    /// Returns whether the request may be handled twice, apart from its recorded calls.
    fn may_repeat(&self) -> bool {
        !matches!(self.target, ReplicaTarget::Rest(_)) || self.parts.method != Method::POST
    }
}

fn outcome_unknown() -> Response<Body> {
    rejected(
        StatusCode::BAD_GATEWAY,
        "the outcome is unknown: the connection to the replica with the request ended before its \
         response; check whether the call had its effect before you repeat it",
    )
}

/// Returns the response to a request that the store does not let this replica handle.
pub(in crate::transport::http) fn unavailable(error: &StoreError) -> Response<Body> {
    tracing::warn!(%error, "request of a session not handled");
    let message = "the state of the session is not available now; try again later";
    Rejection::new(StatusCode::SERVICE_UNAVAILABLE, message)
        .with_retry_after(RETRY_AFTER)
        .into_response()
}

/// Passes a request on. The wait ends with the lease of the owner.
async fn attempt(
    from: &HttpRequest<'_>,
    replication: &Replication,
    owner: &ReplicaAddress,
) -> Attempt {
    let attempt = send(from, replication, owner).await;
    from.transport.gateway.traffic.metrics.count_forwarded(match attempt {
        Attempt::Response(_) => ForwardedOutcome::Response,
        Attempt::NotReceived => ForwardedOutcome::NotReceived,
        Attempt::Lost => ForwardedOutcome::Lost,
    });
    attempt
}

async fn send(
    from: &HttpRequest<'_>,
    replication: &Replication,
    owner: &ReplicaAddress,
) -> Attempt {
    let request = match forwarded_request(from, &replication.replicas, owner) {
        Ok(request) => request,
        Err(error) => {
            tracing::error!(%error, url = owner.url, "the URL of a replica is not usable");
            return Attempt::NotReceived;
        }
    };
    let sent = tokio::select! {
        biased;
        sent = replication.forwarder.request(request) => sent,
        () = lease_end(&replication.replicas, owner) => {
            tracing::warn!(owner = owner.id, "the owner of a request has lost its lease");
            return Attempt::Lost;
        }
    };
    match sent {
        Ok(response) if response.status() == StatusCode::MISDIRECTED_REQUEST => {
            Attempt::NotReceived
        }
        Ok(response) => Attempt::Response(response),
        Err(error) if error.is_connect() => Attempt::NotReceived,
        Err(error) => {
            tracing::warn!(%error, owner = owner.id, "the owner of a request did not respond");
            Attempt::Lost
        }
    }
}

fn forwarded_request(
    from: &HttpRequest<'_>,
    replicas: &Replicas,
    owner: &ReplicaAddress,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let endpoint = from.transport.gateway.replica_label(from.endpoint);
    let url = &owner.url;
    let url = match from.target {
        ReplicaTarget::Mcp => format!("{url}{REPLICA_PATH}/mcp/{endpoint}"),
        ReplicaTarget::Messages(query) => format!("{url}{REPLICA_PATH}/messages?{query}"),
        ReplicaTarget::Rest(path) => format!("{url}{REPLICA_PATH}/rest/{endpoint}{path}"),
    };
    let mut request = Request::builder().method(from.parts.method.clone()).uri(url);
    if let Some(headers) = request.headers_mut() {
        *headers = forwarded_headers(&from.parts.headers);
    }
    request
        .header(header::AUTHORIZATION, format!("Bearer {}", replicas.secret().expose()))
        .header(PRINCIPAL, URL_SAFE_NO_PAD.encode(from.principal.id().as_bytes()))
        .header(REQUEST_ID, &from.id)
        .body(Full::new(from.body.clone()))
}

/// Returns the headers of a client for another replica.
fn forwarded_headers(headers: &HeaderMap) -> HeaderMap {
    let forwarded = headers.iter().filter(|(name, _)| {
        !NOT_FORWARDED.contains(name)
            && ![PRINCIPAL, REQUEST_ID].contains(name)
            && !is_of_connection(headers, name)
    });
    forwarded.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns whether the client names a header as one of its connection.
fn is_of_connection(headers: &HeaderMap, name: &HeaderName) -> bool {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let mut names = values.flat_map(|value| value.split(','));
    names.any(|named| named.trim().eq_ignore_ascii_case(name.as_str()))
}

/// Waits until a replica has no lease. A store that does not respond says nothing.
async fn lease_end(replicas: &Replicas, replica: &ReplicaAddress) {
    loop {
        sleep(replicas.lease_time() / 2).await;
        if let Ok(false) = replicas.is_alive(replica).await {
            return;
        }
    }
}

/// Returns the response for requests whose owner ended: an error for each that may have run. `None`
/// if all of them can be sent again. This replica owns the key now, so that nothing more is recorded.
async fn lost_calls(
    from: &HttpRequest<'_>,
    replicas: &Replicas,
    ownership: &Ownership,
    requests: &[RequestId],
) -> Option<Response<Body>> {
    let sent = match replicas.calls(&ownership.key).await {
        Ok(calls) if ownership.moves > 0 => calls.into_iter().map(|(id, _)| id).collect::<Vec<_>>(),
        // Redis does not respond, or lost its data with the records: what is not known may have run.
        _ => return outcomes(from, requests, |_| true),
    };
    let has_run = |id: &RequestId| sent.contains(&call_id(&from.id, id));
    if !requests.iter().any(has_run) {
        return None;
    }
    outcomes(from, requests, has_run)
}

/// Returns a response with an error for each request; `None` without requests.
pub(in crate::transport::http) fn outcomes(
    from: &HttpRequest<'_>,
    requests: &[RequestId],
    may_have_run: impl Fn(&RequestId) -> bool,
) -> Option<Response<Body>> {
    let lines: Vec<Bytes> = requests
        .iter()
        .map(|id| {
            let error = match may_have_run(id) {
                true => RpcError::outcome_unknown(&call_id(&from.id, id)),
                false => RpcError::not_run(),
            };
            incoming::error_line(Some(id), &error)
        })
        .collect();
    let line = match &lines[..] {
        [] => return None,
        [line] => line.clone(),
        lines => batch_line(lines),
    };
    Some(json_response(StatusCode::OK, line))
}

/// A response of another replica under way to the client.
struct Passing {
    body: (http::response::Parts, Incoming),
    replicas: Replicas,
    owner: ReplicaAddress,
    key: OwnedKey,
    calls: Vec<String>,
}

impl Passing {
    /// Returns the response. Its body breaks off when the owner ends.
    fn response(self) -> Response<Body> {
        let Self { body: (mut parts, body), replicas, owner, key, mut calls } = self;
        if parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == EVENTS) {
            // The owner removes the records when the response is stored. Until then, an end of the
            // stream is no response.
            calls.clear();
        }
        for name in NOT_FORWARDED {
            if name != header::CONTENT_LENGTH {
                parts.headers.remove(name);
            }
        }
        let state = Some((body, calls));
        let frames = stream::unfold(state, move |state| {
            let replicas = replicas.clone();
            let owner = owner.clone();
            let key = key.clone();
            async move {
                let (mut body, calls) = state?;
                loop {
                    match timeout(replicas.lease_time() / 2, body.frame()).await {
                        Ok(None) => {
                            // The client has the whole response.
                            for call in calls {
                                replicas.forget_call(&key, call);
                            }
                            return None;
                        }
                        Ok(Some(Ok(frame))) => {
                            if let Ok(data) = frame.into_data() {
                                return Some((Ok(data), Some((body, calls))));
                            }
                        }
                        Ok(Some(Err(error))) => return Some((Err(error.to_string()), None)),
                        Err(_) => {
                            if let Ok(false) = replicas.is_alive(&owner).await {
                                let error = "the replica of the session has ended";
                                return Some((Err(error.to_owned()), None));
                            }
                        }
                    }
                }
            }
        });
        Response::from_parts(parts, Body::from_stream(frames))
    }
}

/// What another replica says about a request that it passes on.
pub(crate) struct ForwardedHead {
    pub(crate) principal: Principal,
    pub(crate) id: String,
}

impl ForwardedHead {
    /// Reads the headers of a request that has the secret of the replicas.
    ///
    /// # Errors
    ///
    /// Returns the response to any other request.
    pub(crate) fn from_headers(
        headers: &HeaderMap,
        replicas: &Replicas,
    ) -> Result<Self, Rejection> {
        let expected = format!("Bearer {}", replicas.secret().expose());
        let presented = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let is_replica =
            presented.is_some_and(|presented| bool::from(presented.ct_eq(expected.as_bytes())));
        if !is_replica {
            let message = "only replicas with the same `MCP_REPLICA_SECRET` may send requests here";
            return Err(Rejection::new(StatusCode::UNAUTHORIZED, message));
        }
        let principal = headers
            .get(PRINCIPAL)
            .and_then(|value| URL_SAFE_NO_PAD.decode(value.as_bytes()).ok())
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let id = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        match (principal, id) {
            (Some(principal), Some(id)) => {
                Ok(Self { principal: Principal::new(principal), id: id.to_owned() })
            }
            _ => Err(Rejection::new(StatusCode::BAD_REQUEST, "the request has no principal or id")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: remote | a client sends a credential in each header for one, headers of its connection, and
    /// headers with another principal and id | no other replica gets them, and it gets all others |
    /// Secrets stay with their owner
    #[test]
    fn credentials_and_headers_of_the_connection_stay_at_the_first_replica() {
        let names = [
            ("authorization", "Bearer secret"),
            ("x-api-key", "secret"),
            ("cookie", "a=secret"),
            ("proxy-authorization", "Basic secret"),
            ("innkeeper-principal", "YWRh"),
            ("innkeeper-request-id", "1"),
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("keep-alive", "timeout=5"),
            ("mcp-session-id", "s"),
            ("x-trace", "a"),
            ("x-trace", "b"),
        ];
        let name = |name: &'static str| HeaderName::from_static(name);
        let headers: HeaderMap =
            names.iter().map(|(key, value)| (name(key), HeaderValue::from_static(value))).collect();
        let forwarded = forwarded_headers(&headers);
        let forwarded: Vec<_> = forwarded
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(forwarded, [("mcp-session-id", "s"), ("x-trace", "a"), ("x-trace", "b")]);
    }
}

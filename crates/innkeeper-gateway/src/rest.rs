//! Tools over plain HTTP: a list, one POST for each call, and their description in OpenAPI.
//!
//! A call takes the path of `tools/call`: the same policy, rates, validation and cancellation. A
//! client gets no request of a server, because it cannot answer one.

mod openapi;
mod problem;

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};
use innkeeper_host::TraceContext;
use innkeeper_protocol::request_meta::IncomingMeta;
use innkeeper_protocol::{RequestId, RequestParams, Revision, method};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::sleep;

use crate::caller::Caller;
use crate::client::ClientIdentity;
use crate::error::{ErrorKind, RpcError};
use crate::gateway_tools::GatewayTool;
use crate::json_text::empty_object;
use crate::json_text::legacy_result;
use crate::metrics::ClientTransport;
use crate::offering::ListKind;
use crate::offers::Need;
use crate::principal::Principal;
use crate::quota::Reservation;
use crate::request::{ClientRequest, Reply};
use crate::response_memory::ResponseRoom;
use crate::sink::MessageSink;
use crate::state::GatewayState;
use crate::transport::http::{HttpTransport, SILENCE, check_content, slow_json};

pub(crate) use problem::Problem;

/// The requests of these clients have the form of this revision: arguments that do not match the
/// schema of the tool are an error, not a result.
const REVISION: Revision = Revision::V2025_06_18;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RestResource {
    /// `/openapi.json`
    Description,
    /// `/tools`
    Tools,
    /// `/tools/NAME`
    Tool(String),
}

impl RestResource {
    /// Returns the path and the query of a request for another replica.
    pub(crate) fn replica_path(parts: &Parts) -> Option<String> {
        let path = parts.uri.path_and_query()?.as_str();
        match path.strip_prefix("/endpoints/") {
            Some(named) => named.find('/').and_then(|end| named.get(end..)).map(str::to_owned),
            None => Some(path.to_owned()),
        }
    }

    fn method(&self) -> Method {
        match self {
            Self::Description | Self::Tools => Method::GET,
            Self::Tool(_) => Method::POST,
        }
    }
}

/// The parameters of `tools/call`.
#[derive(serde::Serialize)]
struct CallParams<'a> {
    name: &'a str,
    arguments: &'a RawValue,
}

/// A call that passed its checks.
struct RestCall {
    name: String,
    /// The parameters of `tools/call`.
    params: Box<RawValue>,
    _memory: Reservation,
}

/// A client with the endpoint that it uses.
#[derive(Debug)]
pub(crate) struct RestClient {
    pub(crate) transport: Arc<HttpTransport>,
    pub(crate) endpoint: usize,
    pub(crate) principal: Principal,
    /// Whether a request needs a credential, for the description.
    pub(crate) needs_credential: bool,
    pub(crate) header_trace: Option<TraceContext>,
}

/// Handles one request. Dropping the future or the body of the response cancels the call at its
/// server.
pub(crate) async fn handle(
    client: RestClient,
    resource: RestResource,
    parts: &Parts,
    body: Body,
) -> Response<Body> {
    let allowed = resource.method();
    // The library omits the body of a response to HEAD.
    let is_allowed =
        parts.method == allowed || (&parts.method, &allowed) == (&Method::HEAD, &Method::GET);
    if !is_allowed {
        return Problem::method_not_allowed(&allowed).into_response();
    }
    let room = match client.gateway().traffic.responses.reserve(&client.principal, None) {
        Ok(room) => room,
        Err(full) => return Problem::from_rejection(&full.rejection()).into_response(),
    };
    let handled = match resource {
        RestResource::Description => client.description().await.map(Bytes::from),
        RestResource::Tools => client.list(parts.uri.query()).await,
        RestResource::Tool(name) => match client.prepare_call(&name, parts, body).await {
            Ok(call) => return Box::pin(run(client, call, room)).await,
            Err(problem) => Err(problem),
        },
    };
    held_response(room, handled)
}

/// Returns the response to a request, which counts until the client has read it.
fn held_response(room: ResponseRoom, handled: Result<Bytes, Problem>) -> Response<Body> {
    let response = handled.map_or_else(Problem::into_response, |body| {
        let mut response = Response::new(Body::from(body));
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    });
    room.hold_response(response)
        .unwrap_or_else(|full| Problem::from_rejection(&full.rejection()).into_response())
}

/// Calls a tool. The response of a call that takes longer than [`SILENCE`] starts before its result is
/// known, with the status 200: an error is then a result with `isError`.
async fn run(client: RestClient, call: RestCall, room: ResponseRoom) -> Response<Body> {
    let mut calling = Box::pin(async move { client.call(call).await });
    tokio::select! {
        biased;
        called = &mut calling => return held_response(room, called),
        () = sleep(SILENCE) => {}
    }
    slow_json(Box::pin(async move {
        let result = calling.await.unwrap_or_else(Problem::into_tool_result);
        let held = room.hold(result, |full| Problem::from_error(full.clone()).into_tool_result());
        Ok(held.into())
    }))
}

impl RestClient {
    fn gateway(&self) -> &Arc<GatewayState> {
        &self.transport.gateway
    }

    fn caller(&self) -> Caller {
        let capabilities = empty_object().into();
        Caller {
            principal: self.principal.clone(),
            endpoint: self.endpoint,
            client: None,
            subscription: None,
            identity: ClientIdentity { revision: REVISION, capabilities },
            transport: ClientTransport::Rest,
            header_trace: self.header_trace.clone(),
            calls: None,
        }
    }

    /// Returns the path of the endpoint, without a slash at its end.
    fn base_path(&self) -> String {
        let endpoint = self.gateway().offers.endpoints.get(self.endpoint);
        let name = endpoint.and_then(|endpoint| endpoint.name.as_deref());
        name.map(|name| format!("/endpoints/{name}")).unwrap_or_default()
    }

    async fn request(&self, method: &str, params: &RawValue) -> Reply {
        let counted = self.gateway().traffic.metrics.start_request(ClientTransport::Rest, method);
        let params = &RequestParams::from_raw(Some(params))?;
        let request = ClientRequest {
            id: &RequestId::Integer(0),
            method,
            params,
            meta: IncomingMeta::default(),
            caller: &self.caller(),
            sink: &MessageSink::None,
            param_headers: None,
        };
        counted.finish(self.gateway().methods.handle(request).await.map(legacy_result))
    }

    /// Returns a page of the tools. The only parameter of the query is `cursor`.
    async fn list(&self, query: Option<&str>) -> Result<Bytes, Problem> {
        let mut pairs = query.unwrap_or_default().split('&');
        // The characters of cursors need no escapes.
        let cursor = pairs.find_map(|pair| pair.strip_prefix("cursor="));
        let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let params = to_raw_value(&params).unwrap_or_default();
        let listed = self.request(method::TOOLS_LIST, &params).await;
        listed.map(into_bytes).map_err(|error| {
            let hint =
                format!("omit `cursor`, to read `{}/tools` from its start", self.base_path());
            Problem::from_error(error).with_hint(hint)
        })
    }

    /// Returns a problem with the tool and what its client can do.
    fn call_problem(&self, problem: Problem, tool: &str) -> Problem {
        let base = self.base_path();
        let hint = match problem.status() {
            StatusCode::NOT_FOUND => format!("`GET {base}/tools` returns the names of the tools"),
            StatusCode::BAD_REQUEST => {
                format!("`GET {base}/openapi.json` has the schema of the arguments")
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                "send the arguments as a JSON object with `Content-Type: application/json`".into()
            }
            _ => return problem.with_tool(tool),
        };
        problem.with_tool(tool).with_hint(hint)
    }

    /// Checks a call and reads its arguments.
    async fn prepare_call(
        &self,
        name: &str,
        parts: &Parts,
        body: Body,
    ) -> Result<RestCall, Problem> {
        // Before the body, so that an unknown tool reads nothing.
        let caller = self.caller();
        let is_of_gateway =
            GatewayTool::find(self.gateway().offers.endpoints.options(self.endpoint), name)
                .is_some();
        let need = if is_of_gateway { Need::Known } else { Need::Tool(name) };
        let offering = self.gateway().offers.offering_for(&caller, need).await;
        let offering = offering.map_err(|error| Problem::from_error(error).with_tool(name))?;
        let known = self.gateway().offers.permitted_tool(&self.principal, &offering, name);
        if known.is_none() && !is_of_gateway {
            let unknown = RpcError::unknown_item("tool", name);
            let error =
                self.gateway().offers.missing_item(&caller, &offering, Need::Tool(name), unknown);
            if error.kind != ErrorKind::UnknownItem {
                return Err(self.call_problem(Problem::from_error(error), name));
            }
            self.gateway().traffic.audit_log.record_refused_tool(&self.principal, name);
            return Err(self.call_problem(Problem::unknown_tool(name), name));
        }
        let read = async {
            check_content(&parts.headers)?;
            self.transport.bodies.read(&self.principal, body).await
        };
        let (body, memory) = read
            .await
            .map_err(|rejection| self.call_problem(Problem::from_rejection(&rejection), name))?;
        let bad_request = |detail| self.call_problem(Problem::bad_request(detail), name);
        let arguments: Box<RawValue> = serde_json::from_slice(&body)
            .map_err(|error| bad_request(format!("the body is not JSON: {error}")))?;
        if !arguments.get().starts_with('{') {
            return Err(bad_request(
                "the body must be a JSON object with the arguments of the tool".to_owned(),
            ));
        }
        let params = to_raw_value(&CallParams { name, arguments: &arguments })
            .map_err(|error| bad_request(error.to_string()))?;
        Ok(RestCall { name: name.to_owned(), params, _memory: memory })
    }

    async fn call(&self, call: RestCall) -> Result<Bytes, Problem> {
        let called = self.request(method::TOOLS_CALL, &call.params).await;
        called
            .map(into_bytes)
            .map_err(|error| self.call_problem(Problem::from_error(error), &call.name))
    }

    /// Returns the description of the tools that the client may call.
    async fn description(&self) -> Result<String, Problem> {
        let caller = self.caller();
        let offering =
            self.gateway().offers.offering(&caller).await.map_err(Problem::from_error)?;
        let tools = offering.list(ListKind::Tools).items();
        let offered = tools
            .iter()
            .filter(|tool| self.gateway().offers.shows_tool(&caller, &offering, &tool.name));
        Ok(openapi::description(&self.base_path(), offered, self.needs_credential).to_string())
    }
}

fn into_bytes(result: Box<RawValue>) -> Bytes {
    String::from(Box::<str>::from(result)).into()
}

//! All routes of the gateway in one function.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};

use crate::auth::Authenticator;
use crate::gateway::GatewayInner;
use crate::metrics::{GatewayGauges, RejectionReason};
use crate::origin::OriginCheck;
use crate::principal::Principal;
use crate::rejection::Rejection;
use crate::rest::{self, Problem, RestClient, RestResource};
use crate::transport::http::{self as mcp, HttpTransport};

/// Who may send requests over HTTP.
#[derive(Debug)]
pub struct HttpAccess {
    /// Finds the principal of each request.
    pub authenticator: Authenticator,
    /// Rejects requests of web pages and names of other machines.
    pub origin: OriginCheck,
}

/// The state of all routes.
#[derive(Debug)]
struct Routes {
    transport: Arc<HttpTransport>,
    access: HttpAccess,
}

/// What a request is for.
enum Target {
    /// MCP at the endpoint with this index.
    Mcp(usize),
    /// Plain HTTP at the endpoint with this name.
    Rest(Option<String>, RestResource),
    /// The metrics of the process.
    Metrics,
}

/// Returns the routes: `/mcp` and `/mcp/NAME` for MCP, `/tools` and `/openapi.json` for plain HTTP,
/// the same under `/endpoints/NAME`, the metadata of the protected resource for clients that sign in
/// (RFC 9728), `/metrics`, `/healthz` and `/readyz` for operators.
pub(crate) fn router(transport: Arc<HttpTransport>, access: HttpAccess) -> Router {
    let metadata = access
        .authenticator
        .resource_metadata()
        .map(|metadata| (metadata.path().to_owned(), metadata.document().to_string()));
    let router = Router::new()
        .route("/mcp", any(default_endpoint))
        .route("/mcp/{name}", any(named_endpoint))
        .route("/openapi.json", any(description))
        .route("/tools", any(tools))
        .route("/tools/{tool}", any(tool))
        .route("/endpoints/{name}/openapi.json", any(named_description))
        .route("/endpoints/{name}/tools", any(named_tools))
        .route("/endpoints/{name}/tools/{tool}", any(named_tool))
        .route("/metrics", any(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(Arc::new(Routes { transport, access }));
    match metadata {
        Some((path, document)) => router.route(&path, get(async move || json(document))),
        None => router,
    }
}

type RoutesState = State<Arc<Routes>>;

async fn default_endpoint(State(routes): RoutesState, request: Request) -> Response<Body> {
    routes.handle(Target::Mcp(0), request).await
}

async fn named_endpoint(
    State(routes): RoutesState,
    Path(name): Path<String>,
    request: Request,
) -> Response<Body> {
    match routes.transport.gateway.endpoint_index(&name) {
        Some(index) => routes.handle(Target::Mcp(index), request).await,
        None => plain(StatusCode::NOT_FOUND, "no endpoint has this name\n"),
    }
}

async fn description(State(routes): RoutesState, request: Request) -> Response<Body> {
    routes.handle(Target::Rest(None, RestResource::Description), request).await
}

async fn tools(State(routes): RoutesState, request: Request) -> Response<Body> {
    routes.handle(Target::Rest(None, RestResource::Tools), request).await
}

async fn tool(
    State(routes): RoutesState,
    Path(tool): Path<String>,
    request: Request,
) -> Response<Body> {
    routes.handle(Target::Rest(None, RestResource::Tool(tool)), request).await
}

async fn named_description(
    State(routes): RoutesState,
    Path(name): Path<String>,
    request: Request,
) -> Response<Body> {
    routes.handle(Target::Rest(Some(name), RestResource::Description), request).await
}

async fn named_tools(
    State(routes): RoutesState,
    Path(name): Path<String>,
    request: Request,
) -> Response<Body> {
    routes.handle(Target::Rest(Some(name), RestResource::Tools), request).await
}

async fn named_tool(
    State(routes): RoutesState,
    Path((name, tool)): Path<(String, String)>,
    request: Request,
) -> Response<Body> {
    routes.handle(Target::Rest(Some(name), RestResource::Tool(tool)), request).await
}

async fn metrics(State(routes): RoutesState, request: Request) -> Response<Body> {
    routes.handle(Target::Metrics, request).await
}

impl Routes {
    /// Handles a request if its origin, its client and its rate permit it.
    async fn handle(&self, target: Target, request: Request) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if parts.method == Method::OPTIONS
            && let Some(headers) = self.access.origin.preflight_headers(&parts)
        {
            let mut response = plain(StatusCode::NO_CONTENT, Body::empty());
            *response.headers_mut() = headers;
            return response;
        }
        let shared = self.access.origin.cors_headers(&parts);
        let mut response = match (self.admit(&parts).await, target) {
            (Ok(principal), Target::Mcp(endpoint)) => {
                let request = Request::from_parts(parts, body);
                mcp::handle(&self.transport, endpoint, principal, request).await
            }
            (Ok(principal), Target::Rest(endpoint, resource)) => {
                self.handle_rest((endpoint, resource), principal, parts, body).await
            }
            (Ok(_), Target::Metrics) => self.metrics(&parts.method),
            (Err(rejection), target) => {
                tracing::info!(
                    status = rejection.status().as_u16(),
                    reason = rejection.message(),
                    "request of a client rejected"
                );
                match target {
                    Target::Mcp(_) => rejection.into_response(),
                    Target::Rest(..) | Target::Metrics => {
                        Problem::from_rejection(&rejection).into_response()
                    }
                }
            }
        };
        response.headers_mut().extend(shared);
        response
    }

    async fn handle_rest(
        &self,
        (endpoint, resource): (Option<String>, RestResource),
        principal: Principal,
        parts: Parts,
        body: Body,
    ) -> Response<Body> {
        let gateway = self.transport.gateway.clone();
        let index = match &endpoint {
            None => 0,
            Some(name) => match gateway.endpoint_index(name) {
                Some(index) => index,
                None => return Problem::unknown_endpoint(name).into_response(),
            },
        };
        let needs_credential = self.access.authenticator.needs_credential();
        let client = RestClient { gateway, endpoint: index, principal, needs_credential };
        rest::handle(&client, resource, &parts, body).await
    }

    /// Returns the metrics of the host and of the gateway.
    fn metrics(&self, method: &Method) -> Response<Body> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Problem::method_not_allowed(&Method::GET).into_response();
        }
        let gateway = &self.transport.gateway;
        let gauges = GatewayGauges {
            sessions: self.transport.sessions.count(),
            parked_calls: gateway.parked_calls.remove_expired(),
        };
        let hosts = gateway.view.upstreams().iter().map(|upstream| upstream.host.prometheus());
        let text: String = hosts.chain([gateway.metrics.prometheus(gauges)]).collect();
        let mut response = plain(StatusCode::OK, text);
        let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }

    async fn admit(&self, parts: &Parts) -> Result<Principal, Rejection> {
        let gateway = &self.transport.gateway;
        let count = |reason| move |_: &Rejection| gateway.metrics.count_rejection(reason);
        self.access.origin.check(parts).inspect_err(count(RejectionReason::Origin))?;
        let principal = self.access.authenticator.authenticate(parts).await;
        let principal = principal.inspect_err(count(RejectionReason::Authentication))?;
        let counted = gateway.rate_limits.count_request(&principal).map_err(Rejection::from);
        counted.inspect_err(count(RejectionReason::Rate))?;
        Ok(principal)
    }
}

/// The process runs.
async fn healthz() -> &'static str {
    "ok\n"
}

/// All required servers are ready, and the gateway accepts requests.
async fn readyz(State(routes): State<Arc<Routes>>) -> Response<Body> {
    match routes.transport.gateway.not_ready() {
        None => plain(StatusCode::OK, "ready\n"),
        Some(reason) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
    }
}

fn plain(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response
}

fn json(text: String) -> Response<Body> {
    let mut response = plain(StatusCode::OK, text);
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

impl GatewayInner {
    /// Returns the index of a named endpoint.
    fn endpoint_index(&self, name: &str) -> Option<usize> {
        self.endpoints.iter().position(|endpoint| endpoint.name.as_deref() == Some(name))
    }
}

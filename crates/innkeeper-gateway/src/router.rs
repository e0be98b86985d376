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
use crate::origin::OriginCheck;
use crate::principal::Principal;
use crate::rejection::Rejection;
use crate::transport::http::{self as mcp, HttpTransport};

/// Who may send requests over HTTP.
#[derive(Debug)]
pub struct HttpAccess {
    /// Finds the principal of each request.
    pub authenticator: Authenticator,
    /// Rejects requests of web pages and names of other machines.
    pub origin: OriginCheck,
}

/// The part of the transport that a request is for.
#[derive(Clone, Copy, Debug)]
enum Target {
    Mcp,
    SseStream,
    SseMessages,
}

/// The state of all routes.
#[derive(Debug)]
struct Routes {
    transport: Arc<HttpTransport>,
    access: HttpAccess,
}

/// Returns the routes: `/mcp` and `/mcp/NAME` for MCP, `/sse`, `/sse/NAME` and `/messages` for
/// HTTP+SSE, the metadata of the protected resource for
/// clients that sign in (RFC 9728), `/healthz` and `/readyz` for operators.
pub(crate) fn router(transport: Arc<HttpTransport>, access: HttpAccess) -> Router {
    let metadata = access
        .authenticator
        .resource_metadata()
        .map(|metadata| (metadata.path().to_owned(), metadata.document().to_string()));
    let router = Router::new()
        .route("/mcp", any(default_endpoint))
        .route("/mcp/{name}", any(named_endpoint))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/sse", any(default_sse_stream))
        .route("/sse/{name}", any(named_sse_stream))
        .route(mcp::MESSAGES_PATH, any(sse_messages))
        .fallback(unknown_path)
        .with_state(Arc::new(Routes { transport, access }));
    match metadata {
        Some((path, document)) => router.route(&path, get(async move || json(document))),
        None => router,
    }
}

async fn default_endpoint(State(routes): State<Arc<Routes>>, request: Request) -> Response<Body> {
    routes.handle(Some(0), Target::Mcp, request).await
}

async fn named_endpoint(
    State(routes): State<Arc<Routes>>,
    Path(name): Path<String>,
    request: Request,
) -> Response<Body> {
    let endpoint = routes.transport.gateway.endpoint_index(&name);
    routes.handle(endpoint, Target::Mcp, request).await
}

async fn default_sse_stream(State(routes): State<Arc<Routes>>, request: Request) -> Response<Body> {
    routes.handle(Some(0), Target::SseStream, request).await
}

async fn named_sse_stream(
    State(routes): State<Arc<Routes>>,
    Path(name): Path<String>,
    request: Request,
) -> Response<Body> {
    let endpoint = routes.transport.gateway.endpoint_index(&name);
    routes.handle(endpoint, Target::SseStream, request).await
}

/// The endpoint of a message is that of its stream.
async fn sse_messages(State(routes): State<Arc<Routes>>, request: Request) -> Response<Body> {
    routes.handle(Some(0), Target::SseMessages, request).await
}

async fn unknown_path() -> Rejection {
    Rejection::new(StatusCode::NOT_FOUND, "no such path; the path of MCP is `/mcp`")
}

impl Routes {
    /// Handles a request if its origin, its client and its rate permit it. Without a permission the
    /// client does not learn whether the endpoint exists.
    async fn handle(
        &self,
        endpoint: Option<usize>,
        target: Target,
        request: Request,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if parts.method == Method::OPTIONS
            && let Some(headers) = self.access.origin.preflight_headers(&parts)
        {
            let mut response = plain(StatusCode::NO_CONTENT, Body::empty());
            *response.headers_mut() = headers;
            return response;
        }
        let shared = self.access.origin.cors_headers(&parts);
        let admitted = self.admit(&parts).await.and_then(|principal| {
            let unknown = || {
                let message = "no endpoint has this name; `serve.endpoints` has the names";
                Rejection::new(StatusCode::NOT_FOUND, message)
            };
            Ok((principal, endpoint.ok_or_else(unknown)?))
        });
        let mut response = match admitted {
            Ok((principal, endpoint)) => {
                let request = Request::from_parts(parts, body);
                let transport = &self.transport;
                match target {
                    Target::Mcp => mcp::handle(transport, endpoint, principal, request).await,
                    Target::SseStream => mcp::open_stream(transport, endpoint, principal, &request),
                    Target::SseMessages => {
                        mcp::receive_message(transport, principal, request).await
                    }
                }
            }
            Err(rejection) => {
                tracing::info!(
                    status = rejection.status().as_u16(),
                    reason = rejection.message(),
                    "request of a client rejected"
                );
                rejection.into_response()
            }
        };
        response.headers_mut().extend(shared);
        response
    }

    async fn admit(&self, parts: &Parts) -> Result<Principal, Rejection> {
        self.access.origin.check(parts)?;
        let principal = self.access.authenticator.authenticate(parts).await?;
        self.transport.gateway.rate_limits.count_request(&principal)?;
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

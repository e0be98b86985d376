//! All routes of the gateway in one function.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::routing::{any, get};
use http::{Response, StatusCode};

use crate::gateway::GatewayInner;
use crate::principal::Principal;
use crate::transport::http::{self as mcp, HttpTransport};

/// Returns the routes: `/mcp` and `/mcp/NAME` for MCP, `/healthz` and `/readyz` for operators.
pub(crate) fn router(transport: Arc<HttpTransport>) -> Router {
    Router::new()
        .route("/mcp", any(default_endpoint))
        .route("/mcp/{name}", any(named_endpoint))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(transport)
}

async fn default_endpoint(
    State(transport): State<Arc<HttpTransport>>,
    request: Request,
) -> Response<Body> {
    mcp::handle(&transport, 0, Principal::local_user(), request).await
}

async fn named_endpoint(
    State(transport): State<Arc<HttpTransport>>,
    Path(name): Path<String>,
    request: Request,
) -> Response<Body> {
    match transport.gateway.endpoint_index(&name) {
        Some(index) => mcp::handle(&transport, index, Principal::local_user(), request).await,
        None => plain(StatusCode::NOT_FOUND, "no endpoint has this name\n"),
    }
}

/// The process runs.
async fn healthz() -> &'static str {
    "ok\n"
}

/// All required servers are ready, and the gateway accepts requests.
async fn readyz(State(transport): State<Arc<HttpTransport>>) -> Response<Body> {
    match transport.gateway.not_ready() {
        None => plain(StatusCode::OK, "ready\n"),
        Some(reason) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
    }
}

fn plain(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response
}

impl GatewayInner {
    /// Returns the index of a named endpoint.
    fn endpoint_index(&self, name: &str) -> Option<usize> {
        self.endpoints.iter().position(|endpoint| endpoint.name.as_deref() == Some(name))
    }
}

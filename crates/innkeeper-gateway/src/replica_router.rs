//! The routes for requests that other replicas pass on.

use std::sync::{Arc, OnceLock, Weak};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::IntoResponse;
use axum::routing::any;
use http::{Response, StatusCode};

use crate::principal::Principal;
use crate::rejection::Rejection;
use crate::rest::{self, Problem, RestClient, RestResource};
use crate::state::GatewayState;
use crate::transport::http::{self as mcp, ForwardedHead, HttpTransport, Origin, REPLICA_PATH};

/// Where requests of other replicas arrive.
#[derive(Clone)]
struct ReplicaRoutes {
    gateway: Arc<GatewayState>,
    transport: Arc<OnceLock<Weak<HttpTransport>>>,
}

/// Returns the routes for requests that other replicas pass on.
pub(crate) fn replica_router(
    gateway: &Arc<GatewayState>,
    transport: &Arc<OnceLock<Weak<HttpTransport>>>,
) -> Router {
    let routes = ReplicaRoutes { gateway: gateway.clone(), transport: transport.clone() };
    Router::new()
        .route(&format!("{REPLICA_PATH}/mcp/{{endpoint}}"), any(forwarded_mcp))
        .route(&format!("{REPLICA_PATH}/messages"), any(forwarded_message))
        .route(
            &format!("{REPLICA_PATH}/rest/{{endpoint}}/openapi.json"),
            any(forwarded_description),
        )
        .route(&format!("{REPLICA_PATH}/rest/{{endpoint}}/tools"), any(forwarded_tools))
        .route(&format!("{REPLICA_PATH}/rest/{{endpoint}}/tools/{{tool}}"), any(forwarded_tool))
        .with_state(routes)
}

async fn forwarded_mcp(
    State(routes): State<ReplicaRoutes>,
    Path(endpoint): Path<String>,
    request: Request,
) -> Response<Body> {
    match forwarded(&routes, Some(&endpoint), &request) {
        Ok((transport, origin)) => mcp::handle(&transport, origin, request).await,
        Err(rejection) => rejection.into_response(),
    }
}

async fn forwarded_message(
    State(routes): State<ReplicaRoutes>,
    request: Request,
) -> Response<Body> {
    match forwarded(&routes, None, &request) {
        Ok((transport, origin)) => mcp::receive_message(&transport, origin, request).await,
        Err(rejection) => rejection.into_response(),
    }
}

async fn forwarded_description(
    State(routes): State<ReplicaRoutes>,
    Path(endpoint): Path<String>,
    request: Request,
) -> Response<Body> {
    forwarded_rest(&routes, &endpoint, RestResource::Description, request).await
}

async fn forwarded_tools(
    State(routes): State<ReplicaRoutes>,
    Path(endpoint): Path<String>,
    request: Request,
) -> Response<Body> {
    forwarded_rest(&routes, &endpoint, RestResource::Tools, request).await
}

async fn forwarded_tool(
    State(routes): State<ReplicaRoutes>,
    Path((endpoint, tool)): Path<(String, String)>,
    request: Request,
) -> Response<Body> {
    forwarded_rest(&routes, &endpoint, RestResource::Tool(tool), request).await
}

async fn forwarded_rest(
    routes: &ReplicaRoutes,
    endpoint: &str,
    resource: RestResource,
    request: Request,
) -> Response<Body> {
    let (transport, origin) = match forwarded(routes, Some(endpoint), &request) {
        Ok(forwarded) => forwarded,
        Err(rejection) => return Problem::from_rejection(&rejection).into_response(),
    };
    let (parts, body) = request.into_parts();
    let endpoint = origin.endpoint;
    let principal = origin.principal.clone();
    let path = parts.uri.path();
    let placing = mcp::place_rest_request(&transport, origin, path, &parts, body);
    let body = match Box::pin(placing).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let header_trace = routes.gateway.methods.header_trace(&parts.headers);
    // Everyone who needs no credential is the local user.
    let needs_credential = principal != Principal::local_user();
    let client = RestClient { transport, endpoint, principal, needs_credential, header_trace };
    rest::handle(client, resource, &parts, body).await
}

/// Checks a request that another replica passes on, for the endpoint with a label.
fn forwarded(
    routes: &ReplicaRoutes,
    endpoint: Option<&str>,
    request: &Request,
) -> Result<(Arc<HttpTransport>, Origin), Rejection> {
    let ReplicaRoutes { gateway, transport } = routes;
    let replicas = gateway.services.replicas.as_ref();
    let replicas = replicas.ok_or_else(|| absent("the gateway has no replicas"))?;
    let head = ForwardedHead::from_headers(request.headers(), replicas)?;
    let transport = transport.get().and_then(Weak::upgrade);
    let transport = transport.ok_or_else(|| absent("the gateway serves no clients"))?;
    let endpoint = match endpoint {
        None => Some(0),
        Some(label) => gateway.endpoint_with_label(&head.principal, label),
    };
    let endpoint = endpoint
        .ok_or_else(|| absent("the replicas have different configurations: no such endpoint"))?;
    let ForwardedHead { principal, id } = head;
    Ok((transport, Origin { endpoint, principal, forwarded_id: Some(id) }))
}

fn absent(message: &str) -> Rejection {
    Rejection::new(StatusCode::NOT_FOUND, message)
}

//! All routes of the gateway in one function.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};

use crate::auth::ResourceMetadata;
use crate::connection_routes::{self, ConnectionRoute, ServiceClient};
use crate::connections::{ConnectionError, ConnectionService, rejection_response};
use crate::console::Console;
use crate::error::shown_name;
use crate::http_access::HttpAccess;
use crate::listener::PeerAddress;
use crate::metrics::{GatewayGauges, RejectionReason};
use crate::principal::Principal;
use crate::rejection::Rejection;
use crate::replicas::Replicas;
use crate::rest::{self, Problem, RestClient, RestResource};
use crate::server::ConnectionPlaces;
use crate::transport::http::{self as mcp, HttpTransport, Origin};

/// The state of all routes.
#[derive(Debug)]
struct Routes {
    transport: Arc<HttpTransport>,
    access: Arc<HttpAccess>,
    console: Option<Console>,
    /// Whether the log says that a page cannot read the responses.
    has_warned: AtomicBool,
}

/// What a request is for.
enum Target {
    /// MCP at the endpoint.
    Mcp,
    /// The stream of HTTP+SSE at the endpoint.
    SseStream,
    /// A message for a stream of HTTP+SSE.
    SseMessages,
    /// Plain HTTP at the endpoint.
    Rest(RestResource),
    /// The metrics of the process.
    Metrics,
    /// The connection service.
    Connections(ConnectionService, ConnectionRoute),
}

impl Target {
    /// Returns the response to a request that the gateway does not permit.
    fn rejection_response(&self, rejection: Rejection) -> Response<Body> {
        match self {
            Self::Rest(_) | Self::Metrics => Problem::from_rejection(&rejection).into_response(),
            Self::Connections(..) => rejection_response(&rejection),
            Self::Mcp | Self::SseStream | Self::SseMessages => rejection.into_response(),
        }
    }
}

/// Returns the routes: `/mcp` and `/mcp/NAME` for MCP, `/sse`, `/sse/NAME` and `/messages` for
/// HTTP+SSE, `/tools` and `/openapi.json` for plain HTTP, the same under `/endpoints/NAME`, the
/// metadata of the protected resource for clients that sign in (RFC 9728), `/metrics`, `/healthz` and
/// `/readyz` and `/console` for operators, and the paths of the connection service under its prefix.
pub(crate) fn router(transport: Arc<HttpTransport>, access: Arc<HttpAccess>) -> Router {
    let metadata = access.authenticator.resource_metadata().cloned();
    let connections = transport.gateway.services.connections.clone();
    let mut router = Router::new()
        .route("/mcp", any(default_endpoint))
        .route("/mcp/", any(default_endpoint))
        .route("/mcp/{name}", any(named_endpoint))
        .route("/mcp/{name}/", any(named_endpoint))
        .route("/openapi.json", any(description))
        .route("/tools", any(tools))
        .route("/tools/", any(tools))
        .route("/tools/{tool}", any(tool))
        .route("/endpoints/{name}/openapi.json", any(named_description))
        .route("/endpoints/{name}/tools", any(named_tools))
        .route("/endpoints/{name}/tools/{tool}", any(named_tool))
        .route("/metrics", any(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/sse", any(default_sse_stream))
        .route("/sse/", any(default_sse_stream))
        .route("/sse/{name}", any(named_sse_stream))
        .route("/sse/{name}/", any(named_sse_stream))
        .route(mcp::MESSAGES_PATH, any(sse_messages));
    if let Some(service) = connections {
        for route in ConnectionRoute::ALL {
            let path = format!("{}/{}", service.options().prefix, route.name());
            let service = service.clone();
            router = router.route(
                &path,
                any(async move |State(routes): RoutesState, request: Request| {
                    routes.handle(None, Target::Connections(service, route), request).await
                }),
            );
        }
        // The dialect gives other meanings to the code of a rejection.
        router = router.route(
            &format!("{}/{{*path}}", service.options().prefix),
            any(async || ConnectionError::unknown_path().into_response()),
        );
    }
    let console = transport.gateway.services.console.clone();
    let console = console.map(|options| Console::new(transport.clone(), access.clone(), options));
    if console.is_some() {
        router = router
            .route("/console", get(async || Console::first_page(false)))
            .route("/console/", get(async || Console::first_page(true)))
            .route("/console/{page}", any(console_page));
    }
    let routes =
        Arc::new(Routes { transport, access, console, has_warned: AtomicBool::new(false) });
    let router = router.fallback(unknown_path).with_state(routes);
    match metadata {
        Some(metadata) => with_metadata(router, metadata),
        None => router,
    }
}

/// Adds the documents of the protected resource: that of the audience, and that of each endpoint.
fn with_metadata(router: Router, metadata: ResourceMetadata) -> Router {
    let Some(path) = metadata.endpoints_path() else {
        let document = metadata.document().to_string();
        return router.route(metadata.path(), get(async move || json(document)));
    };
    router.route(
        &format!("{path}/{{*endpoint}}"),
        get(async move |Path(endpoint): Path<String>| {
            match metadata.of_endpoint(&format!("/{endpoint}")) {
                Some(metadata) => json(metadata.document().to_string()),
                None => unknown_path().await.into_response(),
            }
        }),
    )
}

type RoutesState = State<Arc<Routes>>;

async fn default_endpoint(State(routes): RoutesState, request: Request) -> Response<Body> {
    routes.handle(None, Target::Mcp, request).await
}

async fn named_endpoint(
    State(routes): RoutesState,
    Path(name): Path<String>,
    request: Request,
) -> Response<Body> {
    routes.handle(Some(&name), Target::Mcp, request).await
}

async fn default_sse_stream(State(routes): RoutesState, request: Request) -> Response<Body> {
    routes.handle(None, Target::SseStream, request).await
}

async fn named_sse_stream(
    State(routes): RoutesState,
    Path(name): Path<String>,
    request: Request,
) -> Response<Body> {
    routes.handle(Some(&name), Target::SseStream, request).await
}

/// The endpoint of a message is that of its stream.
async fn sse_messages(State(routes): RoutesState, request: Request) -> Response<Body> {
    routes.handle(None, Target::SseMessages, request).await
}

async fn unknown_path() -> Rejection {
    Rejection::new(StatusCode::NOT_FOUND, "no such path; the path of MCP is `/mcp`")
}

async fn description(State(routes): RoutesState, request: Request) -> Response<Body> {
    routes.handle(None, Target::Rest(RestResource::Description), request).await
}

async fn tools(State(routes): RoutesState, request: Request) -> Response<Body> {
    routes.handle(None, Target::Rest(RestResource::Tools), request).await
}

async fn tool(
    State(routes): RoutesState,
    Path(tool): Path<String>,
    request: Request,
) -> Response<Body> {
    routes.handle(None, Target::Rest(RestResource::Tool(tool)), request).await
}

async fn named_description(
    State(routes): RoutesState,
    Path(name): Path<String>,
    request: Request,
) -> Response<Body> {
    routes.handle(Some(&name), Target::Rest(RestResource::Description), request).await
}

async fn named_tools(
    State(routes): RoutesState,
    Path(name): Path<String>,
    request: Request,
) -> Response<Body> {
    routes.handle(Some(&name), Target::Rest(RestResource::Tools), request).await
}

async fn named_tool(
    State(routes): RoutesState,
    Path((name, tool)): Path<(String, String)>,
    request: Request,
) -> Response<Body> {
    routes.handle(Some(&name), Target::Rest(RestResource::Tool(tool)), request).await
}

async fn metrics(State(routes): RoutesState, request: Request) -> Response<Body> {
    routes.handle(None, Target::Metrics, request).await
}

/// The console has its own access checks: a browser has a session.
async fn console_page(
    State(routes): RoutesState,
    Path(page): Path<String>,
    request: Request,
) -> Response<Body> {
    match &routes.console {
        Some(console) => console.handle(&page, request).await,
        None => unknown_path().await.into_response(),
    }
}

impl Routes {
    /// Handles a request if its origin, its client and its rate permit it. Without a permission the
    /// client does not learn whether the endpoint exists.
    async fn handle(
        &self,
        endpoint: Option<&str>,
        target: Target,
        request: Request,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        self.warn_of_unreadable(&parts);
        if parts.method == Method::OPTIONS
            && let Some(headers) = self.access.origin.preflight_headers(&parts)
        {
            let mut response = plain(StatusCode::NO_CONTENT, Body::empty());
            *response.headers_mut() = headers;
            return response;
        }
        let shared = self.access.origin.cors_headers(&parts);
        let has_endpoint = !matches!(target, Target::SseMessages | Target::Metrics);
        let admitted = self.admit(&parts).await.and_then(|principal| {
            let index = match has_endpoint {
                true => self.transport.gateway.offers.endpoints.find(&principal, endpoint),
                false => Some(0),
            };
            let index = index.ok_or_else(|| {
                let message = "no endpoint has this name; `serve.endpoints` has the names";
                Rejection::new(StatusCode::NOT_FOUND, message)
            })?;
            Ok((principal, index))
        });
        let mut response = match admitted {
            Ok((principal, index)) => {
                let request = Request::from_parts(parts, body);
                self.respond(index, target, principal, request).await
            }
            Err(rejection) => {
                mcp::discard(body).await;
                self.record(&parts, &rejection);
                target.rejection_response(rejection)
            }
        };
        response.headers_mut().extend(shared);
        response
    }

    /// Says once why a page of this machine, such as a tool for developers, does not see the responses.
    fn warn_of_unreadable(&self, parts: &Parts) {
        let Some(origin) = self.access.origin.unreadable_origin(parts) else { return };
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            let hint = format!("add `{}` to `serve.allowedOrigins`", shown_name(origin));
            tracing::warn!(
                hint,
                "a web page of this machine may send requests and not read responses"
            );
        }
    }

    fn record(&self, parts: &Parts, rejection: &Rejection) {
        let status = rejection.status().as_u16();
        let path = shown_name(parts.uri.path());
        let text = format!("{path}: {status} {}", rejection.message());
        let audit_log = &self.transport.gateway.traffic.audit_log;
        let address = parts.extensions.get::<PeerAddress>().map(|PeerAddress(address)| *address);
        let has_credential = parts.headers.contains_key(header::AUTHORIZATION)
            || parts.headers.contains_key("x-api-key");
        match rejection.status() {
            _ if self.access.origin.check(parts).is_err() => {
                audit_log.record_attack("origin-refused", address, &text);
            }
            // Without a credential, a client asks how to sign in.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if has_credential => {
                audit_log.record_attack("credential-refused", address, &text);
            }
            _ => {
                tracing::info!(
                    status,
                    reason = rejection.message(),
                    "request of a client rejected"
                );
                audit_log.record_rejection(&text);
            }
        }
    }

    async fn respond(
        &self,
        endpoint: usize,
        target: Target,
        principal: Principal,
        request: Request,
    ) -> Response<Body> {
        let transport = &self.transport;
        // Futures of rare requests are in boxes: each request of MCP would have room for the largest.
        match target {
            Target::Mcp => {
                mcp::handle(transport, Origin::client(endpoint, principal), request).await
            }
            Target::SseStream => {
                let (parts, _) = request.into_parts();
                Box::pin(mcp::open_stream(transport, endpoint, principal, &parts)).await
            }
            Target::SseMessages => {
                // The endpoint is that of the stream.
                let origin = Origin::client(0, principal);
                Box::pin(mcp::receive_message(transport, origin, request)).await
            }
            Target::Rest(resource) => {
                let needs_credential = self.access.authenticator.requires_credential();
                let transport = transport.clone();
                let (parts, body) = request.into_parts();
                let header_trace = transport.gateway.methods.header_trace(&parts.headers);
                let origin = Origin::client(endpoint, principal.clone());
                let placed = match RestResource::replica_path(&parts) {
                    None => Ok(body),
                    Some(path) => {
                        let placing =
                            mcp::place_rest_request(&transport, origin, &path, &parts, body);
                        Box::pin(placing).await
                    }
                };
                let body = match placed {
                    Ok(body) => body,
                    Err(response) => return response,
                };
                let client =
                    RestClient { transport, endpoint, principal, needs_credential, header_trace };
                rest::handle(client, resource, &parts, body).await
            }
            Target::Metrics => self.metrics(request.method(), &principal).await,
            Target::Connections(service, route) => {
                let client = ServiceClient::new(transport, service, principal, endpoint);
                Box::pin(connection_routes::handle(client, route, request)).await
            }
        }
    }

    /// Returns the metrics of the host that all clients share, and of the gateway. A client that is bound to
    /// servers or endpoints gets those of its servers only: the gateway counts the requests for all.
    async fn metrics(&self, method: &Method, principal: &Principal) -> Response<Body> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Problem::method_not_allowed(&Method::GET).into_response();
        }
        let gateway = &self.transport.gateway;
        if !gateway.offers.endpoints.is_unbound(principal) {
            let host = gateway.servers.shared_host();
            let metrics = host
                .prometheus_for(|server| gateway.offers.endpoints.offer_server(principal, server));
            return self.hold_metrics(principal, metrics);
        }
        let open_questions = match gateway.calls.questions() {
            Some(questions) => questions.store().count_open().await.ok(),
            None => None,
        };
        let gauges = GatewayGauges {
            open_questions,
            sessions: self.transport.sessions.count(),
            parked_calls: gateway.calls.remove_expired(),
            finished_stream_bytes: self.transport.finished_streams.bytes(),
            has_lease: gateway.services.replicas.as_ref().map(Replicas::has_lease),
        };
        // The names of the metrics of several hosts would repeat.
        let text = gateway.servers.shared_host().prometheus()
            + &gateway.traffic.metrics.prometheus(gauges);
        self.hold_metrics(principal, text)
    }

    /// Counts metrics until the client has read them.
    fn hold_metrics(&self, principal: &Principal, text: String) -> Response<Body> {
        let room = self.transport.gateway.traffic.responses.reserve(principal, None);
        let held = room.and_then(|room| room.hold_response(metrics_response(text)));
        held.unwrap_or_else(|full| Problem::from_rejection(&full.rejection()).into_response())
    }

    async fn admit(&self, parts: &Parts) -> Result<Principal, Rejection> {
        let gateway = &self.transport.gateway;
        let count = |reason| move |_: &Rejection| gateway.traffic.metrics.count_rejection(reason);
        self.access.origin.check(parts).inspect_err(count(RejectionReason::Origin))?;
        let principal = self.access.authenticator.authenticate(parts).await;
        let principal = principal.inspect_err(count(RejectionReason::Authentication))?;
        if let Some(places) = parts.extensions.get::<ConnectionPlaces>() {
            places.count(&principal).inspect_err(count(RejectionReason::Connections))?;
        }
        let counted =
            gateway.traffic.rate_limits.count_request(&principal).map_err(Rejection::from);
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

fn metrics_response(text: String) -> Response<Body> {
    let mut response = plain(StatusCode::OK, text);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn json(text: String) -> Response<Body> {
    let mut response = plain(StatusCode::OK, text);
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

//! The paths of the connection service.

mod events;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod jsonrpc;
mod upstream_error;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::connections::{
    CONNECTION_ID_COOKIE, CONNECTION_ID_HEADER, ConnectionError, ConnectionId, ConnectionService,
    ConnectionState, CookieSecure, ErrorCode, InitializeRequest, InitializeResponse,
    LifecycleMessage, MAX_INITIALIZE_BYTES, MAX_INITIALIZE_VALUES, connection_id,
    rejection_response,
};
use crate::principal::Principal;
use crate::quota::Reservation;
use crate::rejection::Rejection;
use crate::transport::http::{HttpTransport, SILENCE, check_content, slow_json};

#[cfg(any(test, fuzzing))]
pub use fuzz::connection_request as fuzz_connection_request;

/// Seconds after which a client can try again while the store is not available.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("2");

/// A path of the connection service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionRoute {
    /// A message of the lifecycle.
    Lifecycle(LifecycleMessage),
    /// JSON-RPC messages of the client.
    JsonRpc,
    /// The notifications for the client.
    Events,
}

impl ConnectionRoute {
    pub(crate) const ALL: [Self; 6] = [
        Self::Lifecycle(LifecycleMessage::Initialize),
        Self::Lifecycle(LifecycleMessage::Initialized),
        Self::Lifecycle(LifecycleMessage::Shutdown),
        Self::Lifecycle(LifecycleMessage::Exit),
        Self::JsonRpc,
        Self::Events,
    ];

    /// Returns the last part of the path.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lifecycle(message) => message.as_str(),
            Self::JsonRpc => "jsonrpc",
            Self::Events => "events",
        }
    }

    fn method(self) -> Method {
        match self {
            Self::Lifecycle(_) | Self::JsonRpc => Method::POST,
            Self::Events => Method::GET,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ServiceClient {
    transport: Arc<HttpTransport>,
    service: ConnectionService,
    principal: Principal,
    /// The index of the endpoint whose items the client uses: that of `/mcp`.
    endpoint: usize,
    headers: HeaderMap,
}

impl ServiceClient {
    pub(crate) fn new(
        transport: &Arc<HttpTransport>,
        service: ConnectionService,
        principal: Principal,
        endpoint: usize,
    ) -> Self {
        let headers = HeaderMap::new();
        Self { transport: transport.clone(), service, principal, endpoint, headers }
    }
}

/// Handles one request. Dropping the future cancels the calls of the request at their servers.
pub(crate) async fn handle(
    client: ServiceClient,
    route: ConnectionRoute,
    request: Request<Body>,
) -> Response<Body> {
    let (Parts { method, headers, uri, .. }, body) = request.into_parts();
    if method != route.method() {
        let allowed = route.method();
        let message = format!("the path accepts {allowed}");
        let mut response = ConnectionError::new(ErrorCode::InvalidRequest, message).into_response();
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        let allow = HeaderValue::from_str(allowed.as_str());
        response.headers_mut().extend(allow.ok().map(|allow| (header::ALLOW, allow)));
        return response;
    }
    let client = ServiceClient { headers, ..client };
    let is_https = uri.scheme_str() == Some("https");
    let is_initialize = route == ConnectionRoute::Lifecycle(LifecycleMessage::Initialize);
    let (body, memory) = match is_initialize || route == ConnectionRoute::JsonRpc {
        false => (Bytes::new(), None),
        true => match client.read_body(body).await {
            Ok((body, memory)) => (body, Some(memory)),
            Err(rejection) => return rejection_response(&rejection),
        },
    };
    let responded = match route {
        ConnectionRoute::Lifecycle(LifecycleMessage::Initialize) => {
            client.initialize(is_https, &body).await
        }
        ConnectionRoute::Lifecycle(message) => client.advance(message).await,
        ConnectionRoute::JsonRpc => {
            Ok(client.clone().jsonrpc_in_time(is_https, body, memory).await)
        }
        ConnectionRoute::Events => client.events().await,
    };
    let mut response = responded.unwrap_or_else(error_response);
    client.renew_cookie(&mut response, is_https);
    response
}

/// Returns an error with the status of its code.
fn error_response(error: ConnectionError) -> Response<Body> {
    let code = error.code;
    let mut response = error.into_response();
    add_retry_time(&mut response, code);
    response
}

fn add_retry_time(response: &mut Response<Body>, code: ErrorCode) {
    if code == ErrorCode::TransportError {
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_SECONDS);
    }
}

fn json_response(body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn no_content() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Parses a JSON value as a type. The error contains the path of the wrong member.
fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, ConnectionError> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let parsed = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let cause = error.into_inner();
        let (code, message) = match cause.classify() {
            // A missing member of the whole value has no path; the cause names the member.
            serde_json::error::Category::Data if path == "." => {
                (ErrorCode::InvalidParams, cause.to_string())
            }
            serde_json::error::Category::Data => {
                (ErrorCode::InvalidParams, format!("`{path}`: {cause}"))
            }
            _ => (ErrorCode::ParseError, format!("the text is not JSON: {cause}")),
        };
        ConnectionError::new(code, innkeeper_host::display_safe(&message))
    })?;
    deserializer.end().map_err(|error| {
        ConnectionError::new(ErrorCode::ParseError, format!("the text is not JSON: {error}"))
    })?;
    Ok(parsed)
}

/// Returns the number of a value and of all values in it. The parser limits the depth.
fn count_values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count_values).sum::<usize>(),
        _ => 1,
    }
}

/// Parses the parameters of `initialize`, whose members have names and no positions.
fn parse_initialize(params: &[u8]) -> Result<InitializeRequest, ConnectionError> {
    let value: Value = parse(params)?;
    if count_values(&value) > MAX_INITIALIZE_VALUES {
        let message = format!(
            "the parameters of `initialize` have more than {MAX_INITIALIZE_VALUES} JSON values"
        );
        return Err(ConnectionError::new(ErrorCode::InvalidParams, message));
    }
    let mut objects = [("", "."), ("/client", "client")].into_iter();
    let array = objects.find(|(pointer, _)| value.pointer(pointer).is_some_and(Value::is_array));
    match array {
        Some((_, path)) => {
            let message = format!("`{path}`: expected an object, found an array");
            Err(ConnectionError::new(ErrorCode::InvalidParams, message))
        }
        None => parse(params),
    }
}

impl ServiceClient {
    /// Handles the messages of one POST. A response that takes longer than [`SILENCE`] starts before its
    /// text is known, with the status 200.
    async fn jsonrpc_in_time(
        self,
        is_https: bool,
        body: Bytes,
        memory: Option<Reservation>,
    ) -> Response<Body> {
        let always_has_text = Arc::new(AtomicBool::new(false));
        let mut responding = Box::pin({
            let always_has_text = always_has_text.clone();
            async move {
                let _memory = memory;
                self.jsonrpc(is_https, &body, &always_has_text).await
            }
        });
        tokio::select! {
            biased;
            response = &mut responding => return response,
            () = sleep(SILENCE) => {}
        }
        match always_has_text.load(Ordering::Relaxed) {
            true => slow_json(Box::pin(async move { Ok(responding.await.into_body()) })),
            false => responding.await,
        }
    }

    /// Reads the body of a request; the memory is reserved until the reservation is dropped.
    async fn read_body(&self, body: Body) -> Result<(Bytes, Reservation), Rejection> {
        check_content(&self.headers)?;
        self.transport.bodies.read(&self.principal, body).await
    }

    async fn initialize(
        &self,
        is_https: bool,
        body: &[u8],
    ) -> Result<Response<Body>, ConnectionError> {
        let (connection, initialized) = self.open(body).await?;
        let mut response = json_response(json!(initialized).to_string());
        self.add_id(&mut response, connection.id, is_https);
        Ok(response)
    }

    /// Opens a connection with the parameters of `initialize`.
    async fn open(
        &self,
        params: &[u8],
    ) -> Result<(ConnectionState, InitializeResponse), ConnectionError> {
        if params.len() > MAX_INITIALIZE_BYTES {
            let message = format!(
                "the parameters of `initialize` are longer than {MAX_INITIALIZE_BYTES} bytes"
            );
            return Err(ConnectionError::new(ErrorCode::InvalidParams, message));
        }
        let request = parse_initialize(params)?;
        let current = connection_id(&self.headers).ok();
        self.service.initialize(request, &self.principal, current).await
    }

    async fn advance(&self, message: LifecycleMessage) -> Result<Response<Body>, ConnectionError> {
        let id = connection_id(&self.headers)?;
        let connection = self.service.advance(id, &self.principal, message).await?;
        Ok(match message {
            LifecycleMessage::Exit => {
                let mut response = no_content();
                remove_cookie(&mut response);
                response
            }
            LifecycleMessage::Shutdown => {
                json_response(json!({ "state": connection.state }).to_string())
            }
            LifecycleMessage::Initialize | LifecycleMessage::Initialized => no_content(),
        })
    }

    /// Adds the header and the cookie with the id of a new connection.
    fn add_id(&self, response: &mut Response<Body>, id: ConnectionId, is_https: bool) {
        // The characters of an id are valid in headers.
        if let Ok(value) = HeaderValue::try_from(id.to_string()) {
            response.headers_mut().insert(CONNECTION_ID_HEADER, value);
        }
        self.add_cookie(response, id, is_https);
    }

    /// Sends the cookie again to a client that uses it, because each use renews the expiry.
    fn renew_cookie(&self, response: &mut Response<Body>, is_https: bool) {
        let uses_cookie = !self.headers.contains_key(CONNECTION_ID_HEADER);
        let is_set = response.headers().contains_key(header::SET_COOKIE);
        if uses_cookie
            && !is_set
            && response.status().is_success()
            && let Ok(id) = connection_id(&self.headers)
        {
            self.add_cookie(response, id, is_https);
        }
    }

    fn add_cookie(&self, response: &mut Response<Body>, id: ConnectionId, is_https: bool) {
        let options = self.service.options();
        // The first of several proxies is next to the client.
        let forwarded = self.headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
        let forwarded = forwarded.and_then(|value| value.split(',').next()).map(str::trim);
        let secure = match options.cookie_secure {
            CookieSecure::Auto if is_https || forwarded == Some("https") => "; Secure",
            CookieSecure::Always => "; Secure",
            CookieSecure::Auto | CookieSecure::Never => "",
        };
        let cookie = format!(
            "{CONNECTION_ID_COOKIE}={id}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{secure}",
            options.expiry.as_secs()
        );
        set_cookie(response, &cookie);
    }
}

/// Removes the cookie of a connection that has ended.
fn remove_cookie(response: &mut Response<Body>) {
    set_cookie(response, &format!("{CONNECTION_ID_COOKIE}=; Path=/; Max-Age=0"));
}

fn set_cookie(response: &mut Response<Body>, cookie: &str) {
    // Ids and numbers are valid in headers.
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
}

//! The connection service over HTTP, by a client that knows the specification and none of our types.

mod extractors;
mod lifecycle;
mod methods;
mod notifications;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use innkeeper_gateway::connections::store::{MemoryStore, StoreOptions};
use innkeeper_gateway::connections::{
    CapabilityRegistry, ConnectionError, ConnectionOptions, ConnectionService,
    ConnectionServiceBuilder, ErrorCode,
};
use innkeeper_gateway::{GatewayBuilder, GatewayOptions};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::setup::{TestEnv, TestGateway};

/// The start of all paths.
const PREFIX: &str = "/api/v1/mcp";

/// Returns a service with two methods of an application: `echo` returns its parameters, and `fail`
/// fails.
fn service() -> ConnectionService {
    service_with(CapabilityRegistry::with_core_features())
}

fn service_with(registry: CapabilityRegistry) -> ConnectionService {
    let store = Arc::new(MemoryStore::new(StoreOptions::default()));
    ConnectionServiceBuilder::new(ConnectionOptions::default(), registry, store)
        .method("echo", |_, params| async move { Ok(params.unwrap_or_default()) })
        .method("fail", |_, _| async {
            Err(ConnectionError::new(ErrorCode::JobExecutionError, "the job failed"))
        })
        .build()
}

/// Starts a gateway with the connection service.
async fn start(test_env: &TestEnv, service: &ConnectionService) -> TestGateway {
    let builder = GatewayBuilder::new(GatewayOptions::default()).connections(service.clone());
    test_env.gateway_with(builder, [test_env.fixture("a")]).await
}

/// A client of the service.
#[derive(Clone)]
struct ServiceClient {
    router: Router,
    /// The headers of each request.
    headers: Vec<(String, String)>,
}

/// A response that was read.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    headers: http::HeaderMap,
    text: String,
}

impl Reply {
    async fn read(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Self { status: parts.status, headers: parts.headers, text }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the status with the code and the message of an error, in or without JSON-RPC.
    fn error(&self) -> (u16, i64, String) {
        let body = self.json();
        let error = body.get("error").unwrap_or(&body);
        let message = error["message"].as_str().unwrap_or_else(|| panic!("{self:?}"));
        (self.status.as_u16(), error["code"].as_i64().unwrap(), message.to_owned())
    }

    fn header(&self, name: &str) -> String {
        self.headers[name].to_str().unwrap().to_owned()
    }
}

/// Returns the body of `initialize` with the core features and these features.
fn initialize_body(features: &Value) -> Value {
    let mut capabilities = json!({ "core.jsonrpc": { "version": "2.0" },
        "core.transport.http": true, "core.transport.sse": { "version": "1.0" },
        "tools": true, "prompts": true, "resources": true });
    for (name, feature) in features.as_object().unwrap() {
        capabilities[name] = feature.clone();
    }
    json!({ "protocol_version": "1.0", "client": { "name": "test-client", "version": "1.0" },
        "capabilities": capabilities })
}

impl ServiceClient {
    fn new(gateway: &TestGateway) -> Self {
        Self { router: gateway.router(), headers: Vec::new() }
    }

    /// Opens a connection and activates it.
    async fn active(gateway: &TestGateway) -> Self {
        let mut client = Self::new(gateway);
        client.initialize(&json!({})).await;
        assert_eq!(client.post("initialized", "").await.status, StatusCode::NO_CONTENT);
        client
    }

    /// Opens a connection with these features in addition to the core features.
    async fn initialize(&mut self, features: &Value) -> Reply {
        let reply = self.post("initialize", initialize_body(features).to_string()).await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        self.set_id(&reply.header("x-mcp-connection-id"));
        reply
    }

    fn set_id(&mut self, id: &str) {
        self.set_header("x-mcp-connection-id", id);
    }

    fn set_header(&mut self, name: &str, value: &str) {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    fn id(&self) -> &str {
        let header = self.headers.iter().find(|(name, _)| name == "x-mcp-connection-id");
        &header.unwrap().1
    }

    fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let request = Request::builder().method(method).uri(format!("http://127.0.0.1{path}"));
        let request =
            request.header("host", "127.0.0.1").header("content-type", "application/json");
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn post(&self, route: &str, body: impl Into<Body>) -> Reply {
        let request = self.request("POST", &format!("{PREFIX}/{route}"));
        Reply::read(self.send(request.body(body.into()).unwrap()).await).await
    }

    async fn jsonrpc(&self, message: &Value) -> Reply {
        self.post("jsonrpc", message.to_string()).await
    }

    /// Sends a request and returns its response.
    async fn call(&self, method: &str, params: Value) -> Reply {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.jsonrpc(&request).await
    }
}

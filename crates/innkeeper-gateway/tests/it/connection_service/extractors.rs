//! Routes of an application with connections.

use axum::Router;
use axum::routing::get;
use innkeeper_gateway::connections::{
    CapabilityRegistry, Connection, ConnectionAccess, ConnectionState, Feature, FeatureName,
    RequireFeature,
};
use serde_json::json;

use super::*;
use crate::limits::local_access;

async fn some_endpoint(Connection(connection): Connection) -> String {
    format!("Hello, {}!", connection.client_info.name)
}

struct RunnerManagement;

impl FeatureName for RunnerManagement {
    const NAME: &'static str = "tool.runner_management";
}

async fn list_runners(feature: RequireFeature<RunnerManagement>) -> String {
    format!("runners of {}", feature.connection.client_info.name)
}

async fn list_jobs() -> &'static str {
    r#"{"jobs":[]}"#
}

fn made_up() -> ConnectionState {
    serde_json::from_value(json!({
        "id": "0b5a43e3-6a6c-4d8a-9f2c-0d8f2a6f3d10",
        "client_info": { "name": "test-client", "version": "1.0" },
        "client_capabilities": {},
        "state": "active",
        "user_id": null,
        "created_at": "2026-11-26T03:00:00Z",
        "last_activity": "2026-11-26T03:00:00Z",
    }))
    .unwrap()
}

/// Proves: B28, B29
#[tokio::test]
async fn a_handler_is_tested_with_a_connection_that_the_test_makes_up() {
    assert_eq!(some_endpoint(Connection(made_up())).await, "Hello, test-client!");
    assert_eq!(list_runners(RequireFeature::new(made_up())).await, "runners of test-client");
}

/// Returns an application that nests the gateway and has routes of its own.
async fn application(test_env: &TestEnv) -> Router {
    let mut registry = CapabilityRegistry::with_core_features();
    registry.register_feature("tool.job_management", Feature::default()).unwrap();
    registry.register_feature(RunnerManagement::NAME, Feature::default()).unwrap();
    let service = service_with(registry);
    let gateway = start(test_env, &service).await;
    let access = ConnectionAccess::new(service, local_access());
    let jobs = access.feature_router(
        "tool.job_management",
        Router::new().route("/", get(list_jobs)).route("/who", get(some_endpoint)),
    );
    let others = Router::new()
        .route("/some-endpoint", get(some_endpoint))
        .route("/runners", get(list_runners));
    gateway.router().nest("/jobs", jobs).merge(access.router(others))
}

/// Proves: B25, B26, B27
#[tokio::test]
async fn routes_of_an_application_have_the_connection_and_need_their_feature() {
    let test_env = TestEnv::new();
    let router = application(&test_env).await;
    let get = async |client: &ServiceClient, path: &str| {
        let request = client.request("GET", path).body(Body::empty()).unwrap();
        Reply::read(client.send(request).await).await
    };
    let mut client = ServiceClient { router, headers: Vec::new() };
    for path in ["/some-endpoint", "/jobs", "/jobs/who", "/runners"] {
        let missing = (401, -32_003, "Missing connection ID".to_owned());
        assert_eq!(get(&client, path).await.error(), missing, "{path}");
    }
    client.initialize(&json!({ "tool.runner_management": true })).await;
    assert_eq!(get(&client, "/some-endpoint").await.error().1, -32_005, "not active yet");
    client.post("initialized", "").await;
    assert_eq!(get(&client, "/some-endpoint").await.text, "Hello, test-client!");
    assert_eq!(get(&client, "/runners").await.text, "runners of test-client");
    for path in ["/jobs", "/jobs/who"] {
        let (status, code, message) = get(&client, path).await.error();
        assert_eq!((status, code), (501, -32_006), "{path}");
        assert!(message.contains("`tool.job_management`"), "{message}");
    }
    client.headers.clear();
    client.initialize(&json!({ "tool.job_management": { "version": "1.0" } })).await;
    client.post("initialized", "").await;
    assert_eq!(get(&client, "/jobs").await.text, r#"{"jobs":[]}"#);
    assert_eq!(get(&client, "/jobs/who").await.text, "Hello, test-client!");
    assert_eq!(get(&client, "/runners").await.error().0, 501);
}

/// Proves: B25
#[tokio::test]
async fn a_route_without_connections_fails_closed() {
    let router = Router::new().route("/some-endpoint", get(some_endpoint));
    let client = ServiceClient { router, headers: Vec::new() };
    let request = client.request("GET", "/some-endpoint").body(Body::empty()).unwrap();
    let reply = Reply::read(client.send(request).await).await;
    assert_eq!((reply.error().0, reply.error().1), (500, -32_603));
    assert_eq!(reply.error().2, "the route is set up wrongly", "no details for the client");
}

/// Attack: remote | a page of another origin uses the cookie of a connection | the routes of the
/// application reject it like the gateway | Isolation
#[tokio::test]
async fn routes_of_an_application_check_the_origin() {
    let test_env = TestEnv::new();
    let router = application(&test_env).await;
    let mut client = ServiceClient { router, headers: Vec::new() };
    client.initialize(&json!({})).await;
    client.post("initialized", "").await;
    client.set_header("origin", "https://evil.example");
    let request = client.request("GET", "/some-endpoint").body(Body::empty()).unwrap();
    let reply = Reply::read(client.send(request).await).await;
    assert_eq!((reply.error().0, reply.error().1), (403, -32_302));
}

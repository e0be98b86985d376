//! Clients that are bound to servers and endpoints.

use axum::Router;
use axum::body::Body;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use innkeeper_gateway::{
    Binding, Bindings, ConsoleOptions, EndpointOptions, GatewayBuilder, GatewayOptions, Principal,
};
use innkeeper_host::config::NameStyle;
use innkeeper_testkit::Journal;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::limits::{access_with_keys, as_client};
use crate::setup::{TestClient, TestEnv, TestGateway};

fn owned(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

/// Starts a gateway with the servers `mine` and `theirs`, and the endpoint `flat`; `ann` has this binding.
async fn gateway(test_env: &TestEnv, binding: Binding) -> TestGateway {
    let flat = EndpointOptions { names: NameStyle::Flat, ..EndpointOptions::default() };
    let options = GatewayOptions {
        named_endpoints: vec![("flat".to_owned(), flat)],
        connection_servers: vec!["mine".to_owned(), "theirs".to_owned()],
        ..GatewayOptions::default()
    };
    let bindings = Bindings::new([(Principal::new("ann"), binding)], Binding::default());
    let operators = ["ann", "ben"].map(Principal::new).into();
    let builder = GatewayBuilder::new(options).bindings(bindings);
    let builder = builder.console(ConsoleOptions { operators });
    let server =
        |name: &str| test_env.fixture(name).with("--instructions", format!("Use {name} well."));
    let theirs = server("theirs").switch("--list-changed").journal(&test_env.journal());
    test_env.gateway_with(builder, [server("mine"), theirs]).await
}

/// Returns what a client sees when it connects and reads all lists.
async fn seen(client: &mut TestClient) -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    let mut text = client.request("initialize", params).await.to_string();
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        text.push_str(&client.request(method, json!({})).await.to_string());
    }
    text
}

/// Requests with the name of a server for `NAME`.
const REQUESTS: [(&str, &str); 6] = [
    ("tools/call", r#"{"name":"NAME.echo","arguments":{"message":"hi"}}"#),
    ("prompts/get", r#"{"name":"NAME.greet","arguments":{"name":"ann"}}"#),
    ("resources/read", r#"{"uri":"fx://NAME/item/1"}"#),
    ("resources/subscribe", r#"{"uri":"fx://NAME/item/1"}"#),
    (
        "completion/complete",
        r#"{"ref":{"type":"ref/prompt","name":"NAME.greet"},"argument":{"name":"name","value":""}}"#,
    ),
    (
        "completion/complete",
        r#"{"ref":{"type":"ref/resource","uri":"fx://NAME/item/{id}"},"argument":{"name":"id","value":""}}"#,
    ),
];

/// Attack: remote | a client that is bound to one server lists, calls, reads, completes and subscribes to the
/// items of another | each is as unknown as an item that does not exist, and the server gets nothing |
/// Isolation
#[tokio::test]
async fn a_client_that_is_bound_to_a_server_sees_nothing_of_another() {
    let test_env = TestEnv::new();
    let binding = Binding { servers: owned(&["mine"]), endpoints: None };
    let gateway = gateway(&test_env, binding).await;
    let mut ann = gateway.connect_as("ann");
    let own = seen(&mut ann).await;
    let all = seen(&mut gateway.connect_as("ben")).await;
    for item in ["mine.echo", "mine.greet", "fx://mine/", "Use mine well."] {
        assert!(own.contains(item), "{item}: {own}");
        assert!(all.contains(&item.replace("mine", "theirs")), "{item}: {all}");
    }
    assert!(!own.contains("theirs"), "{own}");
    let before = Journal::read(&test_env.journal()).methods().len();
    for (method, params) in REQUESTS {
        let mut errors = Vec::new();
        for server in ["theirs", "absent"] {
            let params: Value = serde_json::from_str(&params.replace("NAME", server)).unwrap();
            let answer = ann.respond(method, params).await;
            errors.push(answer["error"].to_string().replace(server, "NAME"));
        }
        assert_eq!(errors[0], errors[1], "{method} {params}");
        // The only server with resources gets the URIs that nobody lists, and accepts any subscription.
        assert!(errors[0] != "null" || method == "resources/subscribe", "{method} {params}");
    }
    assert_eq!(Journal::read(&test_env.journal()).methods().len(), before);
    let refused = gateway.connect_to_server("ann", "theirs").close().await;
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    gateway.connect_to_server("ann", "mine").close().await.unwrap();
}

/// Attack: remote | a client waits for the notifications of a server that it is not bound to | the client gets
/// none | Isolation
#[tokio::test]
async fn a_change_of_a_server_is_told_to_clients_that_see_the_server_only() {
    let test_env = TestEnv::new();
    let binding = Binding { servers: owned(&["mine"]), endpoints: None };
    let gateway = gateway(&test_env, binding).await;
    let mut ann = gateway.initialized("ann", json!({})).await;
    let mut ben = gateway.initialized("ben", json!({})).await;
    ben.call("theirs.grow", json!({ "what": "tools" })).await;
    ben.received("notifications/tools/list_changed").await;
    ann.request("ping", json!({})).await;
    assert!(ann.waiting.is_empty(), "{:?}", ann.waiting);
}

fn request(method: &str, path: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(format!("http://127.0.0.1{path}"));
    let request =
        request.header("host", "127.0.0.1").header("accept", "application/json, text/event-stream");
    request.header("content-type", "application/json").body(Body::from("{}")).unwrap()
}

/// Returns the status and the body of the response to `ann` (0) or `ben` (1).
async fn send(router: &Router, client: usize, method: &str, path: &str) -> (StatusCode, String) {
    let request = as_client(client, request(method, path));
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let is_stream = |kind: &http::HeaderValue| kind == "text/event-stream";
    if response.headers().get("content-type").is_some_and(is_stream) {
        return (status, "a stream".to_owned());
    }
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

/// Attack: remote | a client uses an endpoint that it is not bound to, at each of its paths | the response is
/// that of an endpoint that does not exist | Isolation
#[tokio::test]
async fn an_endpoint_of_others_is_unknown_to_a_bound_client() {
    for (endpoints, own, other) in [("flat", "flat", ""), ("/mcp", "", "flat")] {
        let test_env = TestEnv::new();
        let binding = Binding { servers: None, endpoints: owned(&[endpoints]) };
        let gateway = gateway(&test_env, binding).await;
        let router = gateway.gateway.router(access_with_keys());
        let paths = |name: &str| match name {
            "" => ["/mcp", "/sse", "/tools", "/openapi.json", "/tools/echo"].map(str::to_owned),
            name => {
                let rest = format!("/endpoints/{name}");
                let tools = format!("{rest}/tools");
                [
                    format!("/mcp/{name}"),
                    format!("/sse/{name}"),
                    format!("{tools}/echo"),
                    format!("{rest}/openapi.json"),
                    tools,
                ]
            }
        };
        for path in paths(other) {
            for method in ["GET", "POST"] {
                let refused = send(&router, 0, method, &path).await;
                let unknown = send(&router, 1, method, &paths("absent")[0]).await;
                assert_eq!(refused.0, unknown.0, "{method} {path}");
                let message = "no endpoint has this name; `serve.endpoints` has the names";
                assert!(refused.1.contains(message), "{method} {path}: {}", refused.1);
                let permitted = send(&router, 1, method, &path).await;
                assert!(!permitted.1.contains(message), "{method} {path}: {}", permitted.1);
            }
        }
        for path in paths(own) {
            let permitted = send(&router, 0, "GET", &path).await;
            assert!(!permitted.1.contains("no endpoint has"), "{path}: {}", permitted.1);
        }
    }
}

/// Attack: remote | a client that is bound to one server reads the metrics, the console and the description of
/// the tools | they have nothing of another server | Isolation
#[tokio::test]
async fn metrics_and_descriptions_of_a_bound_client_have_its_servers_only() {
    let test_env = TestEnv::new();
    let binding = Binding { servers: owned(&["mine"]), endpoints: None };
    let gateway = gateway(&test_env, binding).await;
    let router = gateway.gateway.router(access_with_keys());
    for path in ["/metrics", "/openapi.json", "/endpoints/flat/openapi.json", "/tools"] {
        let (status, own) = send(&router, 0, "GET", path).await;
        let (_, all) = send(&router, 1, "GET", path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert!(!own.contains("theirs") && !own.contains("grow"), "{path}: {own}");
        let both = if path.contains("flat") { "grow" } else { "theirs" };
        assert!(own.contains(if path.contains("flat") { "echo" } else { "mine" }), "{path}: {own}");
        assert!(all.contains(both), "{path}: {all}");
    }
    let metrics = send(&router, 0, "GET", "/metrics").await.1;
    assert!(!metrics.contains("innkeeper_gateway_"), "counts of all clients: {metrics}");
    for page in ["servers", "tools", "calls", "audit"] {
        let path = format!("/console/{page}");
        let refused = send(&router, 0, "GET", &path).await;
        assert_eq!(refused.0, StatusCode::FORBIDDEN, "{page}: {}", refused.1);
        assert!(!refused.1.contains("theirs"), "{page}: {}", refused.1);
        assert_eq!(send(&router, 1, "GET", &path).await.0, StatusCode::OK, "{page}");
    }
}

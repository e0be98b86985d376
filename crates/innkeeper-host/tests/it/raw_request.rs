//! Requests and notifications with methods for which the host has no function.

use innkeeper_host::{CallOptions, Config, ErrorClass, Host};
use innkeeper_testkit::{InMemoryServer, RemoteServer, ServerFeatures};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::io::join;

use crate::remote::start_host;
use crate::setup::TestEnv;

/// The maximum length of a message of the host, in bytes.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// Starts a host with the in-memory server `a`.
async fn start() -> (Host, InMemoryServer) {
    let (mut peer, reader, writer) = InMemoryServer::new();
    let builder = Host::builder(Config::default()).connect("a", join(reader, writer));
    let features = ServerFeatures::default();
    let (host, _) = tokio::join!(builder.start(), peer.handshake_legacy(&features));
    (host.unwrap(), peer)
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_notification_contains_the_meta_of_its_caller() {
    let (host, mut peer) = start().await;
    let params = json!({"x": 1, "_meta": {"example/y": 2}});
    host.notify("a", "notifications/example", Some(&raw(&params))).unwrap();
    assert_eq!(peer.expect("notifications/example").await["params"], params);
    let params = raw(&json!({"_meta": 7}));
    let error = host.notify("a", "notifications/example", Some(&params)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid arguments for `notifications/example`: `/_meta`: expected object"
    );
}

#[tokio::test(start_paused = true)]
async fn a_notification_over_the_limit_is_an_error_and_the_next_notification_is_sent() {
    let (host, mut peer) = start().await;
    let large = raw(&json!({"x": "y".repeat(MAX_MESSAGE_BYTES)}));
    let error = host.notify("a", "notifications/example/large", Some(&large)).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Validation);
    assert!(error.to_string().contains("more than the limit of 8388608"), "{error}");
    host.notify("a", "notifications/example/small", None).unwrap();
    peer.expect("notifications/example/small").await;
}

#[tokio::test(start_paused = true)]
async fn a_request_over_the_limit_is_a_validation_error_that_names_the_item_and_the_limit() {
    let (host, mut peer) = start().await;
    let large = json!({"message": "y".repeat(MAX_MESSAGE_BYTES)});
    let by_tool = host.call_tool("a.echo", large.clone()).await.unwrap_err();
    let large = raw(&large);
    let by_request = host.request("a", "example/x", Some(&large), CallOptions::default());
    for (error, item) in [(by_tool, "a.echo"), (by_request.await.unwrap_err(), "example/x")] {
        assert_eq!(error.class(), ErrorClass::Validation);
        let message = error.to_string();
        let expected = format!("invalid arguments for `{item}`: the request has 8388");
        assert!(message.starts_with(&expected), "{message}");
        assert!(message.ends_with(" bytes, more than the limit of 8388608"), "{message}");
    }
    let small = host.call_tool("a.echo", json!({"message": "hi"}));
    let result = json!({"content": []});
    tokio::join!(small, peer.respond_to("tools/call", result)).0.unwrap();
}

#[tokio::test]
async fn a_modern_http_request_repeats_its_name_in_a_header_whatever_the_name_is() {
    let test_env = TestEnv::new();
    let tools = json!([{"name": "tools/call", "inputSchema": {"type": "object"}}]);
    let fixture = test_env.fixture("a").with("--era", "modern").with("--tools", tools.to_string());
    let remote = RemoteServer::for_fixture(fixture).start().await;
    let host = start_host(&test_env, [("a", remote.config_entry())]).await;
    let params = raw(&json!({"taskId": "task 7", "x": 1}));
    // The server knows neither the task nor the tool.
    let _ = host.request("a", "tasks/get", Some(&params), CallOptions::default()).await;
    let _ = host.call_tool("a.tools/call", ()).await;
    let requests = remote.requests();
    for (method, name) in [("tasks/get", "task 7"), ("tools/call", "tools/call")] {
        let request = requests.iter().find(|request| request.rpc_method() == Some(method));
        assert_eq!(request.unwrap().header("mcp-name"), Some(name), "{method}");
    }
    host.shutdown().await;
}

//! JSON-RPC over the connection service.

use http::StatusCode;
use innkeeper_gateway::rate_limits::RateLimits;
use innkeeper_gateway::{GatewayBuilder, GatewayOptions};
use innkeeper_host::config::{Rate, RateConfig};
use serde_json::json;

use super::*;

/// Proves: B4, B33
#[tokio::test]
async fn a_response_repeats_the_id_of_its_request() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::active(&gateway).await;
    for id in [json!(1), json!("one"), json!(-5)] {
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": "echo", "params": { "a": [1, null] } });
        let reply = client.jsonrpc(&request).await;
        let expected = json!({ "jsonrpc": "2.0", "id": id, "result": { "a": [1, null] } });
        assert_eq!((reply.status, reply.json()), (StatusCode::OK, expected));
    }
}

/// Proves: B48
#[tokio::test]
async fn the_tools_prompts_and_resources_of_the_servers_are_there() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::active(&gateway).await;
    let result = async |method, params| client.call(method, params).await.json()["result"].clone();
    let tools = result("tools/list", json!({})).await;
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "a.echo"));
    let called = json!({ "name": "a.echo", "arguments": { "message": "hi" } });
    let called = result("tools/call", called).await;
    assert!(called["content"][0]["text"].as_str().unwrap().contains("hi"), "{called}");
    let prompts = result("prompts/list", json!({})).await;
    let name = &prompts["prompts"][0]["name"];
    let prompt = json!({ "name": name, "arguments": { "name": "Ann" } });
    let prompt = result("prompts/get", prompt).await;
    assert!(prompt["messages"].is_array(), "{prompt}");
    let resources = result("resources/list", json!({})).await;
    let uri = &resources["resources"][0]["uri"];
    let read = result("resources/read", json!({ "uri": uri })).await;
    assert!(read["contents"].is_array(), "{read}");
}

/// Proves: B24
#[tokio::test]
async fn a_feature_that_the_client_does_not_declare_is_not_enabled() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let mut client = ServiceClient::new(&gateway);
    client.initialize(&json!({ "tools": false })).await;
    client.post("initialized", "").await;
    let (status, code, message) = client.call("tools/list", json!({})).await.error();
    assert_eq!((status, code), (200, -32_006));
    assert!(message.contains("`tools`"), "{message}");
    assert!(client.call("prompts/list", json!({})).await.json()["result"].is_object());
}

/// Proves: B37
#[tokio::test]
async fn the_standard_errors_have_their_codes() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::active(&gateway).await;
    for (text, expected, id) in [
        ("{\"jsonrpc\":", (400, -32_700), json!(null)),
        ("[]", (400, -32_600), json!(null)),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", (400, -32_600), json!(1)),
        ("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"nothing\"}", (200, -32_601), json!(2)),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":5}}",
            (200, -32_602),
            json!(3),
        ),
    ] {
        let reply = client.post("jsonrpc", text).await;
        let (status, code, _) = reply.error();
        assert_eq!((status, code), expected, "{text}: {reply:?}");
        assert_eq!(reply.json()["id"], id);
        assert!(!reply.text.contains("one line"), "{reply:?}");
    }
    let long = "x".repeat(1 << 20);
    for reply in [
        client.call(&long, json!({})).await,
        client.call("tools/call", json!({ "name": long })).await,
    ] {
        assert!(reply.text.len() < 1_000, "an error repeats the start of a name only");
    }
}

/// Proves: B40
#[tokio::test]
async fn unknown_and_failing_tools_and_unknown_resources_have_their_codes() {
    let (test_env, service) = (TestEnv::new(), service());
    let builder = GatewayBuilder::new(GatewayOptions::default()).connections(service.clone());
    let failed = r#"{"content":[{"type":"text","text":"no such job"}],"isError":true}"#;
    let servers = [
        test_env.fixture("a").with("--call-result-text", failed),
        test_env.fixture("b").with("--server-error", "-32011"),
    ];
    let gateway = test_env.gateway_with(builder, servers).await;
    let client = ServiceClient::active(&gateway).await;
    let arguments = json!({ "message": "hi" });
    let reply = client.call("tools/call", json!({ "name": "a.none" })).await;
    assert_eq!((reply.error().0, reply.error().1), (200, -32_400), "{reply:?}");
    let reply =
        client.call("tools/call", json!({ "name": "a.echo", "arguments": arguments })).await;
    assert_eq!(reply.error(), (200, -32_401, "no such job".to_owned()));
    let data = &reply.json()["error"]["data"];
    assert_eq!(*data, serde_json::from_str::<Value>(failed).unwrap(), "the whole result");
    let reply = client.call("resources/read", json!({ "uri": "test://none" })).await;
    assert_eq!((reply.error().0, reply.error().1), (200, -32_300), "{reply:?}");
    let reply = client.call("fail", json!({})).await;
    assert_eq!(reply.error(), (200, -32_502, "the job failed".to_owned()));
}

/// Proves: B34
#[tokio::test]
async fn each_message_of_a_batch_has_its_own_answer() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::active(&gateway).await;
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "echo", "params": { "n": 1 } },
        { "jsonrpc": "2.0", "id": 2, "method": "nothing" },
        { "jsonrpc": "2.0", "method": "echo", "params": {} },
        { "jsonrpc": "1.0", "id": 3, "method": "echo" },
        5,
        { "jsonrpc": "2.0", "id": "four", "method": "tools/list" },
        { "jsonrpc": "2.0", "id": 5, "method": "shutdown" },
        { "jsonrpc": "2.0", "id": 6, "result": {} },
    ]);
    let reply = client.jsonrpc(&batch).await;
    assert_eq!(reply.status, StatusCode::OK);
    let body = reply.json();
    let answers = body.as_array().unwrap();
    let codes: Vec<_> =
        answers.iter().map(|one| (one["id"].clone(), one["error"]["code"].clone())).collect();
    assert_eq!(
        codes,
        [
            (json!(1), json!(null)),
            (json!(2), json!(-32_601)),
            (json!(3), json!(-32_600)),
            (json!(null), json!(-32_600)),
            (json!("four"), json!(null)),
            (json!(5), json!(-32_600)),
            (json!(6), json!(-32_200)),
        ]
    );
    assert_eq!(answers[0]["result"], json!({ "n": 1 }));
    let notifications = json!([{ "jsonrpc": "2.0", "method": "echo" }]);
    let reply = client.jsonrpc(&notifications).await;
    assert_eq!((reply.status, &*reply.text), (StatusCode::NO_CONTENT, ""));
}

/// Attack: remote | a client hides requests from its rate in one batch | each message of the batch
/// counts | Isolation
/// Proves: B-b3
#[tokio::test]
async fn each_message_of_a_batch_counts_for_the_rate() {
    let (test_env, service) = (TestEnv::new(), service());
    let rate = Some(Rate { per_minute: 5, burst: 5 });
    let rates = RateLimits::new(RateConfig { requests: rate, ..RateConfig::default() }, []);
    let builder = GatewayBuilder::new(GatewayOptions::default());
    let builder = builder.connections(service.clone()).rate_limits(rates);
    let gateway = test_env.gateway_with(builder, [test_env.fixture("a")]).await;
    let client = ServiceClient::active(&gateway).await;
    let echo = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "echo", "params": { "n": id } });
    let batch: Vec<_> = (0..5).map(echo).collect();
    let reply = client.jsonrpc(&json!(batch)).await;
    let body = reply.json();
    let codes: Vec<_> = (0..5).map(|index| body[index]["error"]["code"].clone()).collect();
    let limited = json!(-32_100);
    assert_eq!(codes[..3], [json!(null), json!(null), json!(null)], "{body}");
    assert_eq!(codes[3..], [limited.clone(), limited], "initialize and initialized count too");
    let reply = client.call("echo", json!({})).await;
    assert_eq!((reply.error().0, reply.error().1), (429, -32_100));
    assert!(reply.header("retry-after").parse::<u64>().unwrap() > 0);
}

/// Proves: B35
#[tokio::test]
async fn a_notification_runs_its_method_and_has_no_answer() {
    let ran = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (test_env, seen) = (TestEnv::new(), ran.clone());
    let store = Arc::new(MemoryStore::new(StoreOptions::default()));
    let registry = CapabilityRegistry::with_core_features();
    let service = ConnectionServiceBuilder::new(ConnectionOptions::default(), registry, store)
        .method("note", move |connection, params| {
            seen.lock().unwrap().push((connection.client_info.name, params));
            async { Ok(Value::Null) }
        })
        .build();
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::active(&gateway).await;
    let note = json!({ "jsonrpc": "2.0", "method": "note", "params": [1] });
    let reply = client.jsonrpc(&note).await;
    assert_eq!((reply.status, &*reply.text), (StatusCode::NO_CONTENT, ""));
    assert_eq!(*ran.lock().unwrap(), [("test-client".to_owned(), Some(json!([1])))]);
    let batch = json!([note, { "jsonrpc": "2.0", "method": "shutdown" }]);
    let reply = client.jsonrpc(&batch).await;
    assert_eq!((reply.status, &*reply.text), (StatusCode::NO_CONTENT, ""));
    assert_eq!(ran.lock().unwrap().len(), 2, "the notification of a batch runs too");
    let mut stranger = client.clone();
    stranger.headers.clear();
    let missing = (401, -32_003, "Missing connection ID".to_owned());
    assert_eq!(stranger.jsonrpc(&note).await.error(), missing);
    assert_eq!(ran.lock().unwrap().len(), 2, "nothing ran");
}

/// Proves: B38
#[tokio::test]
async fn each_error_of_the_connection_has_its_code() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let mut client = ServiceClient::new(&gateway);
    let echo = async |client: &ServiceClient| {
        let (status, code, message) = client.call("echo", json!({})).await.error();
        (status, code, message)
    };
    assert_eq!(echo(&client).await, (401, -32_003, "Missing connection ID".to_owned()));
    for id in ["0b5a43e3-6a6c-4d8a-9f2c-0d8f2a6f3d10", "x", "\u{e4}"] {
        client.set_id(id);
        assert_eq!(echo(&client).await, (401, -32_003, "Invalid or expired connection".to_owned()));
    }
    client.headers.clear();
    client.initialize(&json!({})).await;
    let (status, code, message) = echo(&client).await;
    assert_eq!((status, code), (400, -32_005));
    assert!(message.contains("`initializing`"), "{message}");
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    assert_eq!(client.jsonrpc(&response).await.error().1, -32_200);
}

/// Attack: remote | a client sends a batch of requests with large results | the batch stops when the
/// results fill the memory of unread responses, and each further request has an error that says whether
/// it ran | No unbounded memory
#[tokio::test]
async fn a_batch_of_the_connection_service_stops_when_its_responses_fill_the_memory() {
    let (test_env, service) = (TestEnv::new(), service());
    let mut options = GatewayOptions::default();
    options.limits.max_response_bytes = 200 << 10;
    let builder = GatewayBuilder::new(options).connections(service.clone());
    let gateway = test_env.gateway_with(builder, []).await;
    let client = ServiceClient::active(&gateway).await;
    let text = "x".repeat(20 << 10);
    let batch: Vec<Value> = (0..40)
        .map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "echo", "params": { "a": text } }))
        .collect();
    let reply = client.jsonrpc(&json!(batch)).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert!(reply.text.len() <= 200 << 10, "{}", reply.text.len());
    let responses = reply.json();
    let responses = responses.as_array().unwrap();
    let ids: Vec<_> = responses.iter().map(|response| response["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (0..40).collect::<Vec<_>>());
    let count = |may_have_run: bool| {
        let expected = json!({ "mayHaveRun": may_have_run });
        responses.iter().filter(|response| response["error"]["data"] == expected).count()
    };
    let (dropped, not_run) = (count(true), count(false));
    let results = responses.iter().filter(|response| response["result"].is_object()).count();
    assert_eq!(results + dropped + not_run, 40);
    assert!((5..=9).contains(&results) && (1..=16).contains(&dropped), "{results}, {dropped}");
    let single = client.call("echo", json!({ "a": "x".repeat(300 << 10) })).await;
    assert_eq!(single.error().0, 503, "{single:?}");
    assert!(single.error().2.contains("was dropped"), "{single:?}");
}

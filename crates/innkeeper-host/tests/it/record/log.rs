//! The log: lifecycle of each server, and requests with fields but no content.

use innkeeper_host::{CallOptions, RemoteClient};
use innkeeper_testkit::{Fault, RemoteServer};
use serde_json::{Map, Value, json};

use crate::setup::{LogCapture, TestEnv, builder};

/// Returns the lifecycle messages of a server, in order.
fn lifecycle_messages(log: &LogCapture, server: &str) -> Vec<String> {
    let kinds = ["start", "initialized", "unavailable", "shutdown"];
    let lines = log.lines();
    let server_lines = lines.iter().filter(|line| line["server"] == server);
    let messages = server_lines.map(|line| line["message"].as_str().unwrap_or_default());
    messages.filter(|message| kinds.contains(message)).map(str::to_owned).collect()
}

/// Proves: FR9.1
#[tokio::test]
async fn the_life_of_each_server_is_logged_once_and_in_order() {
    let log = LogCapture::capture();
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("well"),
        test_env.fixture("crashes").with("--crash-after", 1),
        test_env.fixture("idle"),
    ];
    let host = test_env.start(servers).await.unwrap();
    host.call_tool("well.pid", ()).await.unwrap();
    host.call_tool("crashes.pid", ()).await.unwrap_err();
    host.call_tool("crashes.pid", ()).await.unwrap_err();
    host.shutdown().await;
    host.shutdown().await;
    assert_eq!(lifecycle_messages(&log, "well"), ["start", "initialized", "shutdown"]);
    assert_eq!(lifecycle_messages(&log, "idle"), ["start", "initialized", "shutdown"]);
    assert_eq!(
        lifecycle_messages(&log, "crashes"),
        ["start", "initialized", "unavailable", "shutdown"]
    );
}

/// Proves: N23
#[tokio::test]
async fn starts_stops_requests_and_errors_are_all_in_the_log() {
    let log = LogCapture::capture();
    let test_env = TestEnv::new();
    let server = test_env.fixture("one").with("--malformed", "wrongtypes");
    let host = test_env.start([server]).await.unwrap();
    host.call_tool("one.pid", ()).await.unwrap_err();
    host.shutdown().await;
    for (message, level) in
        [("start", "INFO"), ("initialized", "INFO"), ("shutdown", "INFO"), ("request", "INFO")]
    {
        assert!(log.with_message(message).iter().any(|line| line["level"] == level), "{message}");
    }
    let errors: Vec<Value> =
        log.with_message("request").into_iter().filter(|line| line["level"] == "ERROR").collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert_eq!(errors[0]["outcome"], "protocol");
}

/// Proves: FR9.2
#[tokio::test]
async fn a_request_is_logged_with_its_fields_and_without_any_body() {
    let log = LogCapture::capture();
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let at_start = log.with_message("request").len();
    let canary = "canary-4711";
    host.call_tool("one.echo", json!({"message": canary})).await.unwrap();
    host.call_tool("one.fail", json!({"reason": canary})).await.unwrap();
    let arguments: Map<String, Value> = json!({"name": canary}).as_object().unwrap().clone();
    host.get_prompt("one.greet", &arguments, CallOptions::default()).await.unwrap();
    host.read_resource("fx://one/static", None, CallOptions::default()).await.unwrap();
    let result = host.call_tool("one.add", json!({"a": canary, "b": 1})).await;
    let _ = result.unwrap_err();
    host.shutdown().await;
    let journal = test_env.journal();
    let lines = log.with_message("request").split_off(at_start);
    let expected = [
        ("tools/call", "echo", "ok"),
        ("tools/call", "fail", "tool_error"),
        ("prompts/get", "greet", "ok"),
        ("resources/read", "fx://one/static", "ok"),
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    let sent: Vec<&Value> = journal
        .entries
        .iter()
        .filter(|entry| entry.method().is_some_and(|method| expected.iter().any(|e| e.0 == method)))
        .map(|entry| &entry.message["id"])
        .collect();
    for ((line, (method, item, outcome)), id) in lines.iter().zip(expected).zip(sent) {
        let mut keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        let all = ["id", "item", "latency_ms", "level", "message", "method", "outcome", "server"];
        assert_eq!(keys, all);
        assert_eq!((&line["server"], &line["level"]), (&json!("one"), &json!("INFO")));
        assert_eq!([&line["method"], &line["item"], &line["outcome"]], [method, item, outcome]);
        assert_eq!(&line["id"], id, "the id on the wire");
        let latency = line["latency_ms"].as_f64().unwrap();
        assert!(latency > 0.0 && latency < 20_000.0, "{latency}");
    }
    for line in log.lines() {
        assert!(!line.to_string().contains(canary), "a body in the log: {line}");
    }
}

/// Error messages of servers may repeat the arguments that they reject.
#[tokio::test]
async fn the_message_of_a_server_error_is_in_the_error_and_not_in_the_log() {
    let log = LogCapture::capture();
    let test_env = TestEnv::new();
    let refusing =
        |message: &str| Fault::status(400).rpc_error(-32099, message).on_rpc_method("tools/call");
    let server_builder =
        RemoteServer::for_fixture(test_env.fixture("one")).fault(refusing("canary").only_nth(1));
    let server_builder = server_builder
        .fault(Fault::body(400, "text/plain", "canary").on_rpc_method("tools/call").only_nth(2));
    let busy = Fault::body(503, "text/plain", "canary").on_rpc_method("tools/call");
    let server_builder = server_builder.fault(busy.only_nth(4));
    let remote = server_builder.fault(refusing(&"x".repeat(60_000)).only_nth(3)).start().await;
    let config = test_env.config_from(&json!({"servers": {"one": remote.config_entry()}}));
    let host = builder(config).start().await.unwrap();
    let mut errors = Vec::new();
    for _ in 0..3 {
        let error = host.call_tool("one.pid", ()).await.unwrap_err();
        errors.push(crate::setup::error_chain(&error).join(": "));
    }
    let options = CallOptions {
        retries: Some(0),
        client: RemoteClient { principal: Some("ada".into()), ..RemoteClient::default() },
        ..CallOptions::default()
    };
    let busy = host.call_tool_with("one.pid", (), options).await.unwrap_err();
    assert!(busy.to_string().ends_with("busy (HTTP 503): canary"), "{busy}");
    host.shutdown().await;
    assert!(errors[0].contains("canary") && errors[1].contains("canary"), "{errors:?}");
    assert!(errors[2].contains("x… (60000 bytes) (code") && errors[2].len() < 1_200);
    let mut lines = log.with_message("request");
    lines.retain(|line| line["item"] == "pid");
    let expected = "server `one` returned an error for `pid` (code -32099)";
    let broke = "server `one` violated the protocol in its response to `pid`: HTTP status 400";
    let logged: Vec<&Value> = lines.iter().map(|line| &line["error"]).collect();
    let unavailable = "server `one` is unavailable: busy (HTTP 503)";
    let texts = [[expected], [broke], [expected], [unavailable]].map(|text| json!(text));
    assert_eq!(logged, texts.iter().collect::<Vec<_>>());
    assert_eq!(lines[3]["principal"], "ada");
    assert!(!json!(log.lines()).to_string().contains("canary"), "{lines:#?}");
}

#[tokio::test]
async fn the_hosts_own_requests_are_logged_with_the_time_each_took() {
    let log = LogCapture::capture();
    let test_env = TestEnv::new();
    let server = test_env.fixture("one").with("--discover-delay", 300).with("--pages", 2);
    let host = test_env.start([server]).await.unwrap();
    host.shutdown().await;
    let lines = log.with_message("request");
    let latency = |method: &str| {
        let request_line = lines.iter().find(|line| line["method"] == method);
        request_line.unwrap_or_else(|| panic!("{lines:#?}"))["latency_ms"].as_f64().unwrap()
    };
    assert!(latency("server/discover") >= 300.0);
    assert!(latency("initialize") < 300.0, "the wait for the other answer is not its own");
    assert_eq!(lines.iter().filter(|line| line["method"] == "tools/list").count(), 2);
    let discover = lines.iter().find(|line| line["method"] == "server/discover").unwrap();
    assert_eq!(discover["outcome"], "server_error", "it was refused: {discover}");
}

/// Proves: TR6.6
#[tokio::test]
async fn an_error_is_logged_with_the_whole_chain_of_its_causes() {
    let log = LogCapture::capture();
    let test_env = TestEnv::new();
    let host =
        test_env.start([test_env.fixture("one").with("--malformed", "wrongtypes")]).await.unwrap();
    let error = host.call_tool("one.pid", ()).await.unwrap_err();
    host.shutdown().await;
    let lines = log.with_message("request");
    let line = lines.iter().find(|line| line["level"] == "ERROR").unwrap();
    assert_eq!(line["error"], json!(crate::setup::error_chain(&error)));
    let chain = line["error"].as_array().unwrap();
    assert_eq!(chain[0], "server `one` violated the protocol in its response to `pid`");
    assert_eq!(chain[1], "invalid result");
    assert!(chain[2].as_str().unwrap().contains("/content"), "{chain:?}");
    assert_eq!(chain.len(), 3);
}

/// Proves: TR6.6
#[tokio::test]
async fn a_failed_start_is_logged_with_its_chain() {
    let log = LogCapture::capture();
    let test_env = TestEnv::new();
    let config = test_env.config([test_env.fixture("one").switch("--wrong-list")]);
    let error = builder(config).start().await.unwrap_err();
    assert!(error.to_string().contains("/tools"), "{error}");
    let line = &log.with_message("server start failed")[0];
    let chain = line["error"].as_array().unwrap();
    let causes: Vec<&str> = chain.iter().filter_map(Value::as_str).collect();
    for cause in ["could not list its tools", "invalid response to `tools/list`", "/tools"] {
        assert!(causes.iter().any(|words| words.contains(cause)), "{causes:#?}");
    }
}

#[tokio::test]
async fn a_log_message_of_a_server_is_no_unknown_notification_and_a_needless_cancellation_is_logged()
 {
    for (switch, message, count) in [
        ("--log-flood=2", "notification", 0),
        ("--log-flood=2", "cancellation of no open request", 0),
        ("--cancel-ours", "cancellation of no open request", 1),
    ] {
        let (log, test_env) = (LogCapture::capture(), TestEnv::new());
        let fixture = test_env.fixture("one");
        let fixture = match switch.split_once('=') {
            Some((name, value)) => fixture.with(name, value),
            None => fixture.switch(switch),
        };
        let host = test_env.start([fixture]).await.unwrap();
        host.call_tool("one.pid", ()).await.unwrap();
        host.shutdown().await;
        assert_eq!(log.with_message(message).len(), count, "{switch}");
    }
}

//! The log: each server's life once, each request with its fields and without its body.

use innkeeper_host::CallOptions;
use innkeeper_testkit::{Fault, Remote};
use serde_json::{Map, Value, json};

use crate::setup::{Log, Scene, builder};

/// The messages of a server's life, in order.
fn life(log: &Log, server: &str) -> Vec<String> {
    let kinds = ["start", "initialized", "unavailable", "shutdown"];
    let lines = log.lines();
    let mine = lines.iter().filter(|line| line["server"] == server);
    let messages = mine.map(|line| line["message"].as_str().unwrap_or_default());
    messages.filter(|message| kinds.contains(message)).map(str::to_owned).collect()
}

/// Proves: FR9.1
#[tokio::test]
async fn the_life_of_each_server_is_logged_once_and_in_order() {
    let log = Log::capture();
    let scene = Scene::new();
    let servers =
        [scene.fx("well"), scene.fx("crashes").with("--crash-after", 1), scene.fx("idle")];
    let host = scene.start(servers).await.unwrap();
    host.call_tool("well.pid", ()).await.unwrap();
    host.call_tool("crashes.pid", ()).await.unwrap_err();
    host.call_tool("crashes.pid", ()).await.unwrap_err();
    host.shutdown().await;
    host.shutdown().await;
    assert_eq!(life(&log, "well"), ["start", "initialized", "shutdown"]);
    assert_eq!(life(&log, "idle"), ["start", "initialized", "shutdown"]);
    assert_eq!(life(&log, "crashes"), ["start", "initialized", "unavailable", "shutdown"]);
}

/// Proves: N23
#[tokio::test]
async fn starts_stops_requests_and_errors_are_all_in_the_log() {
    let log = Log::capture();
    let scene = Scene::new();
    let server = scene.fx("one").with("--malformed", "wrongtypes");
    let host = scene.start([server]).await.unwrap();
    host.call_tool("one.pid", ()).await.unwrap_err();
    host.shutdown().await;
    for (message, level) in
        [("start", "INFO"), ("initialized", "INFO"), ("shutdown", "INFO"), ("request", "INFO")]
    {
        assert!(log.of(message).iter().any(|line| line["level"] == level), "{message}");
    }
    let errors: Vec<Value> =
        log.of("request").into_iter().filter(|line| line["level"] == "ERROR").collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert_eq!(errors[0]["outcome"], "protocol");
}

/// Proves: FR9.2
#[tokio::test]
async fn a_request_is_logged_with_its_fields_and_without_any_body() {
    let log = Log::capture();
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let at_start = log.of("request").len();
    let canary = "canary-4711";
    host.call_tool("one.echo", json!({"message": canary})).await.unwrap();
    host.call_tool("one.fail", json!({"reason": canary})).await.unwrap();
    let arguments: Map<String, Value> = json!({"name": canary}).as_object().unwrap().clone();
    host.get_prompt("one.greet", &arguments, CallOptions::default()).await.unwrap();
    host.read_resource("fx://one/static", None, CallOptions::default()).await.unwrap();
    let refused = host.call_tool("one.add", json!({"a": canary, "b": 1})).await;
    drop(refused.unwrap_err());
    host.shutdown().await;
    let journal = scene.journal();
    let lines = log.of("request").split_off(at_start);
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

/// Servers repeat what they refuse.
#[tokio::test]
async fn the_words_in_which_a_server_refuses_a_call_are_in_the_error_and_not_in_the_log() {
    let log = Log::capture();
    let scene = Scene::new();
    let refusing = |words: &str| Fault::status(400).rpc_error(-32099, words).on("tools/call");
    let plan = Remote::of(scene.fx("one")).fault(refusing("canary").nth(1));
    let plan = plan.fault(Fault::body(400, "text/plain", "canary").on("tools/call").nth(2));
    let remote = plan.fault(refusing(&"x".repeat(60_000)).nth(3)).start().await;
    let config = scene.config_of(&json!({"servers": {"one": remote.entry()}}));
    let host = builder(config).start().await.unwrap();
    let mut errors = Vec::new();
    for _ in 0..3 {
        let error = host.call_tool("one.pid", ()).await.unwrap_err();
        errors.push(crate::setup::chain(&error).join(": "));
    }
    host.shutdown().await;
    assert!(errors[0].contains("canary") && errors[1].contains("canary"), "{errors:?}");
    assert!(errors[2].contains("x… (60000 bytes) (code") && errors[2].len() < 1_200);
    let mut lines = log.of("request");
    lines.retain(|line| line["item"] == "pid");
    let refused = "server `one` refused `pid` (code -32099)";
    let broke = "server `one` broke the protocol answering `pid`: it answered with HTTP 400";
    let logged: Vec<&Value> = lines.iter().map(|line| &line["error"]).collect();
    assert_eq!(logged, [&json!([refused]), &json!([broke]), &json!([refused])]);
    assert!(!json!(log.lines()).to_string().contains("canary"), "{lines:#?}");
}

#[tokio::test]
async fn the_hosts_own_requests_are_logged_with_the_time_each_took() {
    let log = Log::capture();
    let scene = Scene::new();
    let server = scene.fx("one").with("--discover-delay", 300).with("--pages", 2);
    let host = scene.start([server]).await.unwrap();
    host.shutdown().await;
    let lines = log.of("request");
    let latency = |method: &str| {
        let found = lines.iter().find(|line| line["method"] == method);
        found.unwrap_or_else(|| panic!("{lines:#?}"))["latency_ms"].as_f64().unwrap()
    };
    assert!(latency("server/discover") >= 300.0);
    assert!(latency("initialize") < 300.0, "the wait for the other answer is not its own");
    assert_eq!(lines.iter().filter(|line| line["method"] == "tools/list").count(), 2);
    let refused = lines.iter().find(|line| line["method"] == "server/discover").unwrap();
    assert_eq!(refused["outcome"], "server_error", "it was refused: {refused}");
}

/// Proves: TR6.6
#[tokio::test]
async fn an_error_is_logged_with_the_whole_chain_of_its_causes() {
    let log = Log::capture();
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").with("--malformed", "wrongtypes")]).await.unwrap();
    let error = host.call_tool("one.pid", ()).await.unwrap_err();
    host.shutdown().await;
    let lines = log.of("request");
    let line = lines.iter().find(|line| line["level"] == "ERROR").unwrap();
    assert_eq!(line["error"], json!(crate::setup::chain(&error)));
    let chain = line["error"].as_array().unwrap();
    assert_eq!(chain[0], "server `one` broke the protocol answering `pid`");
    assert_eq!(chain[1], "the result has the wrong shape");
    assert!(chain[2].as_str().unwrap().contains("/content"), "{chain:?}");
    assert_eq!(chain.len(), 3);
}

/// Proves: TR6.6
#[tokio::test]
async fn a_failed_start_is_logged_with_its_chain() {
    let log = Log::capture();
    let scene = Scene::new();
    let config = scene.config([scene.fx("one").switch("--wrong-list")]);
    let error = builder(config).start().await.unwrap_err();
    assert!(error.to_string().contains("/tools"), "{error}");
    let line = &log.of("start failed")[0];
    let chain = line["error"].as_array().unwrap();
    let words: Vec<&str> = chain.iter().filter_map(Value::as_str).collect();
    for cause in ["failed while its tools were listed", "broke the protocol", "/tools"] {
        assert!(words.iter().any(|words| words.contains(cause)), "{words:#?}");
    }
}

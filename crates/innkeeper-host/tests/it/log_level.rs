//! The level of the log messages of servers.

use innkeeper_host::{CallErrorKind, Config, Host, HostEvent, LogLevel};
use innkeeper_testkit::InMemoryServer;
use serde_json::{Value, json};
use tokio::io::join;
use tokio::sync::mpsc;

use crate::remote::config_json;
use crate::setup::{TestEnv, builder};

const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

async fn start(test_env: &TestEnv, era: &str, level: Option<LogLevel>) -> Host {
    // The fixture declares `logging` with this switch.
    let server = test_env.fixture("a").with("--era", era).with("--log-flood", 1);
    let builder = builder(test_env.config_from(&config_json([("a", server.config_entry())])));
    let builder = level.into_iter().fold(builder, |builder, level| builder.log_level(level));
    builder.start().await.unwrap()
}

/// Returns the parameters of all received requests with this method.
fn received_params(test_env: &TestEnv, method: &str) -> Vec<Value> {
    test_env.journal().for_server("a").params(method).into_iter().cloned().collect()
}

fn set_levels(test_env: &TestEnv) -> Vec<Value> {
    received_params(test_env, "logging/setLevel")
}

#[tokio::test]
async fn a_legacy_server_receives_the_level_at_its_start_and_each_later_level() {
    let test_env = TestEnv::new();
    let host = start(&test_env, "legacy", Some(LogLevel::Warning)).await;
    host.set_log_level(None, LogLevel::Debug).await.unwrap();
    host.set_log_level(Some("a"), LogLevel::Alert).await.unwrap();
    let expected = ["warning", "debug", "alert"].map(|level| json!({"level": level}));
    assert_eq!(set_levels(&test_env), expected);
    let error = host.set_log_level(Some("b"), LogLevel::Alert).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Routing);
    host.restart_server("a").await.unwrap();
    host.call_tool("a.pid", ()).await.unwrap();
    assert_eq!(set_levels(&test_env)[3..], [json!({"level": "alert"})]);
    host.shutdown().await;
}

#[tokio::test]
async fn requests_to_a_modern_server_contain_the_level() {
    let test_env = TestEnv::new();
    let host = start(&test_env, "modern", Some(LogLevel::Notice)).await;
    host.call_tool("a.pid", ()).await.unwrap();
    host.set_log_level(Some("a"), LogLevel::Error).await.unwrap();
    host.call_tool("a.pid", ()).await.unwrap();
    let levels = |method: &str| -> Vec<Value> {
        let params = received_params(&test_env, method);
        params.iter().map(|params| params["_meta"][LEVEL_KEY].clone()).collect()
    };
    assert_eq!(levels("tools/list"), ["notice"]);
    assert_eq!(levels("tools/call"), ["notice", "error"]);
    assert!(set_levels(&test_env).is_empty());
    host.shutdown().await;
}

#[tokio::test]
async fn without_a_level_the_host_sends_none() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let host = start(&test_env, era, None).await;
        host.call_tool("a.pid", ()).await.unwrap();
        let calls = received_params(&test_env, "tools/call");
        assert_eq!(calls[0]["_meta"][LEVEL_KEY], Value::Null);
        assert!(set_levels(&test_env).is_empty());
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_named_legacy_server_without_logging_is_an_error_and_among_all_servers_is_skipped() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("a")]).await.unwrap();
    let error = host.set_log_level(Some("a"), LogLevel::Info).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Validation);
    assert!(error.to_string().contains("does not declare `logging`"), "{error}");
    host.set_log_level(None, LogLevel::Info).await.unwrap();
    assert!(set_levels(&test_env).is_empty());
    host.shutdown().await;
}

/// Responds as a server that declares `logging`, until a message with one of these methods
/// arrives; returns the message.
async fn serve_until(peer: &mut InMemoryServer, methods: &[&str]) -> Value {
    loop {
        let message = peer.next_message().await.unwrap();
        let result = match message["method"].as_str().unwrap() {
            received if methods.contains(&received) => return message,
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "logging": {}},
                "serverInfo": {"name": "a", "version": "1"},
            }),
            "server/discover" => {
                peer.respond_error(&message["id"], -32601, "method not found").await;
                continue;
            }
            _ => continue,
        };
        peer.respond(&message["id"], result).await;
    }
}

/// Starts a host with the server `a`, whose further starts send their server to the receiver.
async fn start_in_memory() -> (Host, InMemoryServer, mpsc::Receiver<InMemoryServer>) {
    let (peers, mut connected) = mpsc::channel(1);
    let connector = move || {
        let (peer, reader, writer) = InMemoryServer::new();
        peers.try_send(peer).unwrap();
        std::future::ready(Ok(join(reader, writer)))
    };
    let serve = async {
        let mut peer = connected.recv().await.unwrap();
        let list = serve_until(&mut peer, &["tools/list"]).await;
        peer.respond(&list["id"], json!({"tools": []})).await;
        peer
    };
    let builder = Host::builder(Config::default()).connector("a", connector);
    let (host, peer) = tokio::join!(builder.start(), serve);
    (host.unwrap(), peer, connected)
}

#[tokio::test(start_paused = true)]
async fn a_level_that_is_set_while_a_server_starts_reaches_the_server() {
    for named in [None, Some("a")] {
        let (host, _peer, mut connected) = start_in_memory().await;
        let serve = async {
            let mut peer = connected.recv().await.unwrap();
            let list = serve_until(&mut peer, &["tools/list"]).await;
            host.set_log_level(named, LogLevel::Debug).await.unwrap();
            peer.respond(&list["id"], json!({"tools": []})).await;
            let request = serve_until(&mut peer, &["logging/setLevel"]).await;
            assert_eq!(request["params"], json!({"level": "debug"}));
        };
        tokio::join!(host.restart_server("a"), serve).0.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_level_that_is_set_while_a_server_is_lost_is_no_error_and_reaches_the_next_start() {
    let (host, mut peer, mut connected) = start_in_memory().await;
    let mut events = host.events();
    peer.close();
    while !matches!(events.recv().await.unwrap(), HostEvent::Unavailable { .. }) {}
    host.set_log_level(None, LogLevel::Info).await.unwrap();
    let serve = async {
        let mut peer = connected.recv().await.unwrap();
        // The host does not wait for the response to the level, so the order is not defined.
        let both = ["logging/setLevel", "tools/list"];
        let messages = [serve_until(&mut peer, &both).await, serve_until(&mut peer, &both).await];
        assert_ne!(messages[0]["method"], messages[1]["method"]);
        for message in messages {
            if message["method"] == "tools/list" {
                peer.respond(&message["id"], json!({"tools": []})).await;
            } else {
                assert_eq!(message["params"], json!({"level": "info"}));
            }
        }
    };
    tokio::join!(host.restart_server("a"), serve).0.unwrap();
}

//! Servers with the modern revision, which has no handshake.

use innkeeper_host::{CallOptions, ErrorClass, Host};
use serde_json::{Map, Value, json};

use super::{cancelled_ids, error_class, request_ids};
use crate::setup::{TestEnv, builder, result_text};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

async fn greet(host: &Host, name: &str) -> Value {
    let arguments: Map<String, Value> = json!({"name": "Ada"}).as_object().unwrap().clone();
    let prompt = format!("{name}.greet");
    let raw = host.get_prompt(&prompt, &arguments, CallOptions::default()).await.unwrap();
    serde_json::from_str(raw.get()).unwrap()
}

#[tokio::test]
async fn every_request_says_who_asks_in_which_revision_and_there_is_no_handshake() {
    let test_env = TestEnv::new();
    let server =
        test_env.fixture("new").with("--era", "modern").with("--pages", 2).with("--progress", 2);
    let config = test_env.config([server]);
    let host = builder(config).client_info("inn", "9.9").start().await.unwrap();
    assert_eq!(host.catalog().server("new").unwrap().protocol_version(), Some("2026-07-28"));
    let (sender, mut progress) = tokio::sync::mpsc::channel(8);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    let message = json!({"message": "hi"});
    let result = host.call_tool_with("new.echo", message.clone(), options).await.unwrap();
    assert_eq!(result_text(&result), "hi");
    assert_eq!(progress.recv().await.unwrap().progress, 1.0);
    host.call_tool("new.echo", message).await.unwrap();
    assert_eq!(greet(&host, "new").await["messages"][0]["content"]["text"], "new: greet Ada");
    host.read_resource("fx://new/static", None, CallOptions::default()).await.unwrap();
    host.shutdown().await;
    let journal = test_env.journal();
    let methods = journal.methods();
    assert_eq!(methods[0], "server/discover");
    assert!(!methods.contains(&"initialize"), "{methods:?}");
    assert!(!methods.contains(&"notifications/initialized"), "{methods:?}");
    assert_eq!(methods.len(), 1 + 4 * 2 + 4, "{methods:?}");
    for entry in journal.events("recv") {
        let meta = &entry.message["params"]["_meta"];
        assert_eq!(meta[VERSION], "2026-07-28", "{}", entry.raw);
        assert_eq!(meta[CLIENT], json!({"name": "inn", "version": "9.9"}), "{}", entry.raw);
        let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        assert_eq!(meta[CAPABILITIES], capabilities, "{}", entry.raw);
    }
    let calls = journal.params("tools/call");
    assert_eq!(calls[0]["_meta"]["progressToken"], request_ids(&journal, "tools/call")[0]);
    // The call has a progress token without a listener, because progress extends the timeout.
    assert_eq!(calls[1]["_meta"]["progressToken"], request_ids(&journal, "tools/call")[1]);
    let prompt = &journal.params("prompts/get")[0]["_meta"];
    assert!(prompt.get("progressToken").is_none(), "nobody asked for progress");
}

#[tokio::test]
async fn a_server_of_both_eras_is_spoken_to_in_the_newer() {
    let test_env = TestEnv::new();
    let servers = [test_env.fixture("both").with("--era", "dual"), test_env.fixture("old")];
    let host = test_env.start(servers).await.unwrap();
    assert_eq!(host.catalog().server("both").unwrap().protocol_version(), Some("2026-07-28"));
    assert_eq!(host.catalog().server("old").unwrap().protocol_version(), Some("2025-11-25"));
    for name in ["both", "old"] {
        assert_eq!(greet(&host, name).await["messages"][0]["role"], "user");
    }
    let journal = test_env.journal();
    assert_eq!(
        (
            journal.for_server("both").count("initialize"),
            journal.for_server("old").count("initialize")
        ),
        (0, 1)
    );
    assert!(journal.for_server("old").params("prompts/get")[0].get("_meta").is_none());
    host.shutdown().await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_in_the_newer_era_too() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("new").with("--era", "modern")]).await.unwrap();
    let short = Some(std::time::Duration::from_millis(100));
    let options = CallOptions { timeout: short, ..CallOptions::default() };
    let result = host.call_tool_with("new.sleep", json!({"ms": 60_000}), options).await;
    assert_eq!(error_class(result), ErrorClass::Timeout);
    let journal = test_env.wait_for_journal(|journal| !cancelled_ids(journal).is_empty()).await;
    assert_eq!(cancelled_ids(&journal), request_ids(&journal, "tools/call"));
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_needs_an_answer_it_cannot_get_is_no_result() {
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("polite").with("--era", "modern").switch("--ask-sampling"),
        test_env
            .fixture("pushy")
            .with("--era", "modern")
            .switch("--ask-sampling")
            .switch("--ask-anyway"),
    ];
    let host = test_env.start(servers).await.unwrap();
    assert_eq!(error_class(host.call_tool("polite.pid", ()).await), ErrorClass::Server);
    // The client declared no sampling capability, but the server sends the request anyway.
    let error = host.call_tool("pushy.pid", ()).await.unwrap_err();
    assert_eq!(error.to_string(), "server `pushy` received no input for `pid`");
    assert_eq!(
        std::error::Error::source(&error).unwrap().to_string(),
        "the request `sampling/createMessage` of the server is rejected: the application has no \
         callback for this method"
    );
    assert_eq!(greet(&host, "pushy").await["messages"][0]["role"], "user");
    host.shutdown().await;
}

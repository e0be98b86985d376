//! The official Rust client uses a gateway in both eras.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest, ElicitRequestParams,
    ElicitResult, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions, RequestContext,
    RunningService,
};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::setup::{TEST_TIMEOUT, TestEnv};

/// What the client received beside responses.
#[derive(Clone, Default)]
struct Received {
    questions: Arc<AtomicUsize>,
    progress: Arc<AtomicUsize>,
    list_changed: Arc<Notify>,
}

impl ClientHandler for Received {
    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        let answer = json!({ "action": "accept", "content": { "colour": "red" } });
        Ok(serde_json::from_value(answer).unwrap())
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.list_changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let info = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" },
        });
        serde_json::from_value(info).unwrap()
    }
}

type Client = RunningService<RoleClient, Received>;

fn call(name: &'static str, arguments: &serde_json::Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().cloned().unwrap();
    CallToolRequestParams::new(name).with_arguments(arguments)
}

async fn use_every_feature(client: Client, received: &Received, is_legacy: bool) {
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "a.echo"), "{tools:?}");
    let result = client.call_tool(call("a.echo", &json!({ "message": "hi" }))).await.unwrap();
    let text = serde_json::to_string(&result).unwrap();
    assert!(text.contains("red"), "the result is the answer of the client: {text}");
    assert_eq!(received.questions.load(Ordering::Relaxed), 1);
    let read = client.read_resource(ReadResourceRequestParams::new("fx://b/item/7")).await.unwrap();
    assert!(serde_json::to_string(&read).unwrap().contains("b: item 7"), "{read:?}");
    let request = CallToolRequest::new(call("b.sleep", &json!({ "ms": 60_000 })));
    let request = ClientRequest::CallToolRequest(request);
    let options = PeerRequestOptions::no_options();
    let slow = client.send_cancellable_request(request, options).await.unwrap();
    slow.cancel(None).await.unwrap();
    client.call_tool(call("b.grow", &json!({ "what": "tools" }))).await.unwrap();
    // In the modern era, this client gets changes on a subscription.
    if is_legacy {
        received.list_changed.notified().await;
    }
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn the_official_rust_client_lists_calls_answers_reads_and_cancels_in_both_eras() {
    let modern =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    for (mode, is_legacy) in [(ClientLifecycleMode::Initialize, true), (modern, false)] {
        let test_env = TestEnv::new();
        let asking = test_env.fixture("a").switch("--ask-elicit").with("--progress", 2);
        let changing = test_env.fixture("b").switch("--list-changed");
        let gateway = test_env.gateway([asking, changing]).await;
        let received = Received::default();
        let (transport, _serving) = gateway.connection("local");
        let serving = received.clone().serve_with_lifecycle(transport, mode);
        let client = timeout(TEST_TIMEOUT, serving).await.unwrap().unwrap();
        timeout(TEST_TIMEOUT, use_every_feature(client, &received, is_legacy)).await.unwrap();
        // The server sends progress before its question and after the answer.
        assert_eq!(received.progress.load(Ordering::Relaxed), 4, "legacy: {is_legacy}");
    }
}

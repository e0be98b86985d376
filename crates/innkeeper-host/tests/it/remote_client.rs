//! Calls that the application makes on behalf of remote clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use innkeeper_host::error::ProtocolError;
use innkeeper_host::{
    CallError, CallNotification, CallOptions, CallbackCapabilities, Host, LogLevel, RemoteClient,
    RoundTripMode, SendCheck, ServerRequest, ToolResult,
};
use innkeeper_testkit::Fixture;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::setup::{TestEnv, builder, result_text};

/// More notifications than a test expects.
const CHANNEL_CAPACITY: usize = 16;

/// Calls `echo` and returns the methods of the notifications of the call with their first numbers.
async fn notifications_of_call(host: &Host, message: &str) -> Vec<(String, Value)> {
    let (sender, mut receiver) = mpsc::channel(CHANNEL_CAPACITY);
    let options = CallOptions { notifications: Some(sender), ..CallOptions::default() };
    let result = host.call_tool_with("a.echo", json!({"message": message}), options).await;
    assert_eq!(result_text(&result.unwrap()), message);
    let mut notifications = Vec::new();
    while let Ok(CallNotification { method, params, .. }) = receiver.try_recv() {
        let params: Value = serde_json::from_str(params.unwrap().get()).unwrap();
        let member = if &*method == "notifications/progress" { "progress" } else { "data" };
        notifications.push((method.to_string(), params[member].clone()));
    }
    notifications
}

fn progress(step: u64) -> (String, Value) {
    ("notifications/progress".to_owned(), json!(step))
}

fn log(number: u64) -> (String, Value) {
    ("notifications/message".to_owned(), json!(number))
}

#[tokio::test]
async fn a_call_receives_progress_and_log_messages_of_its_server_process_in_order() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").with("--era", era).with("--progress", 2);
        let host = test_env.start([server.with("--log-flood", 2)]).await.unwrap();
        host.set_log_level(None, LogLevel::Info).await.unwrap();
        for message in ["first", "second"] {
            let received = notifications_of_call(&host, message).await;
            assert_eq!(received, [progress(1), progress(2), log(0), log(1)], "{era} {message}");
        }
        host.shutdown().await;
    }
}

#[tokio::test]
async fn two_calls_at_once_receive_their_own_progress_and_no_log_message_before_one_has_ended() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--out-of-order", 2).with("--progress", 2);
    let server = server.with("--progress-delay", 5).with("--log-flood", 1);
    let host = test_env.start([server.config_key("maxConcurrent", 2)]).await.unwrap();
    let (first, second) =
        tokio::join!(notifications_of_call(&host, "1"), notifications_of_call(&host, "2"));
    let logs: usize = [&first, &second].map(|received| received.len() - 2).iter().sum();
    assert_eq!(logs, 1, "a log message without a certain call: {first:?} {second:?}");
    for received in [first, second] {
        assert_eq!(received[..2], [progress(1), progress(2)]);
    }
    host.shutdown().await;
}

/// Permits as many requests as it has answers left, and counts how often it is asked.
#[derive(Debug)]
struct CountingCheck {
    permitted: usize,
    asked: AtomicUsize,
}

impl SendCheck for CountingCheck {
    fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let permitted = number < self.permitted;
        Box::pin(async move {
            if permitted { Ok(()) } else { Err("another process owns the server".to_owned()) }
        })
    }
}

#[tokio::test]
async fn a_request_that_the_application_does_not_permit_is_not_sent() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").config_key("retry", json!({"max": 3}));
    let host = test_env.start([server]).await.unwrap();
    let check = Arc::new(CountingCheck { permitted: 1, asked: AtomicUsize::new(0) });
    let call = || {
        let options = CallOptions {
            client: RemoteClient { send_check: Some(check.clone()), ..RemoteClient::default() },
            ..CallOptions::default()
        };
        host.call_tool_with("a.echo", json!({"message": "m"}), options)
    };
    assert_eq!(result_text(&call().await.unwrap()), "m");
    let error = call().await.unwrap_err();
    assert!(matches!(error, CallError::Unavailable { may_have_run: false, .. }), "{error:?}");
    let reason = "the request was not sent: another process owns the server";
    assert_eq!(error.to_string(), format!("server `a` is unavailable: {reason}"));
    assert_eq!(check.asked.load(Ordering::Relaxed), 2, "no second attempt");
    host.shutdown().await;
    assert_eq!(test_env.journal().count("tools/call"), 1);
}

/// Starts a server that asks for an elicitation in each call, and a host that accepts each.
async fn start_asking(test_env: &TestEnv, server: Fixture) -> Host {
    let builder = builder(test_env.config([server.switch("--ask-elicit")]));
    let accept = |_: ServerRequest| async { Ok(json!({"action": "accept"})) };
    builder.callback(&CallbackCapabilities::all(), accept).start().await.unwrap()
}

/// Calls a tool on behalf of a client with these capabilities.
async fn call_as(
    host: &Host,
    capabilities: &Value,
    round_trips: RoundTripMode,
) -> Result<ToolResult, CallError> {
    let client_capabilities = Some(to_raw_value(capabilities).unwrap().into());
    let options = CallOptions {
        client: RemoteClient { capabilities: client_capabilities, ..RemoteClient::default() },
        round_trips,
        ..CallOptions::default()
    };
    host.call_tool_with("a.pid", (), options).await
}

#[tokio::test]
async fn a_legacy_process_gets_the_answer_of_a_client_that_declares_it_and_an_error_for_another() {
    let test_env = TestEnv::new();
    let host = start_asking(&test_env, test_env.fixture("a")).await;
    for capabilities in [json!({"sampling": {}}), json!({"elicitation": {}})] {
        call_as(&host, &capabilities, RoundTripMode::Callback).await.unwrap();
    }
    host.shutdown().await;
    let journal = test_env.journal();
    let responses = journal.responses();
    assert_eq!(responses[0]["error"]["code"], -32601, "{responses:?}");
    assert_eq!(responses[1]["result"]["action"], "accept", "{responses:?}");
}

#[tokio::test]
async fn a_modern_process_receives_the_capabilities_of_the_client_and_cannot_ask_for_others() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--era", "modern").switch("--ask-anyway");
    let host = start_asking(&test_env, server).await;
    let undeclared = json!({"sampling": {}, "x": 1e2});
    let pass_through = || RoundTripMode::PassThrough { input_responses: None, request_state: None };
    for mode in [RoundTripMode::Callback, pass_through()] {
        let error = call_as(&host, &undeclared, mode).await.unwrap_err();
        let CallError::Protocol { source, .. } = error else { panic!("{error:?}") };
        let ProtocolError::InputDenied { method, reason } = source else { panic!("{source:?}") };
        assert_eq!(&*method, "elicitation/create");
        let expected = "the client of the call does not declare `elicitation/create`";
        assert_eq!(&*reason, expected);
    }
    for mode in [RoundTripMode::Callback, pass_through()] {
        call_as(&host, &json!({"elicitation": {}}), mode).await.unwrap();
    }
    host.shutdown().await;
    let journal = test_env.journal();
    let meta = &journal.params("tools/call")[0]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], undeclared);
}

#[tokio::test]
async fn unusable_capabilities_of_a_client_are_a_validation_error() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("a")]).await.unwrap();
    let error = call_as(&host, &json!([]), RoundTripMode::Callback).await.unwrap_err();
    let expected = "invalid arguments for `a.pid`: `/clientCapabilities`: expected object";
    assert_eq!(error.to_string(), expected);
    host.shutdown().await;
    assert_eq!(test_env.journal().count("tools/call"), 0);
}

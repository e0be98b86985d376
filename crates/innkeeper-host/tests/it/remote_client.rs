//! Calls that the application makes on behalf of remote clients.

use innkeeper_host::{CallNotification, CallOptions, Host, LogLevel};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::setup::{TestEnv, result_text};

/// More notifications than a test expects.
const CHANNEL_CAPACITY: usize = 16;

/// Calls `echo` and returns the methods of the notifications of the call with their first numbers.
async fn notifications_of_call(host: &Host, message: &str) -> Vec<(String, Value)> {
    let (sender, mut receiver) = mpsc::channel(CHANNEL_CAPACITY);
    let options = CallOptions { notifications: Some(sender), ..CallOptions::default() };
    let result = host.call_tool_with("a.echo", json!({"message": message}), options).await;
    assert_eq!(result_text(&result.unwrap()), message);
    let mut notifications = Vec::new();
    while let Ok(CallNotification { method, params }) = receiver.try_recv() {
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

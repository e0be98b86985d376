//! Servers that send more than the host can process.

use std::time::Duration;

use innkeeper_host::CallError;
use innkeeper_host::error::UnavailableReason;
use serde_json::json;
use tokio::time::Instant;

use super::{DEADLINE_TOLERANCE, host_with_call_script, result_json, with_timeout};
use crate::setup::TestEnv;

/// Fault 33.
/// Attack: flow control | 300,000 malformed requests from a server that does not read | the calls
/// and the shutdown end in time, and the process is gone | No unbounded wait
#[tokio::test]
async fn a_flood_of_malformed_requests_from_a_server_that_does_not_read_is_no_deadlock() {
    let test_env = TestEnv::new();
    let flood = r#"yes '{"jsonrpc":"2.0","id":"x","method":7}' | head -n 300000; exec sleep 60"#;
    let host = host_with_call_script(&test_env, flood).await;
    let time = Duration::from_millis(500);
    let started_at = Instant::now();
    let large = json!({"large": "x".repeat(1 << 20)});
    let calls = (0..5).map(|_| {
        let (host, large) = (host.clone(), large.clone());
        async move { host.call_tool_with("sh.any", large, with_timeout(time)).await }
    });
    let mut calls: tokio::task::JoinSet<_> = calls.collect();
    while let Some(call) = calls.join_next().await {
        let error = call.unwrap().unwrap_err();
        // The flood makes the server unavailable unless the calls end first.
        let noisy = matches!(
            &error,
            CallError::Unavailable { reason: UnavailableReason::InvalidMessages, .. }
        );
        assert!(noisy || matches!(error, CallError::Timeout { .. }), "{error:?}");
    }
    assert!(started_at.elapsed() < time + DEADLINE_TOLERANCE, "{:?}", started_at.elapsed());
    let started_at = Instant::now();
    host.shutdown().await;
    assert!(started_at.elapsed() < DEADLINE_TOLERANCE, "{:?}", started_at.elapsed());
    test_env.assert_gone().await;
}

/// Fault 34.
/// Attack: flow control | 100,000 log messages precede a response, and the application reads no
/// events | the call gets its result | No unbounded memory
#[tokio::test]
async fn the_answer_behind_a_hundred_thousand_log_messages_is_found() {
    let test_env = TestEnv::new();
    let message = json!({"level": "info", "data": "x".repeat(120)});
    let message = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": message});
    let host = host_with_call_script(&test_env, &format!("yes '{message}' | head -n 100000")).await;
    // A receiver that is never read loses the oldest events and blocks nothing.
    let _events = host.events();
    let result = host.call_tool("sh.any", ()).await.unwrap();
    assert_eq!(result_json(&result), json!({"content": []}));
    host.shutdown().await;
}

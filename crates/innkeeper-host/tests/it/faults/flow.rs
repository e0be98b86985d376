//! Servers that say more than anybody can take.

use std::time::Duration;

use innkeeper_host::CallError;
use innkeeper_host::error::Lost;
use serde_json::json;
use tokio::time::Instant;

use super::{SLACK, on_call, value, within};
use crate::setup::Scene;

/// Fault 33.
#[tokio::test]
async fn a_flood_of_malformed_requests_from_a_server_that_does_not_read_is_no_deadlock() {
    let scene = Scene::new();
    let flood = r#"yes '{"jsonrpc":"2.0","id":"x","method":7}' | head -n 300000; exec sleep 60"#;
    let host = on_call(&scene, flood).await;
    let time = Duration::from_millis(500);
    let began = Instant::now();
    let large = json!({"large": "x".repeat(1 << 20)});
    let calls = (0..5).map(|_| {
        let (host, large) = (host.clone(), large.clone());
        async move { host.call_tool_with("sh.any", large, within(time)).await }
    });
    let mut calls: tokio::task::JoinSet<_> = calls.collect();
    while let Some(call) = calls.join_next().await {
        let error = call.unwrap().unwrap_err();
        // The flood itself makes it unavailable, unless the calls are over before.
        let noisy = matches!(&error, CallError::Unavailable { reason: Lost::Noise, .. });
        assert!(noisy || matches!(error, CallError::Timeout { .. }), "{error:?}");
    }
    assert!(began.elapsed() < time + SLACK, "{:?}", began.elapsed());
    let began = Instant::now();
    host.shutdown().await;
    assert!(began.elapsed() < SLACK, "{:?}", began.elapsed());
    scene.assert_gone().await;
}

/// Fault 34.
#[tokio::test]
async fn the_answer_behind_a_hundred_thousand_log_messages_is_found() {
    let scene = Scene::new();
    let message = json!({"level": "info", "data": "x".repeat(120)});
    let message = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": message});
    let host = on_call(&scene, &format!("yes '{message}' | head -n 100000")).await;
    // Somebody who listens and never looks loses the oldest, and holds nobody up.
    let _events = host.events();
    let result = host.call_tool("sh.any", ()).await.unwrap();
    assert_eq!(value(&result), json!({"content": []}));
    host.shutdown().await;
}

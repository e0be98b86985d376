//! What is not sent again: what is out of time, what was answered, and what may not run twice.

use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, ErrorClass, Event};
use serde_json::json;

use crate::setup::{Scene, told};

/// Proves: FR7.1
#[tokio::test]
async fn a_call_out_of_time_is_sent_once() {
    let scene = Scene::new();
    let server = scene.fx("one").switch("--hang-calls").key("unavailableAfterTimeouts", 9);
    let host = scene.start([server]).await.unwrap();
    let mut events = host.events();
    let brief = Some(Duration::from_millis(200));
    for (tool, arguments) in
        [("one.echo", json!({"message": "once"})), ("one.read", json!({"path": "/"}))]
    {
        let options = CallOptions { timeout: brief, ..CallOptions::default() };
        let error = host.call_tool_with(tool, arguments, options).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
    }
    assert_eq!(scene.journal().count("tools/call"), 2);
    assert!(!told(&mut events).iter().any(|event| matches!(event, Event::CallRetried { .. })));
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn an_error_that_was_answered_is_given_and_not_asked_for_again() {
    let scene = Scene::new();
    let server = scene.fx("one").with("--server-error", -32603).key("retry", json!({"max": 9}));
    let host = scene.start([server]).await.unwrap();
    let error = host.call_tool("one.read", json!({"path": "/"})).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Server);
    assert_eq!(scene.journal().count("tools/call"), 1);
    assert_eq!(host.metrics()["one"].request_count, 1);
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn a_server_that_died_is_not_asked_again_even_for_what_may_run_twice() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").with("--crash-after", 1)]).await.unwrap();
    let mut events = host.events();
    let error = host.call_tool("one.read", json!({"path": "/"})).await.unwrap_err();
    assert!(matches!(error, CallError::Unavailable { attempts: 1, .. }), "{error:?}");
    assert!(!error.to_string().contains("attempt"), "{error}");
    let known = host.call_tool("one.read", json!({"path": "/"})).await.unwrap_err();
    assert!(matches!(known, CallError::Unavailable { attempts: 0, .. }), "{known:?}");
    assert_eq!(scene.journal().count("tools/call"), 1);
    assert!(!told(&mut events).iter().any(|event| matches!(event, Event::CallRetried { .. })));
    host.shutdown().await;
}

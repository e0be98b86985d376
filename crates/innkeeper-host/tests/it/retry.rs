//! Calls that are not retried: timeouts, errors from servers, and calls that are not idempotent.

use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, ErrorClass, HostEvent};
use serde_json::json;

use crate::setup::{TestEnv, drain_events};

/// Attack: flow control | a server does not respond to a call | the call ends at its deadline and
/// is sent once | No repeated execution
/// Proves: FR7.1
#[tokio::test]
async fn a_call_out_of_time_is_sent_once() {
    let test_env = TestEnv::new();
    let server =
        test_env.fixture("one").switch("--hang-calls").config_key("unavailableAfterTimeouts", 9);
    let host = test_env.start([server]).await.unwrap();
    let mut events = host.events();
    let short_timeout = Some(Duration::from_millis(200));
    for (tool, arguments) in
        [("one.echo", json!({"message": "once"})), ("one.read", json!({"path": "/"}))]
    {
        let options = CallOptions { timeout: short_timeout, ..CallOptions::default() };
        let error = host.call_tool_with(tool, arguments, options).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
    }
    assert_eq!(test_env.journal().count("tools/call"), 2);
    assert!(
        !drain_events(&mut events).iter().any(|event| matches!(event, HostEvent::CallRetry { .. }))
    );
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn an_error_that_was_answered_is_given_and_not_asked_for_again() {
    let test_env = TestEnv::new();
    let server = test_env
        .fixture("one")
        .with("--server-error", -32603)
        .config_key("retry", json!({"max": 9}));
    let host = test_env.start([server]).await.unwrap();
    let error = host.call_tool("one.read", json!({"path": "/"})).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Server);
    assert_eq!(test_env.journal().count("tools/call"), 1);
    assert_eq!(host.metrics()["one"].request_count, 1);
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn a_server_that_died_is_not_asked_again_even_for_what_may_run_twice() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").with("--crash-after", 1)]).await.unwrap();
    let mut events = host.events();
    let error = host.call_tool("one.read", json!({"path": "/"})).await.unwrap_err();
    assert!(matches!(error, CallError::Unavailable { attempts: 1, .. }), "{error:?}");
    assert!(!error.to_string().contains("attempt"), "{error}");
    let read_error = host.call_tool("one.read", json!({"path": "/"})).await.unwrap_err();
    assert!(matches!(read_error, CallError::Unavailable { attempts: 0, .. }), "{read_error:?}");
    assert_eq!(test_env.journal().count("tools/call"), 1);
    assert!(
        !drain_events(&mut events).iter().any(|event| matches!(event, HostEvent::CallRetry { .. }))
    );
    host.shutdown().await;
}

//! Audit events in the log.

use serde_json::json;

use crate::setup::{LogCapture, TestEnv};

/// Proves: TR10.5
#[tokio::test]
async fn a_call_of_an_excluded_tool_is_reported_and_one_of_an_unknown_tool_is_not() {
    let (log, test_env) = (LogCapture::capture(), TestEnv::new());
    let filter = json!({ "deny": ["ech*"] });
    let host = test_env.start([test_env.fixture("one").config_key("tools", filter)]).await.unwrap();
    host.call_tool("one.nothing", ()).await.unwrap_err();
    host.call_tool("one.echo", json!({"message": "canary-4711"})).await.unwrap_err();
    let lines = log.security_lines();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let line = &lines[0];
    assert_eq!((&line["audit"], &line["level"]), (&json!("tool-refused"), &json!("WARN")));
    assert_eq!((&line["server"], &line["tool"]), (&json!("one"), &json!("echo")));
    assert_eq!(line["why"], "denied by `ech*` in `tools.deny`");
    assert!(!line.to_string().contains("canary"), "arguments in the log");
    host.shutdown().await;
}

/// Proves: TR10.5
#[tokio::test]
async fn a_server_request_without_a_callback_is_reported() {
    let (log, test_env) = (LogCapture::capture(), TestEnv::new());
    let server = test_env.fixture("one").switch("--ask-sampling").switch("--ask-anyway");
    let host = test_env.start([server]).await.unwrap();
    // The host denies the server's request, regardless of the result of the call.
    let _ = host.call_tool("one.pid", ()).await;
    let lines = log.security_lines();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let line = &lines[0];
    assert_eq!((&line["audit"], &line["server"]), (&json!("request-refused"), &json!("one")));
    assert_eq!((&line["what"], &line["count"]), (&json!("sampling/createMessage"), &json!(1)));
    host.shutdown().await;
}

/// Proves: TR10.5
#[cfg(unix)]
#[tokio::test]
async fn a_command_without_permission_to_execute_is_reported_as_a_failed_start() {
    let (log, test_env) = (LogCapture::capture(), TestEnv::new());
    let program = test_env.path("server");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    let denied = test_env.fixture("one").config_key("command", program.to_str().unwrap());
    let error = test_env.start([denied, test_env.fixture("two")]).await.unwrap_err();
    assert!(error.to_string().contains("is not executable"), "{error}");
    let lines = log.security_lines();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let line = &lines[0];
    assert_eq!((&line["audit"], &line["level"]), (&json!("start-failed"), &json!("ERROR")));
    assert_eq!((&line["server"], &line["required"]), (&json!("one"), &json!(true)));
    assert!(line.to_string().contains("is not executable"), "{line}");
    assert!(test_env.journal().entries.is_empty(), "no server starts");
}

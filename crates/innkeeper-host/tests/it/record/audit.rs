//! What a host tells of security, in lines of the log.

use serde_json::json;

use crate::setup::{Log, Scene};

/// Proves: TR10.5
#[tokio::test]
async fn a_call_of_a_tool_that_is_kept_out_is_told_and_one_that_does_not_exist_is_not() {
    let (log, scene) = (Log::capture(), Scene::new());
    let filter = json!({ "deny": ["ech*"] });
    let host = scene.start([scene.fx("one").key("tools", filter)]).await.unwrap();
    host.call_tool("one.nothing", ()).await.unwrap_err();
    host.call_tool("one.echo", json!({"message": "canary-4711"})).await.unwrap_err();
    let lines = log.audited();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let line = &lines[0];
    assert_eq!((&line["audit"], &line["level"]), (&json!("tool-refused"), &json!("WARN")));
    assert_eq!((&line["server"], &line["tool"]), (&json!("one"), &json!("echo")));
    assert_eq!(line["why"], "`tools.deny` has `ech*`");
    assert!(!line.to_string().contains("canary"), "arguments in the log");
    host.shutdown().await;
}

/// Proves: TR10.5
#[tokio::test]
async fn what_a_server_asks_and_nobody_answers_is_told() {
    let (log, scene) = (Log::capture(), Scene::new());
    let server = scene.fx("one").switch("--ask-sampling").switch("--ask-anyway");
    let host = scene.start([server]).await.unwrap();
    // Whatever becomes of the call, the question was refused.
    drop(host.call_tool("one.pid", ()).await);
    let lines = log.audited();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let line = &lines[0];
    assert_eq!((&line["audit"], &line["server"]), (&json!("request-refused"), &json!("one")));
    assert_eq!((&line["what"], &line["count"]), (&json!("sampling/createMessage"), &json!(1)));
    host.shutdown().await;
}

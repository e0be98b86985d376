//! Every class of error from a real cause, each naming what it is about.

use std::time::Duration;

use innkeeper_host::{CallError, CallKind, CallOptions, Config, Environment, ErrorClass};
use serde_json::json;

use crate::setup::Scene;

/// Proves: TR6.1
#[tokio::test]
async fn each_class_of_error_has_its_cause_and_names_what_it_is_about() {
    let scene = Scene::new();
    let servers = [
        scene.fx("one"),
        scene.fx("gone").with("--crash-after", 1),
        scene.fx("broken").with("--malformed", "both"),
        scene.fx("refuses").with("--server-error", -1),
    ];
    let host = scene.start(servers).await.unwrap();
    let brief = CallOptions { timeout: Some(Duration::from_millis(50)), ..CallOptions::default() };
    let sleep = json!({"ms": 60_000});
    let errors: [(ErrorClass, CallKind, &str, CallError); 6] = [
        (
            ErrorClass::Routing,
            CallKind::Routing,
            "`nope.x`",
            host.call_tool("nope.x", ()).await.unwrap_err(),
        ),
        (
            ErrorClass::Validation,
            CallKind::Validation,
            "`one.echo`",
            host.call_tool("one.echo", ()).await.unwrap_err(),
        ),
        (
            ErrorClass::ServerUnavailable,
            CallKind::Unavailable,
            "`gone`",
            host.call_tool("gone.pid", ()).await.unwrap_err(),
        ),
        (
            ErrorClass::Timeout,
            CallKind::Timeout,
            "`one`",
            host.call_tool_with("one.sleep", sleep, brief).await.unwrap_err(),
        ),
        (
            ErrorClass::Protocol,
            CallKind::Protocol,
            "`broken`",
            host.call_tool("broken.pid", ()).await.unwrap_err(),
        ),
        (
            ErrorClass::Server,
            CallKind::Server,
            "`refuses`",
            host.call_tool("refuses.pid", ()).await.unwrap_err(),
        ),
    ];
    for (class, kind, named, error) in errors {
        assert_eq!((error.class(), error.kind()), (class, kind));
        let message = error.to_string();
        assert!(message.contains(named), "{message}");
        assert!(!message.ends_with('.') && !message.contains('\n'), "{message}");
        let server = error.server().map(|server| format!("`{server}`"));
        assert!(server.is_none_or(|server| server == named), "{message}");
    }
    host.shutdown().await;
}

/// Proves: TR6.1
#[tokio::test]
async fn a_start_fails_by_its_configuration_or_by_its_servers() {
    let scene = Scene::new();
    let config = scene.config([scene.fx("one").with("--init-error", -32603)]);
    let error = crate::setup::builder(config).start().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::ServerStartup);
    assert!(error.to_string().contains("`one`"), "{error}");
    let missing = json!({"servers": {"one": {"command": "no-such-program-anywhere"}}});
    let directory = scene.path("");
    let environment = Environment::of_process();
    let config = Config::from_value(&missing, "mcp.json", &directory, &environment).unwrap();
    let error = crate::setup::builder(config).start().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Configuration);
    assert!(error.to_string().contains("no-such-program-anywhere"), "{error}");
    let words = serde_json::to_value([ErrorClass::ServerStartup, ErrorClass::ServerUnavailable]);
    assert_eq!(words.unwrap(), json!(["server-startup", "server-unavailable"]));
}

//! Every error class from a real cause.

use std::time::Duration;

use innkeeper_host::{CallError, CallErrorKind, CallOptions, Config, Environment, ErrorClass};
use serde_json::json;

use crate::setup::TestEnv;

/// Proves: TR6.1
#[tokio::test]
async fn each_class_of_error_has_its_cause_and_names_what_it_is_about() {
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("one"),
        test_env.fixture("gone").with("--crash-after", 1),
        test_env.fixture("broken").with("--malformed", "both"),
        test_env.fixture("refuses").with("--server-error", -1),
    ];
    let host = test_env.start(servers).await.unwrap();
    let short_timeout =
        CallOptions { timeout: Some(Duration::from_millis(50)), ..CallOptions::default() };
    let sleep = json!({"ms": 60_000});
    let errors: [(ErrorClass, CallErrorKind, &str, CallError); 6] = [
        (
            ErrorClass::Routing,
            CallErrorKind::Routing,
            "`nope.x`",
            host.call_tool("nope.x", ()).await.unwrap_err(),
        ),
        (
            ErrorClass::Validation,
            CallErrorKind::Validation,
            "`one.echo`",
            host.call_tool("one.echo", ()).await.unwrap_err(),
        ),
        (
            ErrorClass::ServerUnavailable,
            CallErrorKind::Unavailable,
            "`gone`",
            host.call_tool("gone.pid", ()).await.unwrap_err(),
        ),
        (
            ErrorClass::Timeout,
            CallErrorKind::Timeout,
            "`one`",
            host.call_tool_with("one.sleep", sleep, short_timeout).await.unwrap_err(),
        ),
        (
            ErrorClass::Protocol,
            CallErrorKind::Protocol,
            "`broken`",
            host.call_tool("broken.pid", ()).await.unwrap_err(),
        ),
        (
            ErrorClass::Server,
            CallErrorKind::Server,
            "`refuses`",
            host.call_tool("refuses.pid", ()).await.unwrap_err(),
        ),
    ];
    for (class, kind, expected_server, error) in errors {
        assert_eq!((error.class(), error.kind()), (class, kind));
        let message = error.to_string();
        assert!(message.contains(expected_server), "{message}");
        assert!(!message.ends_with('.') && !message.contains('\n'), "{message}");
        let server = error.server().map(|server| format!("`{server}`"));
        let has_server = !matches!(class, ErrorClass::Routing | ErrorClass::Validation);
        assert_eq!(server.as_deref(), has_server.then_some(expected_server), "{message}");
    }
    host.shutdown().await;
}

/// Proves: TR6.1, FR7.2
#[tokio::test]
async fn a_start_fails_by_its_configuration_or_by_its_servers() {
    let test_env = TestEnv::new();
    let config = test_env.config([test_env.fixture("one").with("--init-error", -32603)]);
    let error = crate::setup::builder(config).start().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::ServerStartup);
    let message = error.to_string();
    assert!(message.starts_with("server `one` failed during the handshake: "), "{message}");
    assert!(message.contains("initialization failed as asked"), "{message}");
    let missing = json!({"servers": {"one": {"command": "no-such-program-anywhere"}}});
    let directory = test_env.path("");
    let environment = Environment::from_process();
    let config = Config::from_value(&missing, "mcp.json", &directory, &environment).unwrap();
    let error = crate::setup::builder(config).start().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Configuration);
    let message = error.to_string();
    assert!(message.contains("servers.one.command: "), "{message}");
    assert!(message.contains("no-such-program-anywhere"), "{message}");
    let serialized =
        serde_json::to_value([ErrorClass::ServerStartup, ErrorClass::ServerUnavailable]);
    assert_eq!(serialized.unwrap(), json!(["server-startup", "server-unavailable"]));
}

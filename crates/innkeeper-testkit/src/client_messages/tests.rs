//! Tests of the check of client messages.

use super::*;

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn initialize() -> Value {
    let info = json!({"name": "a", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    request("initialize", &params)
}

/// Checks a message after `initialize`.
fn check_legacy(message: &Value) -> Result<(), String> {
    let mut checker = ClientMessageChecker::default();
    checker.check(&initialize()).unwrap();
    checker.check(message)
}

fn check_modern(message: &Value) -> Result<(), String> {
    ClientMessageChecker::default().check(message)
}

#[test]
fn valid_messages_of_both_eras_are_accepted() {
    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": "p-1", "result": {}}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"roots": [{"uri": "file:///a"}]}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}),
        request("tools/call", &json!({"name": "a", "arguments": {"b": 1}})),
        request("resources/read", &json!({"uri": "a:b"})),
    ] {
        assert_eq!(check_legacy(&message), Ok(()), "{message}");
    }
    for message in [
        request("server/discover", &json!({"_meta": meta()})),
        request("tools/call", &json!({"name": "a", "_meta": meta()})),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    ] {
        assert_eq!(check_modern(&message), Ok(()), "{message}");
    }
}

/// Proves: TR6.4
#[test]
fn each_violation_is_an_error_that_names_its_place() {
    let mut meta_without_capabilities = meta();
    meta_without_capabilities
        .as_object_mut()
        .unwrap()
        .remove("io.modelcontextprotocol/clientCapabilities");
    let legacy = [
        (request("tools/call", &json!({"arguments": {}})), "`/params`: "),
        (request("tools/call", &json!({"name": "a", "arguments": []})), "`/params/arguments`: "),
        (json!({"jsonrpc": "1.0", "id": 1, "method": "tools/list"}), "`/jsonrpc`: "),
        (json!({"jsonrpc": "2.0", "id": null, "method": "tools/list"}), "`/id`: "),
        (request("tools/run", &json!({})), "the era has no request `tools/run`"),
        (json!({"jsonrpc": "2.0", "id": 1, "result": "text"}), "`/result`: "),
        (json!({"jsonrpc": "2.0", "id": 1, "error": {"message": "no"}}), "`/error`: "),
        (json!({"jsonrpc": "2.0", "id": 1, "result": {"roots": [{}]}}), "`/roots/0`: "),
        (json!([]), "the message is not an object"),
    ];
    for (message, expected) in legacy {
        let error = check_legacy(&message).unwrap_err();
        assert!(error.contains(expected), "{message}: {error}");
    }
    let modern = [
        (request("tools/list", &json!({"_meta": meta_without_capabilities})), "`/params/_meta`: "),
        (request("tools/list", &json!({})), "`/params`: "),
        (request("ping", &json!({"_meta": meta()})), "the era has no request `ping`"),
        (
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            "the era has no notification `notifications/initialized`",
        ),
    ];
    for (message, expected) in modern {
        let error = check_modern(&message).unwrap_err();
        assert!(error.contains(expected), "{message}: {error}");
    }
}

//! Tests that values of variables and likely secrets are never shown.

use std::path::Path;

use insta::assert_snapshot;

use super::{diagnostics, load_with, server_diagnostics};
use crate::Config;
use crate::variables::environment::Environment;

const CANARY: &str = "canary-5f1e";

/// Returns all text that an application could print of a result.
fn printed(text: &str) -> String {
    let environment = Environment::from_pairs([("CANARY", CANARY), ("HOME", "/home/canary-5f1e")]);
    let base = Path::new("/nowhere/project");
    match Config::from_text(text, "mcp.json", base, &environment) {
        Ok(config) => format!("{config:?} {}", serde_json::to_string(&config).unwrap()),
        Err(error) => {
            format!("{error} {error:?} {}", serde_json::to_string(&error).unwrap())
        }
    }
}

/// Proves: FR1.2
#[test]
fn a_configuration_never_prints_what_a_variable_held() {
    let text = r#"{"servers": {
      "a": {"command": "${CANARY}", "args": ["${CANARY}", "x-${CANARY}"], "cwd": "${HOME}/x",
            "env": {"A": "${CANARY}", "B": "canary-5f1e"}},
      "b": {"url": "https://${CANARY}:${CANARY}@h/${CANARY}?k=${CANARY}",
            "headers": {"X": "Bearer ${CANARY}", "Y": "canary-5f1e"},
            "oauth": {"clientId": "${CANARY}", "clientSecret": "canary-5f1e",
                      "redirectUri": "${CANARY}", "clientMetadataUrl": "https://${CANARY}/c",
                      "enterprise": {"issuer": "${CANARY}", "clientSecret": "canary-5f1e",
                          "tokenEndpoint": "https://${CANARY}/t", "clientId": "${CANARY}",
                          "idToken": "canary-5f1e"}}}
    }}"#;
    let printed = printed(text);
    assert!(printed.contains("${CANARY}"), "{printed}");
    assert!(!printed.contains(CANARY), "{printed}");
}

/// Proves: FR1.2
#[test]
fn no_error_quotes_what_a_variable_held() {
    for keys in [
        r#""command": "${CANARY}", "args": ["${NO}"]"#,
        r#""command": "x", "envFile": "${CANARY}""#,
        r#""command": "x", "envFile": "${HOME}/none""#,
        r#""command": "x", "cwd": "${CANARY}\u0000""#,
        r#""url": "${CANARY}""#,
        r#""url": "https://${CANARY} x""#,
        r#""url": "https://a", "headers": {"X": "${CANARY}\r\nY: 1"}"#,
        r#""command": "x", "env": {"A": "${CANARY}${NO}"}"#,
        r#""command": "x", "args": ["${NO:-${CANARY}}"]"#,
    ] {
        let printed = printed(&format!(r#"{{"servers": {{"a": {{{keys}}}}}}}"#));
        assert!(printed.contains("mcp.json:1:"), "no error for {keys}: {printed}");
        assert!(!printed.contains(CANARY), "{printed}");
    }
}

#[test]
fn no_error_quotes_a_literal_that_may_be_secret() {
    for keys in [
        r#""command": "x", "env": {"A": ["canary-5f1e"]}"#,
        r#""command": "x", "env": "canary-5f1e""#,
        r#""url": "https://a", "headers": ["canary-5f1e"]"#,
        r#""url": "https://a", "headers": {"X": {"a": "canary-5f1e"}}"#,
        r#""url": "canary-5f1e""#,
        r#""url": "https://a", "oauth": "canary-5f1e""#,
        r#""command": "x", "timeout": "canary-5f1e""#,
        r#""command": "x", "args": "canary-5f1e""#,
    ] {
        let printed = printed(&format!(r#"{{"servers": {{"a": {{{keys}}}}}}}"#));
        assert!(printed.contains("mcp.json:1:"), "no error for {keys}: {printed}");
        assert!(!printed.contains(CANARY), "{printed}");
    }
}

#[test]
fn an_environment_prints_no_value() {
    let environment = Environment::from_pairs([("A", CANARY)]);
    assert_eq!(format!("{environment:?}"), "Environment { variables: 1 }");
}

#[test]
fn a_secret_in_an_argument_is_warned_about_and_not_shown() {
    let text =
        r#""command": "x", "args": ["--api-key", "canary-5f1e", "--token=canary-5f1e", "-y"]"#;
    assert_snapshot!(server_diagnostics(text), @"
    mcp.json:1:59 servers.fs.args[1]: the argument looks like a secret
        hint: arguments are visible to all users of this machine; use `env`
    mcp.json:1:74 servers.fs.args[2]: the argument looks like a secret
        hint: arguments are visible to all users of this machine; use `env`
    ");
    let printed = printed(&format!(r#"{{"servers": {{"a": {{{text}}}}}}}"#));
    assert!(!printed.contains(CANARY), "{printed}");
}

#[test]
fn a_secret_variable_in_an_argument_is_warned_about_by_name() {
    let text = r#"{"servers": {"a": {"command": "x", "args": ["${GITHUB_TOKEN}", "${DIR}"]}}}"#;
    let variables = [("GITHUB_TOKEN", CANARY), ("DIR", "/tmp")];
    let diagnostics = super::diagnostics_with(text, &variables);
    assert_snapshot!(diagnostics, @"
    mcp.json:1:45 servers.a.args[0]: variable `GITHUB_TOKEN` in an argument looks like a secret
        hint: arguments are visible to all users of this machine; use `env`
    ");
    assert!(load_with(text, &variables).is_ok());
}

#[test]
fn a_password_in_an_address_is_warned_about_and_not_shown() {
    let text = r#"{"servers": {"a": {"url": "https://me:canary-5f1e@host/mcp?key=canary-5f1e"}}}"#;
    assert_snapshot!(diagnostics(text), @"
    mcp.json:1:27 servers.a.url: contains a password
        hint: send the password in `headers`
    ");
    let printed = printed(text);
    assert!(printed.contains("https://***@host/mcp?***"), "{printed}");
    assert!(!printed.contains(CANARY), "{printed}");
}

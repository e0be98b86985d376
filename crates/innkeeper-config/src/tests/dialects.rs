//! Tests of files written for other hosts.

use std::time::Duration;

use insta::assert_snapshot;

use super::{diagnostics, load, load_with, server, server_diagnostics};
use crate::settings::server::{ServerConfig, TransportConfig};

fn address(server: &ServerConfig) -> &str {
    match &server.transport {
        TransportConfig::Http { url, .. }
        | TransportConfig::Sse { url, .. }
        | TransportConfig::WebSocket { url, .. } => url.expose(),
        TransportConfig::Stdio { .. } | TransportConfig::InProcess => panic!("not remote"),
    }
}

#[test]
fn every_spelling_of_a_transport_is_read() {
    for (spelling, kind) in [
        ("local", "stdio"),
        ("streamable-http", "http"),
        ("streamableHttp", "http"),
        ("streamable_http", "http"),
        ("remote", "http"),
        ("HTTP", "http"),
        ("ws", "websocket"),
    ] {
        let scheme = if kind == "websocket" { "ws" } else { "http" };
        let keys = match kind {
            "stdio" => format!(r#""type": "{spelling}", "command": "x""#),
            _ => format!(r#""transport": "{spelling}", "url": "{scheme}://a""#),
        };
        assert_eq!(server(&keys).unwrap().transport.kind(), kind, "{spelling}");
    }
}

#[test]
fn other_names_of_the_address_are_read() {
    let gemini = server(r#""httpUrl": "http://a/mcp""#).unwrap();
    assert_eq!((gemini.transport.kind(), address(&gemini)), ("http", "http://a/mcp"));
    let windsurf = server(r#""serverUrl": "http://a/sse", "type": "sse""#).unwrap();
    assert_eq!((windsurf.transport.kind(), address(&windsurf)), ("sse", "http://a/sse"));
    let both = server(r#""httpUrl": "http://a/sse", "type": "sse""#).unwrap();
    assert_eq!(both.transport.kind(), "sse");
}

#[test]
fn enabled_is_the_opposite_of_disabled() {
    let config =
        load(r#"{"servers": {"a": {"command": "x", "enabled": false}, "b": {"command": "y", "enabled": true}}}"#)
            .unwrap();
    assert_eq!(config.disabled.keys().collect::<Vec<_>>(), ["a"]);
    assert!(config.servers.contains_key("b"));
}

#[test]
fn other_names_of_the_tool_lists_are_read() {
    let gemini = server(r#""command": "x", "includeTools": ["a", "b"], "excludeTools": ["b"]"#);
    let gemini = gemini.unwrap().tools;
    assert!(gemini.permits("a") && !gemini.permits("b") && !gemini.permits("c"));
    let codex = server(r#""command": "x", "disabled_tools": ["b"], "enabled_tools": ["b", "c"]"#);
    let codex = codex.unwrap().tools;
    assert!(codex.permits("c") && !codex.permits("b"));
    let copilot = server(r#""command": "x", "tools": ["read_*"]"#).unwrap().tools;
    assert!(copilot.permits("read_file") && !copilot.permits("write_file"));
    let mixed = server(r#""command": "x", "excludeTools": ["b"], "tools": ["b", "c"]"#);
    let mixed = mixed.unwrap().tools;
    assert!(mixed.permits("c") && !mixed.permits("b"));
}

#[test]
fn a_list_of_tools_of_the_wrong_type_is_refused_beside_another_hosts_list() {
    for (first, second) in [("tools", "excludeTools"), ("excludeTools", "tools")] {
        for wrong in ["\"read_*\"", "null", "5"] {
            let value = |key: &str| if key == "tools" { wrong } else { "[\"b\"]" };
            let text = format!(
                r#""command": "x", "{first}": {}, "{second}": {}"#,
                value(first),
                value(second)
            );
            assert!(server(&text).is_err(), "{text}");
        }
    }
}

#[test]
fn headers_may_be_lines() {
    let server = server(r#""url": "http://a", "headers": ["X-Key: a:b", "Accept:c"]"#).unwrap();
    let TransportConfig::Http { headers, .. } = &server.transport else {
        panic!("not http");
    };
    let pairs: Vec<_> =
        headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(pairs, [("X-Key", "a:b"), ("Accept", "c")]);
    assert_snapshot!(
        server_diagnostics(r#""url": "http://a", "headers": ["X-Key: ${NO}", "X-Key: 2", "x", 5]"#),
        @"
        mcp.json:1:52 servers.fs.headers[0]: variable `NO` is not set
            hint: set the variable, add it to `.env` beside the file, or write `${NO:-default}`
        mcp.json:1:68 servers.fs.headers[1]: duplicate header `X-Key`
        mcp.json:1:80 servers.fs.headers[2]: expected `Name: value`
        mcp.json:1:85 servers.fs.headers[3]: expected `Name: value`
        "
    );
}

#[test]
fn seconds_of_other_hosts_are_read_by_their_names() {
    let server = server(r#""command": "x", "startup_timeout_sec": 20, "tool_timeout_sec": 45"#);
    let server = server.unwrap();
    assert_eq!(server.lifecycle.init_timeout, Duration::from_secs(20));
    assert_eq!(server.calls.timeout, Duration::from_secs(45));
}

#[test]
fn milliseconds_are_recognised_and_reported() {
    let timeout = |text: &str| load(text).unwrap().servers["a"].calls.timeout;
    // Under our key: always seconds, without a maximum.
    assert_eq!(
        timeout(r#"{"servers": {"a": {"command": "x", "timeout": 5000}}}"#),
        Duration::from_secs(5000)
    );
    // Under the other hosts' key: seconds up to one hour, milliseconds above.
    assert_eq!(
        timeout(r#"{"mcpServers": {"a": {"command": "x", "timeout": 3600}}}"#),
        Duration::from_secs(3600)
    );
    assert_eq!(
        timeout(r#"{"mcpServers": {"a": {"command": "x", "timeout": 60000}}}"#),
        Duration::from_secs(60)
    );
    // With a key that only hosts with milliseconds write.
    assert_eq!(
        timeout(r#"{"mcpServers": {"a": {"command": "x", "timeout": 1500, "trust": true}}}"#),
        Duration::from_millis(1500)
    );
    assert_eq!(
        timeout(r#"{"mcpServers": {"a": {"command": "x", "timeout": 30, "trust": true}}}"#),
        Duration::from_secs(30)
    );
    assert_snapshot!(
        diagnostics(r#"{"mcpServers": {"a": {"command": "x", "timeout": 600000}}}"#),
        @"
        mcp.json:1:50 mcpServers.a.timeout: `600000` is read as milliseconds, as in other hosts
            hint: write `600` (seconds)
        "
    );
}

#[test]
fn problems_are_reported_by_the_key_that_stands_in_the_file() {
    let text = r#"{"mcpServers": {
  "a": {"httpUrl": 5, "enabled": "no", "includeTools": [1]},
  "b": {"serverUrl": "http://b", "httpUrl": "http://c", "tools": ["a"], "enabledTools": ["b"]},
  "c": {"command": "x", "includeTools": ["a"], "enabled_tools": ["b"]},
  "d": {"command": "x", "sandbox": {"network": {"allowedDomains": []}}}
}}"#;
    assert_snapshot!(diagnostics(text), @"
    mcp.json:2:20 mcpServers.a.httpUrl: expected string
    mcp.json:2:34 mcpServers.a.enabled: expected boolean
    mcp.json:2:57 mcpServers.a.includeTools[0]: expected string
    mcp.json:3:34 mcpServers.b.httpUrl: means the same as `serverUrl`; remove one of the two keys
    mcp.json:3:73 mcpServers.b.enabledTools: means the same as `tools`; remove one of the two keys
    mcp.json:4:48 mcpServers.c.enabled_tools: means the same as `includeTools`; remove one of the two keys
    mcp.json:5:3 mcpServers.d: same server as `c` under another name
    mcp.json:5:25 mcpServers.d.sandbox: not supported by this host; ignored
    ");
}

#[test]
fn a_nested_transport_is_part_of_its_server() {
    let nested =
        server(r#""transport": {"type": "stdio", "command": "x", "timeout": 60}"#).unwrap();
    assert_eq!((nested.transport.kind(), nested.calls.timeout), ("stdio", Duration::from_secs(60)));
    let remote = server(r#""transport": {"type": "streamableHttp", "url": "http://a"}"#).unwrap();
    assert_eq!((remote.transport.kind(), address(&remote)), ("http", "http://a"));
}

#[test]
fn variables_that_other_hosts_name_become_headers_and_env() {
    let text = r#"{"servers": {
        "a": {"baseUrl": "http://a", "bearerTokenEnv": "TOKEN", "env_http_headers": {"X": "KEY"},
              "http_headers": {"Y": "1"}},
        "b": {"command": "x", "env": {"KEY": "own"}, "env_vars": ["KEY", {"name": "TOKEN"}]}}}"#;
    let config = load_with(text, &[("TOKEN", "t"), ("KEY", "k")]).unwrap();
    let TransportConfig::Http { headers, .. } = &config.servers["a"].transport else { panic!() };
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(headers, [("Y", "1"), ("Authorization", "Bearer t"), ("X", "k")]);
    let TransportConfig::Stdio { env, .. } = &config.servers["b"].transport else { panic!() };
    let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, [("KEY", "own"), ("TOKEN", "t")]);
}

#[test]
fn an_unknown_restriction_is_an_error_and_not_a_warning() {
    for key in ["toolFilter", "toolsDenied", "allowed_tool_names", "blockedToolNames"] {
        let text = format!(r#""command": "x", "{key}": ["a"]"#);
        assert!(server(&text).is_err(), "{key}");
    }
    assert!(server(r#""command": "x", "sandboxEnabled": true"#).is_err());
    assert!(server(r#""command": "x", "sandboxEnabled": false, "toolchain": "a""#).is_ok());
}

#[test]
fn servers_are_found_where_other_programs_have_them() {
    for text in [
        r#"{"amp.mcpServers": {"a": {"command": "x"}}}"#,
        r#"{"mcpServers": [{"name": "a", "command": "x"}]}"#,
        r#"{"customizations": {"vscode": {"mcp": {"servers": {"a": {"command": "x"}}}}}}"#,
        r#"{"mcp": {"servers": {"a": {"command": "x"}}}}"#,
    ] {
        assert!(load(text).unwrap().servers.contains_key("a"), "{text}");
    }
    let text = r#"{"mcpServers": [{"command": "x"}]}"#;
    assert!(diagnostics(text).contains("mcpServers[0]: expected an object with a `name`"));
}

#[test]
fn servers_that_gemini_turns_off_stay_off() {
    let text = r#"{"mcp": {"excluded": ["a"], "allowed": ["a", "b"]},
        "mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "c": {"command": "z"}}}"#;
    let config = load(text).unwrap();
    assert_eq!(config.servers.keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(config.disabled.keys().collect::<Vec<_>>(), ["a", "c"]);
}

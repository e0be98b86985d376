//! Tests of the messages: every kind of problem with its position.

use insta::assert_snapshot;

use super::{diagnostics, server_diagnostics};

/// Proves: FR1.7, TR8.2
#[test]
fn a_wrong_type_is_reported_with_line_column_and_key() {
    let text = r#"{
  // where the files are
  "servers": {
    "fs": {
      "command": "npx",
      "args": [
        "-y", 5
      ]
    }
  }
}"#;
    assert_snapshot!(diagnostics(text), @"mcp.json:7:15 servers.fs.args[1]: expected string");
}

#[test]
fn every_problem_is_reported_at_once_and_in_the_order_of_the_file() {
    let text = r#"{
  "servers": {
    "fs": {
      "args": [1, "${ROOT_DIR}"],
      "command": true,
      "timeout": -1,
      "dependencies": ["gti"]
    },
    "git": {"type": "htp", "command": "git-server"}
  },
  "hots": {}
}"#;
    assert_snapshot!(diagnostics(text), @"
    mcp.json:4:16 servers.fs.args[0]: expected string
    mcp.json:4:19 servers.fs.args[1]: variable `ROOT_DIR` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${ROOT_DIR:-default}`
    mcp.json:5:18 servers.fs.command: expected string
    mcp.json:6:18 servers.fs.timeout: expected 0.001 or more
    mcp.json:7:24 servers.fs.dependencies[0]: no server `gti`
        hint: did you mean `git`?
    mcp.json:9:21 servers.git.type: expected `stdio`, `http`, `sse`, `websocket` or `in-process`
    mcp.json:11:3 hots: unknown key
        hint: did you mean `host`?
    ");
}

#[test]
fn each_type_has_its_message() {
    let text = r#""command": 1, "args": "a", "env": [], "headers": 1, "inheritEnv": "yes",
"maxConcurrent": 1.5, "timeout": "30s", "tools": 1, "restart": "always", "retry": 1, "oauth": null,
"dependencies": {"a": 1}, "limits": {"memory": true}"#;
    assert_snapshot!(server_diagnostics(text), @"
    mcp.json:1:32 servers.fs.command: expected string
    mcp.json:1:43 servers.fs.args: expected array
        hint: write a list with one element per argument: `[\"-y\", \"package\"]`
    mcp.json:1:55 servers.fs.env: expected object
    mcp.json:1:59 servers.fs.headers: not supported for server type `stdio`
    mcp.json:1:70 servers.fs.headers: expected object
    mcp.json:1:87 servers.fs.inheritEnv: expected `false`, `true` or `strict`
    mcp.json:2:18 servers.fs.maxConcurrent: expected integer
    mcp.json:2:34 servers.fs.timeout: expected number
        hint: write the number of seconds: `30`
    mcp.json:2:50 servers.fs.tools: expected object
    mcp.json:2:64 servers.fs.restart: expected `never` or object
    mcp.json:2:83 servers.fs.retry: expected object
    mcp.json:2:86 servers.fs.oauth: not supported for server type `stdio`
    mcp.json:2:95 servers.fs.oauth: expected object
    mcp.json:3:17 servers.fs.dependencies: expected array
    mcp.json:3:48 servers.fs.limits.memory: expected string or integer
    ");
}

#[test]
fn numbers_out_of_range_are_reported_with_the_bound() {
    let text = r#""command": "x", "timeout": 0, "initTimeout": 86401, "shutdownTimeout": 60000000000,
"maxConcurrent": 0, "unavailableAfterTimeouts": 1001, "restart": {"onFailure": {"max": 0}},
"retry": {"max": 11}, "cache": {"ttl": -0.5, "maxBytes": "1 B"}, "limits": {"memory": "1000000 GB",
"cpuSeconds": 0, "openFiles": 15}"#;
    assert_snapshot!(server_diagnostics(text), @"
    mcp.json:1:48 servers.fs.timeout: expected 0.001 or more
    mcp.json:1:66 servers.fs.initTimeout: expected 86400 or less
        hint: the unit is seconds; write `86.401` for 86401 milliseconds
    mcp.json:1:92 servers.fs.shutdownTimeout: expected 86400 or less
    mcp.json:2:18 servers.fs.maxConcurrent: expected 1 or more
    mcp.json:2:49 servers.fs.unavailableAfterTimeouts: expected 1000 or less
    mcp.json:2:88 servers.fs.restart.onFailure.max: expected 1 or more
    mcp.json:3:18 servers.fs.retry.max: expected 10 or less
    mcp.json:3:40 servers.fs.cache.ttl: expected 0 or more
    mcp.json:3:58 servers.fs.cache.maxBytes: expected a size from 1 KiB to 1 TiB
    mcp.json:3:87 servers.fs.limits.memory: expected a size from 1 KiB to 1 TiB
    mcp.json:4:15 servers.fs.limits.cpuSeconds: expected 1 or more
    mcp.json:4:31 servers.fs.limits.openFiles: expected 16 or more
    ");
}

#[test]
fn nested_values_are_reported_by_the_alternative_that_was_meant() {
    let text = r#""command": "x", "restart": {"onFailure": {}}, "env": {"A": ["x"], "B": "${NO}"},
"limits": {"memory": "5 parsecs"}"#;
    assert_snapshot!(server_diagnostics(text), @"
    mcp.json:1:62 servers.fs.restart.onFailure.max: missing
    mcp.json:1:80 servers.fs.env.A: expected string, number, boolean or null
    mcp.json:1:92 servers.fs.env.B: variable `NO` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${NO:-default}`
    mcp.json:2:22 servers.fs.limits.memory: expected a size such as `512 MiB`
    ");
    assert_snapshot!(server_diagnostics(r#""command": "x", "restart": {"onFail": 1}"#), @"
    mcp.json:1:48 servers.fs.restart.onFailure: missing
    mcp.json:1:59 servers.fs.restart.onFail: unknown key
        hint: did you mean `onFailure`?
    ");
}

#[test]
fn text_that_is_not_json_is_reported_with_the_position_of_the_error() {
    let texts = [
        "",
        "// nothing",
        "[]",
        "{\"servers\": {}} {}",
        "{\"servers\": {\"a\": 1 \"b\": 2}}",
        "{\"servers\": [[1] [2]]}",
        "{'servers': {}}",
        "{servers: {}}",
        "{\"servers\": {\"a\": {\"command\": \"x\ny\"}}}",
        "{\"servers\": {\"a\": {\"command\": \"npx,\n \"args\": []}}}",
        "{\"servers\": {\"a\": {\"command\": \"x\ty\"}}}",
        "{\"servers\": {\"a\": {\"command\": \"x}}}",
        "{\"servers\": {\"a\": {\"command\": \"C:\\dir\"}}}",
        "{\"servers\": {\"a\": 0x10}}",
        "{\"servers\": {\"a\": NaN}}",
        "{\"servers\": {\"a\": {}",
        "{\"servers\": /* ",
        "{\"servers\": {\"a\": 1e999}}",
    ];
    let all: Vec<String> = texts.iter().map(|text| diagnostics(text)).collect();
    assert_snapshot!(all.join("\n"), @r#"
    mcp.json:1:1: the file is empty
        hint: write `{"servers": {}}`
    mcp.json:1:1: the file is empty
        hint: write `{"servers": {}}`
    mcp.json:1:1: expected object
        hint: write one object: `{"servers": {…}}`
    mcp.json:1:17: text after the end of the configuration
    mcp.json:1:20: expected a comma
    mcp.json:1:17: expected a comma
    mcp.json:1:2: a string must be in double quotes
    mcp.json:1:2: a key must be in double quotes
    mcp.json:1:31: this string is not closed on its line
    mcp.json:1:31: this string is not closed on its line
    mcp.json:1:31 servers.a.command: contains whitespace; the whole string is used as program name
        hint: move the arguments to `args`
    mcp.json:1:33 servers.a.command: a control character in a string must be escaped
    mcp.json:1:31: missing closing double quote
    mcp.json:1:34: invalid JSON escape; write a backslash as `\\`
    mcp.json:1:19: not a JSON number
    mcp.json:1:19: expected a value
    mcp.json:1:13: missing `}` of this object
    mcp.json:1:13: missing `*/` of this comment
    mcp.json:1:19 servers.a: the number is out of range
    mcp.json:1:19 servers.a: expected object
    "#);
}

#[test]
fn columns_are_counted_in_characters() {
    let text =
        "\u{feff}{\"servers\": {\"ä\u{200b}\": 1, \"fs\": {\"command\": \"müßig\", \"args\": 5}}}";
    assert_snapshot!(diagnostics(text), @r#"
    mcp.json:1:14 servers["ä\u{200b}"]: the server name contains invisible characters
        hint: use 1 to 128 visible characters
    mcp.json:1:58 servers.fs.args: expected array
    "#);
}

#[test]
fn an_unknown_key_is_a_warning_with_the_key_that_was_meant() {
    let text = r#""command": "x", "comand": "y", "Args": [], "max_concurrent": 1, "zzz": 1,
"cache": {"tll": 1}, "alwaysAllow": []"#;
    assert_snapshot!(server_diagnostics(text), @"
    mcp.json:1:37 servers.fs.comand: unknown key
        hint: did you mean `command`?
    mcp.json:1:52 servers.fs.Args: unknown key
        hint: did you mean `args`?
    mcp.json:1:64 servers.fs.max_concurrent: unknown key
        hint: did you mean `maxConcurrent`?
    mcp.json:1:85 servers.fs.zzz: unknown key
    mcp.json:2:11 servers.fs.cache.tll: unknown key
        hint: did you mean `ttl`?
    mcp.json:2:22 servers.fs.alwaysAllow: not supported by this host; ignored
    ");
}

#[test]
fn a_transport_needs_its_keys_and_has_no_use_for_others() {
    let text = r#"{"servers": {
  "none": {},
  "both": {"command": "x", "url": "http://a"},
  "stdio": {"type": "stdio", "url": "http://a"},
  "sse": {"type": "sse", "command": "x", "args": ["${UNSET}"]},
  "ftp": {"url": "ftp://a"},
  "socket": {"type": "websocket", "url": "https://a"},
  "host": {"url": "https:///mcp"},
  "space": {"url": "https://a b"},
  "blank": {"command": " "},
  "line": {"command": "npx -y server"},
  "local": {"url": "unix:///run/a.sock#mcp"},
  "issuer": {"url": "https://a", "oauth": {"issuer": "https://b"}},
  "path": {"command": "/opt/My Files/server"}
}}"#;
    assert_snapshot!(diagnostics(text), @r#"
    mcp.json:2:11 servers.none: has neither `command` nor `url`
    mcp.json:3:11 servers.both: has both `command` and `url`
        hint: set `"type": "stdio"` or `"type": "http"`
    mcp.json:4:12 servers.stdio: server type `stdio` needs a `command`
    mcp.json:4:30 servers.stdio.url: not supported for server type `stdio`
    mcp.json:5:10 servers.sse.url: missing; required for server type `sse`
    mcp.json:5:26 servers.sse.command: not supported for server type `sse`
    mcp.json:5:42 servers.sse.args: not supported for server type `sse`
    mcp.json:6:18 servers.ftp.url: expected `http://` or `https://`
    mcp.json:7:42 servers.socket.url: expected `ws://` or `wss://`
    mcp.json:8:19 servers.host.url: not a valid URL
    mcp.json:9:20 servers.space.url: not a valid URL
    mcp.json:10:24 servers.blank.command: is empty
    mcp.json:11:23 servers.line.command: contains whitespace; the whole string is used as program name
        hint: move the arguments to `args`
    mcp.json:12:20 servers.local.url: the request path must start with `/`: `unix:///socket#/path`
    mcp.json:13:54 servers.issuer.oauth.issuer: needs a `clientId`
    "#);
}

#[test]
fn at_least_one_server_starts_at_a_time() {
    let text = r#"{"host": {"concurrentStarts": 0}, "servers": {"a": {"command": "x"}}}"#;
    assert_snapshot!(diagnostics(text), @"mcp.json:1:31 host.concurrentStarts: expected 1 or more");
}

#[test]
fn a_time_with_a_unit_gets_the_number_of_seconds_as_a_hint() {
    for (text, seconds) in
        [("30s", "30"), ("1500ms", "1.5"), ("2 min", "120"), ("1h", "3600"), ("0.5", "0.5")]
    {
        let file = format!(r#"{{"servers": {{"a": {{"command": "x", "timeout": "{text}"}}}}}}"#);
        let hint = format!("hint: write the number of seconds: `{seconds}`");
        assert!(diagnostics(&file).contains(&hint), "{}", diagnostics(&file));
    }
    let file = r#"{"servers": {"a": {"command": "x", "timeout": "soon"}}}"#;
    assert!(!diagnostics(file).contains("hint"));
}

//! The words: every kind of problem as it is told, at its place.

use insta::assert_snapshot;

use super::{told, told_of_server};

/// Proves: FR1.7, TR8.2
#[test]
fn a_wrong_type_is_told_with_line_column_and_key() {
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
    assert_snapshot!(told(text), @"");
}

#[test]
fn every_problem_is_told_at_once_and_in_the_order_of_the_file() {
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
    assert_snapshot!(told(text), @"");
}

#[test]
fn each_type_has_its_words() {
    let text = r#""command": 1, "args": "a", "env": [], "headers": 1, "inheritEnv": "yes",
"maxConcurrent": 1.5, "timeout": "30s", "tools": 1, "restart": "always", "retry": 1, "oauth": null,
"dependencies": {"a": 1}, "limits": {"memory": true}"#;
    assert_snapshot!(told_of_server(text), @"");
}

#[test]
fn numbers_out_of_range_are_told_with_the_bound() {
    let text = r#""command": "x", "timeout": 0, "initTimeout": 86401, "shutdownTimeout": 60000000000,
"maxConcurrent": 0, "unavailableAfterTimeouts": 1001, "restart": {"onFailure": {"max": 0}},
"retry": {"max": 11}, "cache": {"ttl": -0.5, "maxBytes": "1 B"}, "limits": {"memory": "1000000 GB",
"cpuSeconds": 0, "openFiles": 15}"#;
    assert_snapshot!(told_of_server(text), @"");
}

#[test]
fn nested_values_are_told_by_the_part_that_was_meant() {
    let text = r#""command": "x", "restart": {"onFailure": {}}, "env": {"A": ["x"], "B": "${NO}"},
"limits": {"memory": "5 parsecs"}"#;
    assert_snapshot!(told_of_server(text), @"");
    assert_snapshot!(told_of_server(r#""command": "x", "restart": {"onFail": 1}"#), @"");
}

#[test]
fn text_that_is_not_json_is_told_where_it_goes_wrong() {
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
        "{\"servers\": {\"a\": {\"command\": \"x}}}",
        "{\"servers\": {\"a\": {\"command\": \"C:\\dir\"}}}",
        "{\"servers\": {\"a\": 0x10}}",
        "{\"servers\": {\"a\": NaN}}",
        "{\"servers\": {\"a\": {}",
        "{\"servers\": /* ",
        "{\"servers\": {\"a\": 1e999}}",
    ];
    let all: Vec<String> = texts.iter().map(|text| told(text)).collect();
    assert_snapshot!(all.join("\n"), @"");
}

#[test]
fn columns_are_counted_in_characters() {
    let text = "\u{feff}{\"servers\": {\"ä\": 1, \"fs\": {\"command\": \"müßig\", \"args\": 5}}}";
    assert_snapshot!(told(text), @"");
}

#[test]
fn an_unknown_key_is_a_warning_with_the_key_that_was_meant() {
    let text = r#""command": "x", "comand": "y", "Args": [], "max_concurrent": 1, "zzz": 1,
"cache": {"tll": 1}, "alwaysAllow": []"#;
    assert_snapshot!(told_of_server(text), @"");
}

#[test]
fn keys_without_behaviour_say_so() {
    let text = r#"{
  "servers": {"fs": {"command": "x", "restart": "never", "sandbox": {"network": false}}},
  "host": {"cache": {"ttl": 1}}
}"#;
    assert_snapshot!(told(text), @"");
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
  "line": {"command": "npx -y server"}
}}"#;
    assert_snapshot!(told(text), @"");
}

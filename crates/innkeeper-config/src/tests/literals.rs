//! Tests of values that fail later: each problem with its line, key and hint.

use insta::assert_snapshot;

use super::{diagnostics, diagnostics_with, server_diagnostics};

#[test]
fn a_value_that_fails_later_is_reported_at_its_place() {
    let text = r#"{
  "servers": {
    "files": {
      "command": "~/bin/files-server",
      "args": ["$HOME/files", "~/notes", "--root=~/x", "/path/to/files", "sh $HOME"],
      "cwd": "~/work",
      "env": {"API_KEY": "YOUR_API_KEY_HERE", "TOKEN": "$API_TOKEN", "DATA": "${HOME}/data"},
      "dependsOn": ["web"]
    },
    "web": {
      "url": "https://a.example/mcp",
      "headers": {"Authorization": "Bearer <token>"}
    },
    "off": {"command": "~/x", "disabled": true}
  }
}"#;
    assert_snapshot!(diagnostics_with(text, &[("HOME", "/home/ada")]));
}

#[test]
fn a_wrong_type_names_the_type_that_was_meant() {
    for (spelling, transport) in [
        ("streamable", "http"),
        ("http-stream", "http"),
        ("https", "http"),
        ("http+sse", "sse"),
        ("wss", "websocket"),
        ("subprocess", "stdio"),
    ] {
        let problems = server_diagnostics(&format!(r#""url": "http://a", "type": "{spelling}""#));
        let hint = format!("hint: did you mean `{transport}`?");
        assert!(problems.contains(&hint), "{spelling}: {problems}");
    }
    let problems = server_diagnostics(r#""url": "http://a", "type": "carrier pigeon""#);
    assert!(!problems.contains("hint"), "{problems}");
}

#[test]
fn arguments_as_a_text_are_an_error_with_the_form_of_a_list() {
    let text = r#""command": "npx", "args": "-y package", "dependencies": "a""#;
    assert_snapshot!(server_diagnostics(text), @r#"
    mcp.json:1:47 servers.fs.args: expected array
        hint: write a list with one element per argument: `["-y", "package"]`
    mcp.json:1:77 servers.fs.dependencies: expected array
        hint: write a list: `"dependencies": ["…"]`
    "#);
}

#[test]
fn curly_quotation_marks_are_named() {
    assert_snapshot!(diagnostics("{\n  \u{201c}servers\u{201d}: {}\n}"), @r#"
    mcp.json:2:3: a curly quotation mark; JSON needs the straight mark `"`
        hint: replace every curly quotation mark of the file by `"`
    "#);
    let mixed = "{\"servers\u{201d}: {\u{201c}a\": {\"command\": \"x\"}}}";
    let problems = diagnostics(mixed);
    assert!(problems.contains("curly quotation marks"), "{problems}");
    let in_a_string = "{\"servers\": {\"a\": {\"command\": \"\u{201c}x\u{201d}\"}}} // \u{201c}";
    assert_eq!(diagnostics(in_a_string), "");
}

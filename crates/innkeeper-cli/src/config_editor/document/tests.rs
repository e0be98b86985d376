//! Tests of edits: what changes, and what stays byte for byte.

use innkeeper_host::config::server_names;
use serde_json::json;

use super::*;

const COMMENTED: &str = r#"// The servers of the team.
{
    "$schema": "./schema.json",
    "servers": {
        // Reads files.
        "files": { "command": "files-server", "args": ["-v"] }, // stays
        /* Old. */
        "notes": {
            "command": "notes-server",
            "disabled": true, // until Friday
            "env": { "A": "1" }
        },
    },
    "host": { "timeout": 5 }
}
"#;

fn edit(text: &str, change: impl FnOnce(&ConfigDocument)) -> String {
    let document = ConfigDocument::parse(text).unwrap();
    change(&document);
    document.to_text()
}

fn definition(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Returns the lines that differ, as a diff.
fn diff(before: &str, after: &str) -> String {
    let (mut old, mut new) = (before.lines().peekable(), after.lines().peekable());
    let mut lines = Vec::new();
    while old.peek().is_some() || new.peek().is_some() {
        if old.peek() == new.peek() {
            new.next();
            old.next();
            continue;
        }
        let remaining: Vec<_> = old.clone().collect();
        match new.peek() {
            Some(line) if !remaining.contains(line) => {
                lines.push(format!("+{line}"));
                new.next();
            }
            _ => lines.extend(old.next().map(|line| format!("-{line}"))),
        }
    }
    lines.join("\n")
}

#[test]
fn an_unchanged_text_stays_byte_for_byte() {
    for text in [COMMENTED, "\u{feff}{\"mcpServers\": {}}", "{\r\n\t\"servers\": {\r\n\t}\r\n}"] {
        assert_eq!(edit(text, |_| ()), text);
    }
}

#[test]
fn a_server_is_added_at_the_end_in_the_style_of_the_file() {
    let server = definition(&json!({
        "command": "npx", "args": ["-y", "weather"], "env": {"KEY": "${KEY}"}
    }));
    let after = edit(COMMENTED, |document| document.set_server("weather", &server));
    insta::assert_snapshot!(diff(COMMENTED, &after));
}

#[test]
fn a_new_file_and_a_file_of_another_host_get_a_server_under_their_key() {
    let server = definition(&json!({"url": "https://a.example/mcp"}));
    let new = edit(EMPTY_CONFIG, |document| document.set_server("a", &server));
    insta::assert_snapshot!(new);
    let foreign = edit("{\"mcpServers\": {\"b\": {}}}", |document| {
        document.set_server("a", &server);
    });
    insta::assert_snapshot!(foreign);
    let without_servers = edit("{\n  \"host\": {}\n}\n", |document| {
        document.set_server("a", &server);
    });
    insta::assert_snapshot!(without_servers);
}

#[test]
fn a_replaced_server_keeps_its_place() {
    let server = definition(&json!({"command": "other"}));
    let after = edit(COMMENTED, |document| document.set_server("files", &server));
    insta::assert_snapshot!(diff(COMMENTED, &after));
}

#[test]
fn a_removed_server_takes_its_lines_and_nothing_else() {
    let after = edit(COMMENTED, |document| assert!(document.remove_server("notes")));
    insta::assert_snapshot!(diff(COMMENTED, &after));
    let document = ConfigDocument::parse(COMMENTED).unwrap();
    assert!(!document.remove_server("none"));
    assert_eq!(document.to_text(), COMMENTED);
}

#[test]
fn a_server_is_disabled_and_enabled_again() {
    let disabled = edit(COMMENTED, |document| {
        assert_eq!(document.set_disabled("files", true), Some(true));
        assert_eq!(document.set_disabled("notes", true), Some(false));
        assert_eq!(document.set_disabled("none", true), None);
    });
    insta::assert_snapshot!(diff(COMMENTED, &disabled));
    let enabled = edit(COMMENTED, |document| {
        assert_eq!(document.set_disabled("notes", false), Some(true));
        assert_eq!(document.set_disabled("files", false), Some(false));
    });
    insta::assert_snapshot!(diff(COMMENTED, &enabled));
}

#[test]
fn the_key_of_another_host_for_a_disabled_server_stays() {
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"enabled\": false}}}";
    let after = edit(text, |document| assert_eq!(document.set_disabled("a", false), Some(true)));
    assert_eq!(after, text.replace("false", "true"));
    let after = edit(&after, |document| assert_eq!(document.set_disabled("a", true), Some(true)));
    assert_eq!(after, text);
}

#[test]
fn a_server_is_added_where_the_loader_finds_the_servers() {
    let server = definition(&json!({"command": "b"}));
    for text in [
        r#"{"files": {"command": "true"}, "notes": {"httpUrl": "https://a.example"}}"#,
        r#"{"editor.tabSize": 2, "mcp": {"inputs": [], "servers": {"files": {"command": "true"}}}}"#,
        r#"{"editor.tabSize": 2, "mcp.servers": {"files": {"command": "true"}}}"#,
        r#"{"mcpServers": {"files": {"command": "true"}}}"#,
        r#"{"servers": {"files": {"command": "true"}}, "extra": {"command": "true"}}"#,
        r#"{"host": {}}"#,
    ] {
        let mut expected = server_names(text);
        let after = edit(text, |document| document.set_server("new", &server));
        expected.push("new".to_owned());
        assert_eq!(server_names(&after), expected, "{after}");
        let restored = edit(&after, |document| assert!(document.remove_server("new")));
        expected.pop();
        assert_eq!(server_names(&restored), expected, "{restored}");
    }
}

#[test]
fn a_server_with_both_keys_keeps_the_key_of_this_host() {
    let text = r#"{"servers": {"a": {"command": "x", "disabled": true, "enabled": true}}}"#;
    for disabled in [true, false] {
        let after = edit(text, |document| {
            assert_eq!(document.set_disabled("a", disabled), Some(true));
        });
        let server = serde_json::from_str::<Value>(&after).unwrap()["servers"]["a"].clone();
        assert_eq!(server, json!({"command": "x", "disabled": disabled}));
    }
}

#[test]
fn a_key_that_disable_added_is_removed_by_enable() {
    for server in [
        "{\n      \"command\": \"x\"\n    }",
        r#"{ "command": "x", "args": ["-v"] }"#,
        r#"{"command": "x"}"#,
    ] {
        let text = format!("{{\n  \"servers\": {{\n    \"a\": {server}\n  }}\n}}\n");
        let disabled = edit(&text, |document| {
            assert_eq!(document.set_disabled("a", true), Some(true));
        });
        assert!(disabled.contains(", \"disabled\": true") || server.contains('\n'), "{disabled}");
        let enabled = edit(&disabled, |document| {
            assert_eq!(document.set_disabled("a", false), Some(true));
        });
        assert_eq!(enabled, text, "{disabled}");
    }
}

#[test]
fn a_text_that_is_no_configuration_is_an_error() {
    for text in [
        "",
        "[]",
        "{",
        "{'a': 1}",
        "{\"servers\": []}",
        "{\"mcpServers\": 1}",
        "{\"mcp.servers\": 1}",
    ] {
        assert!(ConfigDocument::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_replaced_server_on_one_line_stays_on_one_line() {
    let server = definition(&json!({
        "command": "npx", "args": ["-y", "files"], "env": {"KEY": "${KEY}"}
    }));
    let after = edit(COMMENTED, |document| document.set_server("files", &server));
    insta::assert_snapshot!(diff(COMMENTED, &after), @r#"
    +        "files": { "command": "npx", "args": ["-y", "files"], "env": { "KEY": "${KEY}" } }, // stays
    -        "files": { "command": "files-server", "args": ["-v"] }, // stays
    "#);
    let narrow = "{\"servers\": {\n  \"a\": {\"command\": \"x\"}\n}}\n";
    let after = edit(narrow, |document| document.set_server("a", &server));
    assert!(
        after.contains(
            r#""a": {"command": "npx", "args": ["-y", "files"], "env": {"KEY": "${KEY}"}}"#
        ),
        "{after}"
    );
}

#[test]
fn a_map_of_servers_without_its_last_server_is_an_empty_configuration() {
    let map = "{\n  \"files\": { \"command\": \"x\" }\n}\n";
    let after = edit(map, |document| assert!(document.remove_server("files")));
    assert_eq!(after, "{\n  \"servers\": {}\n}\n");
    let config = "{ \"servers\": { \"files\": { \"command\": \"x\" } } }";
    let after = edit(config, |document| assert!(document.remove_server("files")));
    assert_eq!(serde_json::from_str::<Value>(&after).unwrap(), json!({"servers": {}}));
}

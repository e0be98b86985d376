//! Tests of edits: what changes, and what stays byte for byte.

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
fn a_text_that_is_no_configuration_is_an_error() {
    for text in ["", "[]", "{", "{'a': 1}", "{\"servers\": []}", "{\"mcpServers\": 1}"] {
        assert!(ConfigDocument::parse(text).is_err(), "{text}");
    }
}

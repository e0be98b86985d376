//! Tests of whole files: supported structures, samples of the requirements and of VS Code.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::json;

use super::{MISSING_DIR, args, diagnostics, load, load_with};
use crate::Config;
use crate::settings::server::TransportConfig;
use crate::variables::environment::Environment;

/// The sample of the requirements, with an existing package for the second server.
const SAMPLE: &str = r#"{
  "servers": {
    "filesystem": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/files/"]
    },
    "brave-search": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "@brave/brave-search-mcp-server"],
      "env": {
        "BRAVE_API_KEY": "${BRAVE_API_KEY}"
      }
    }
  }
}"#;

/// Proves: N3
#[test]
fn the_sample_of_the_requirements_loads_without_warnings() {
    let config = load_with(SAMPLE, &[("BRAVE_API_KEY", "key")]).unwrap();
    assert_eq!(config.warnings, []);
    assert_eq!(config.servers.keys().collect::<Vec<_>>(), ["filesystem", "brave-search"]);
    let TransportConfig::Stdio { env, .. } = &config.servers["brave-search"].transport else {
        panic!("not stdio");
    };
    assert_eq!(env["BRAVE_API_KEY"].expose(), "key");
}

/// Proves: TR8.3
#[test]
fn a_missing_variable_refuses_the_whole_file() {
    assert_snapshot!(diagnostics(SAMPLE), @"
    mcp.json:13:26 servers.brave-search.env.BRAVE_API_KEY: variable `BRAVE_API_KEY` is not set
        hint: set the variable, add it to `.env` beside the file, or write `${BRAVE_API_KEY:-default}`
    ");
}

/// Proves: FR1.1, FR1.5
#[test]
fn a_file_of_vs_code_loads_with_comments_commas_and_its_own_keys() {
    let text = r#"// .vscode/mcp.json
{
  /* asked for once */
  "inputs": [{"type": "promptString", "id": "key", "password": true}],
  "servers": {
    "playwright": {
      "command": "npx",
      "args": ["-y", "@playwright/mcp@latest",],
      "cwd": "${workspaceFolder}/web",
      "dev": {"watch": "src/**/*.ts"},
    },
    "github": {"type": "http", "url": "https://api.example.com/mcp/"},
    "old": {"type": "sse", "url": "http://localhost:3001/sse", "headers": {"X-Key": "${env:KEY}"}},
  },
}"#;
    let config = load_with(text, &[("KEY", "k")]).unwrap();
    let kinds: Vec<_> = config.servers.values().map(|server| server.transport.kind()).collect();
    assert_eq!(kinds, ["stdio", "http", "sse"]);
    let TransportConfig::Stdio { cwd, .. } = &config.servers["playwright"].transport else {
        panic!("not stdio");
    };
    let cwd = cwd.as_ref().unwrap();
    assert_eq!(cwd.expose(), &Path::new(MISSING_DIR).join("web"));
    assert_eq!(cwd.to_string(), "${workspaceFolder}/web");
    let keys: Vec<_> = config.warnings.iter().map(|problem| problem.key.as_str()).collect();
    let expected = ["inputs", "servers.playwright.dev"];
    assert_eq!(keys, expected);
}

#[test]
fn servers_stand_under_either_key_or_both_or_in_settings_or_alone() {
    for (text, names) in [
        (r#"{"servers": {"a": {"command": "x"}}}"#, json!(["a"])),
        (r#"{"mcpServers": {"a": {"command": "x"}}}"#, json!(["a"])),
        (
            r#"{"servers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "y"}}}"#,
            json!(["a", "b"]),
        ),
        (r#"{"editor.tabSize": 2, "mcp": {"servers": {"a": {"command": "x"}}}}"#, json!(["a"])),
        (r#"{"mcp.servers": {"a": {"command": "x"}}}"#, json!(["a"])),
        (r#"{"a": {"command": "x"}, "b": {"command": "y"}}"#, json!(["a", "b"])),
        (r#"{"servers": {}}"#, json!([])),
    ] {
        let config = load(text).unwrap();
        assert_eq!(json!(config.servers.keys().collect::<Vec<_>>()), names, "{text}");
        assert_eq!(config.warnings, [], "{text}");
    }
}

#[test]
fn other_keys_of_a_settings_file_are_not_reported() {
    let text = r#"{"theme": "dark", "mcpServers": {"a": {"command": "x"}}}"#;
    let read = |name| {
        Config::from_text(text, name, Path::new(MISSING_DIR), &Environment::default()).unwrap()
    };
    assert_eq!(read("home/.gemini/settings.json").warnings, []);
    assert_eq!(read("mcp.json").warnings.len(), 1);
}

#[test]
fn a_file_without_servers_is_refused() {
    let texts = ["{}", r#"{"server": {"a": {"command": "x"}}}"#, r#"{"servers": []}"#, "7"];
    let all: Vec<String> = texts.iter().map(|text| diagnostics(text)).collect();
    assert_snapshot!(all.join("\n"), @r#"
    mcp.json:1:1 servers: missing
        hint: put the servers into `servers` or `mcpServers`
    mcp.json:1:1 servers: missing
        hint: put the servers into `servers` or `mcpServers`
    mcp.json:1:2 server: unknown key
        hint: did you mean `servers`?
    mcp.json:1:13 servers: expected object
    mcp.json:1:1: expected object
        hint: write one object: `{"servers": {…}}`
    "#);
}

#[test]
fn a_value_of_an_application_is_read_without_lines() {
    let environment = Environment::from_pairs([("A", "1")]);
    let read = |value| Config::from_value(&value, "config", Path::new(MISSING_DIR), &environment);
    let config = read(json!({"servers": {"a": {"command": "x", "args": ["${A}"]}}})).unwrap();
    assert_eq!(args(&config.servers["a"]), ["1"]);
    let error = read(json!({"servers": {"a": {"command": "x", "args": [1]}}})).unwrap_err();
    assert_snapshot!(error, @"config servers.a.args[0]: expected string");
}

#[test]
fn top_level_keys_without_a_meaning_are_kept() {
    let text = r#"{"x-team": {"name": "search"}, "servers": {}, "x-area": 1}"#;
    let config = load(text).unwrap();
    assert_eq!(config.extra.get("x-team"), Some(&json!({"name": "search"})));
    assert_eq!(config.extra.keys().collect::<Vec<_>>(), ["x-team", "x-area"]);
}

#[test]
fn an_error_lists_the_errors_only_and_keeps_the_warnings() {
    let error = load(r#"{"servers": {"a": {"command": 1, "comand": "x"}}}"#).unwrap_err();
    assert_eq!(error.0.len(), 2);
    assert_eq!(error.to_string(), "mcp.json:1:31 servers.a.command: expected string");
}

#[test]
fn comments_may_hold_quotes_and_stand_beside_each_other() {
    for text in [
        "{/*/ say \"hi\n*/ \"servers\": {}}",
        "/* a *//* b\n \"c\n*/ {\"servers\": {}}",
        "{\"servers\": {} /**/ /***/}",
        "{\"servers\": {} // \"\n}",
    ] {
        assert!(load(text).is_ok(), "{text}");
    }
}

#[test]
fn a_zero_with_a_sign_is_zero() {
    for zero in ["-0", "-0.0", "0.0", "-0e3"] {
        let text =
            format!(r#"{{"servers": {{"a": {{"command": "x", "retry": {{"max": {zero}}}}}}}}}"#);
        assert!(load(&text).is_ok(), "{zero}");
    }
}

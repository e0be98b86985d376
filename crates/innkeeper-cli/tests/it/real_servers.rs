//! Published MCP servers, started offline; `cargo xtask test` puts them under `target`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::run;

/// Where the test command installs published servers.
fn installed() -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-servers");
    assert!(home.is_dir(), "no published servers here: run `cargo xtask test` once");
    home
}

fn npm(package: &str, args: &[&str]) -> Value {
    let main = installed().join("npm/node_modules").join(package).join("dist/index.js");
    assert!(main.is_file(), "`{package}` is not installed");
    let mut all = vec![main.to_str().expect("a path in UTF-8").to_owned()];
    all.extend(args.iter().map(|arg| (*arg).to_owned()));
    json!({ "command": "node", "args": all })
}

fn python(program: &str) -> Value {
    json!({ "command": installed().join("venv/bin").join(program) })
}

fn with_key(mut server: Value) -> Value {
    server["env"] = json!({ "BRAVE_API_KEY": "dummy" });
    server
}

/// Runs `tools --json` over these servers; everything must end well.
fn tools(servers: &Value) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let text = json!({ "host": { "initTimeout": 60 }, "servers": servers }).to_string();
    std::fs::write(folder.path().join("mcp.json"), text).unwrap();
    let output = run_with_path(folder.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn run_with_path(folder: &Path) -> std::process::Output {
    run_verb(&["tools", "--json"], folder)
}

fn run_verb(verb: &[&str], folder: &Path) -> std::process::Output {
    #[expect(clippy::disallowed_methods, reason = "node is found where the tests find it")]
    let path = std::env::var("PATH").unwrap();
    let state = folder.join("state");
    crate::program::innkeeper(verb, folder)
        .env("PATH", path)
        .env("XDG_STATE_HOME", state)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

fn tool<'a>(told: &'a Value, server: &str, name: &str) -> &'a Value {
    let tools = told["servers"][server]["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no `{name}`"))
}

/// Proves: N31, TR7.2
#[test]
fn the_acceptance_test_finds_both_servers_with_their_tools_parameters_and_types() {
    let allowed = tempfile::tempdir().unwrap();
    let folder = allowed.path().to_str().unwrap();
    let told = tools(&json!({
        "filesystem": npm("@modelcontextprotocol/server-filesystem", &[folder]),
        "brave-search": with_key(npm("@brave/brave-search-mcp-server", &[])),
    }));
    let count = |server: &str| told["servers"][server]["tools"].as_array().unwrap().len();
    assert_eq!((count("filesystem"), count("brave-search")), (14, 8));
    let read = &tool(&told, "filesystem", "read_text_file")["inputSchema"];
    assert_eq!(read["properties"]["path"]["type"], "string");
    assert_eq!(read["required"], json!(["path"]));
    let write = &tool(&told, "filesystem", "write_file")["inputSchema"];
    assert_eq!(write["properties"]["content"]["type"], "string");
    let search = &tool(&told, "brave-search", "brave_web_search")["inputSchema"];
    assert_eq!(search["properties"]["query"]["type"], "string");
    assert!(search["required"].as_array().unwrap().contains(&json!("query")));
}

/// Proves: TR1.5
#[test]
fn servers_of_both_eras_and_of_npm_and_pypi_are_ready_with_the_right_revision() {
    let told = tools(&json!({
        "everything": npm("@modelcontextprotocol/server-everything", &[]),
        "memory": npm("@modelcontextprotocol/server-memory", &[]),
        "thinking": npm("@modelcontextprotocol/server-sequential-thinking", &[]),
        "brave": with_key(npm("@modelcontextprotocol/server-brave-search", &[])),
        "git": python("mcp-server-git"),
        "time": python("mcp-server-time"),
        "fetch": python("mcp-server-fetch"),
    }));
    // `everything` offers one more once it has been told that the client is initialized.
    for (server, revision, tools) in [
        ("everything", "2025-11-25", 13),
        ("memory", "2025-11-25", 9),
        ("thinking", "2025-11-25", 1),
        ("brave", "2024-11-05", 2),
        ("git", "2026-07-28", 12),
        ("time", "2026-07-28", 2),
        ("fetch", "2026-07-28", 1),
    ] {
        let told = &told["servers"][server];
        assert_eq!(told["state"], "ready", "{server}");
        assert_eq!(told["protocolVersion"], revision, "{server}");
        assert_eq!(told["tools"].as_array().unwrap().len(), tools, "{server}");
        assert!(told["serverInfo"]["name"].is_string(), "{server}");
    }
    assert_eq!(told["servers"]["everything"]["prompts"].as_array().unwrap().len(), 4);
    assert_eq!(told["servers"]["everything"]["resourceTemplates"].as_array().unwrap().len(), 2);
}

#[test]
fn a_tool_that_only_works_as_a_task_is_called_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let server = npm("@modelcontextprotocol/server-everything", &[]);
    let text = json!({ "host": { "initTimeout": 60 }, "servers": { "all": server } }).to_string();
    std::fs::write(folder.path().join("mcp.json"), text).unwrap();
    let call = ["call", "all.simulate-research-query", "topic=inns", "--json"];
    let output = run_verb(&call, folder.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = result["content"][0]["text"].as_str().unwrap();
    assert!(report.starts_with("# Research Report: inns"), "{report}");
}

#[test]
fn a_server_without_its_key_fails_in_its_own_words_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = npm("@modelcontextprotocol/server-brave-search", &[]);
    // No time for a second launch.
    server["initTimeout"] = json!(4);
    let text = json!({ "servers": { "brave": server } }).to_string();
    std::fs::write(folder.path().join("mcp.json"), text).unwrap();
    let output = run_with_path(folder.path());
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("BRAVE_API_KEY environment variable is required"), "{said}");
    assert!(said.contains("exit code 1"), "{said}");
}

#[test]
fn a_configuration_in_the_folder_is_found_without_being_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = run(&["graph"], folder.path());
    assert_eq!(missing.status.code(), Some(2));
    std::fs::create_dir(folder.path().join(".vscode")).unwrap();
    let text = json!({ "servers": { "a": { "command": "a" } } }).to_string();
    std::fs::write(folder.path().join(".vscode/mcp.json"), text).unwrap();
    let found = run(&["graph"], folder.path());
    assert_eq!(String::from_utf8_lossy(&found.stdout), "wave 1: a\n");
}

//! Tests with published MCP servers, offline; `cargo xtask test` installs the servers in `target`.

use std::path::{Path, PathBuf};

use innkeeper_testkit::{recorded_form, recorded_tools};
use serde_json::{Value, json};

use crate::program::run;

/// Returns the directory of the installed servers and package runners.
pub(crate) fn install_dir() -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-servers");
    assert!(home.is_dir(), "no published servers here: run `cargo xtask test` once");
    home
}

fn npm_server(package: &str, args: &[&str]) -> Value {
    let main = install_dir().join("npm/node_modules").join(package).join("dist/index.js");
    assert!(main.is_file(), "`{package}` is not installed");
    let mut all = vec![main.to_str().expect("a path in UTF-8").to_owned()];
    all.extend(args.iter().map(|arg| (*arg).to_owned()));
    json!({ "command": "node", "args": all })
}

fn python_server(program: &str) -> Value {
    json!({ "command": install_dir().join("venv/bin").join(program) })
}

fn with_api_key(mut server: Value) -> Value {
    server["env"] = json!({ "BRAVE_API_KEY": "dummy" });
    server
}

/// A directory with the configuration of these servers.
fn config_dir(servers: &Value) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = json!({ "host": { "initTimeout": 60 }, "servers": servers }).to_string();
    std::fs::write(dir.path().join("mcp.json"), text).unwrap();
    dir
}

/// Runs `tools --json` with these servers; the command must succeed.
fn list_tools(servers: &Value) -> Value {
    let dir = config_dir(servers);
    let output = run_tools(dir.path());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn run_tools(dir: &Path) -> std::process::Output {
    run_command(&["tools", "--json"], dir)
}

fn run_command(args: &[&str], dir: &Path) -> std::process::Output {
    #[expect(clippy::disallowed_methods, reason = "node is found where the tests find it")]
    let path = std::env::var("PATH").unwrap();
    let state = dir.join("state");
    crate::program::innkeeper(args, dir)
        .env("PATH", path)
        .env("XDG_STATE_HOME", state)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

/// Returns the line of each server's stop in the log of a command.
fn shutdown_lines(log: &Path) -> Vec<Value> {
    let log = std::fs::read_to_string(log).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == "shutdown").collect()
}

/// `crates/innkeeper-application` has the same test with fixture servers that list the recorded
/// tools.
///
/// Proves: N31, TR7.2
#[test]
fn the_acceptance_test_finds_the_recorded_tools_of_both_servers_and_both_stop_by_themselves() {
    let allowed = tempfile::tempdir().unwrap();
    let path = allowed.path().to_str().unwrap();
    let dir = config_dir(&json!({
        "filesystem": npm_server("@modelcontextprotocol/server-filesystem", &[path]),
        "brave-search": with_api_key(npm_server("@brave/brave-search-mcp-server", &[])),
    }));
    let line = "tools --json --log-level info --log-format json --log-file log";
    let output = run_command(&line.split(' ').collect::<Vec<_>>(), dir.path());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let listing: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (server, count) in [("filesystem", 14), ("brave-search", 8)] {
        let tools = listing["servers"][server]["tools"].as_array().unwrap();
        let recorded = recorded_tools(server);
        assert_eq!((tools.len(), recorded.as_array().unwrap().len()), (count, count), "{server}");
        for (tool, recorded) in tools.iter().zip(recorded.as_array().unwrap()) {
            assert_eq!(recorded_form(tool), *recorded, "{server}");
        }
    }
    let stops = shutdown_lines(&dir.path().join("log"));
    let mut stopped: Vec<&str> = stops.iter().filter_map(|line| line["server"].as_str()).collect();
    stopped.sort_unstable();
    assert_eq!(stopped, ["brave-search", "filesystem"], "{stops:?}");
    for line in &stops {
        // Another stage means that the host has forced the stop.
        assert_eq!((&line["stage"], &line["exit"]), (&json!("on-eof"), &json!("exit code 0")));
    }
}

/// Proves: TR1.5
#[test]
fn servers_of_both_eras_and_of_npm_and_pypi_are_ready_with_the_right_revision() {
    let listing = list_tools(&json!({
        "everything": npm_server("@modelcontextprotocol/server-everything", &[]),
        "memory": npm_server("@modelcontextprotocol/server-memory", &[]),
        "thinking": npm_server("@modelcontextprotocol/server-sequential-thinking", &[]),
        "brave": with_api_key(npm_server("@modelcontextprotocol/server-brave-search", &[])),
        "git": python_server("mcp-server-git"),
        "time": python_server("mcp-server-time"),
        "fetch": python_server("mcp-server-fetch"),
    }));
    // `everything` adds one tool after the `initialized` notification.
    for (server, revision, tools) in [
        ("everything", "2025-11-25", 13),
        ("memory", "2025-11-25", 9),
        ("thinking", "2025-11-25", 1),
        ("brave", "2024-11-05", 2),
        ("git", "2026-07-28", 12),
        ("time", "2026-07-28", 2),
        ("fetch", "2026-07-28", 1),
    ] {
        let server_json = &listing["servers"][server];
        assert_eq!(server_json["state"], "ready", "{server}");
        assert_eq!(server_json["protocolVersion"], revision, "{server}");
        assert_eq!(server_json["tools"].as_array().unwrap().len(), tools, "{server}");
        assert!(server_json["serverInfo"]["name"].is_string(), "{server}");
    }
    assert_eq!(listing["servers"]["everything"]["prompts"].as_array().unwrap().len(), 4);
    assert_eq!(listing["servers"]["everything"]["resourceTemplates"].as_array().unwrap().len(), 2);
}

#[test]
fn a_tool_that_only_works_as_a_task_is_called_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let server = npm_server("@modelcontextprotocol/server-everything", &[]);
    let text = json!({ "host": { "initTimeout": 60 }, "servers": { "all": server } }).to_string();
    std::fs::write(dir.path().join("mcp.json"), text).unwrap();
    let call = ["call", "all.simulate-research-query", "topic=inns", "--json"];
    let output = run_command(&call, dir.path());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = result["content"][0]["text"].as_str().unwrap();
    assert!(report.starts_with("# Research Report: inns"), "{report}");
}

#[test]
fn a_server_without_its_key_fails_with_its_own_message_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = npm_server("@modelcontextprotocol/server-brave-search", &[]);
    // The timeout leaves no time for a second launch.
    server["initTimeout"] = json!(4);
    let text = json!({ "servers": { "brave": server } }).to_string();
    std::fs::write(dir.path().join("mcp.json"), text).unwrap();
    let output = run_tools(dir.path());
    assert_eq!(output.status.code(), Some(1));
    let listing: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listing["servers"]["brave"]["state"], "unavailable");
    let output = run_command(&["call", "brave.brave_web_search", "query=x"], dir.path());
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("BRAVE_API_KEY environment variable is required"), "{stderr}");
    assert!(stderr.contains("exit code 1"), "{stderr}");
}

#[test]
fn a_configuration_in_the_folder_is_found_without_being_named() {
    let dir = tempfile::tempdir().unwrap();
    let missing = run(&["graph"], dir.path());
    assert_eq!(missing.status.code(), Some(2));
    std::fs::create_dir(dir.path().join(".vscode")).unwrap();
    let text = json!({ "servers": { "a": { "command": "a" } } }).to_string();
    std::fs::write(dir.path().join(".vscode/mcp.json"), text).unwrap();
    let graph = run(&["graph"], dir.path());
    assert_eq!(String::from_utf8_lossy(&graph.stdout), "wave 1: a\n");
}

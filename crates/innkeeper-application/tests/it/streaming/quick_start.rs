//! Tests of the program: the quoted lines run as they are.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use innkeeper_testkit::fixture_program;
use serde_json::{Value, json};

/// Runs the program in a directory with these tokens.
#[expect(clippy::disallowed_methods, reason = "the test is about the program itself")]
fn run_in(directory: &Path, tokens: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_streaming-application"))
        .args(tokens)
        .current_dir(directory)
        .output()
        .unwrap()
}

/// Creates a directory with a server at the path of the document.
fn directory_with_server() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("path/to")).unwrap();
    symlink(fixture_program(), directory.path().join("path/to/mcp-server")).unwrap();
    directory
}

/// Proves: S10
#[test]
fn the_quick_start_runs_a_tool_of_the_server_at_its_relative_path() {
    let directory = directory_with_server();
    let tokens =
        ["I add. {\"tool\": \"ad", "d\", \"params\": {\"a\": 20, ", "\"b\": 22}} Now", " wait."];
    let output = run_in(directory.path(), &tokens);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let (first, message) = stdout.split_once('\n').unwrap();
    let milliseconds = first.strip_prefix("Tool add executed in ").unwrap();
    assert!(milliseconds.strip_suffix("ms").unwrap().parse::<u64>().is_ok(), "{first}");
    let result: Value = message.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap();
    assert_eq!(result, json!({"result_of": "add", "call": 0, "result": "42\n{\"sum\":42}"}));
}

/// Proves: S30
#[test]
fn the_quick_start_writes_the_log_that_its_configuration_names() {
    let directory = directory_with_server();
    run_in(directory.path(), &["{\"tool\": \"add\", \"params\": {\"a\": 1, \"b\": 1}}"]);
    let log = fs::read_to_string(directory.path().join("mcp_debug.log")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |kind: &str| lines.iter().filter(|line| line["event_type"] == kind).count();
    assert_eq!((of_kind("ToolExecutionStart"), of_kind("ToolExecutionComplete")), (1, 1), "{log}");
    // The settings of the document: durations, but no classified tokens.
    assert_eq!(of_kind("TokenClassification"), 0, "{log}");
    let complete = |line: &&Value| line["event_type"] == "ToolExecutionComplete";
    assert!(lines.iter().find(complete).unwrap()["duration_ms"].is_number(), "{log}");
}

/// Proves: S3
#[test]
fn the_quick_start_names_the_server_that_it_cannot_start() {
    let directory = tempfile::tempdir().unwrap();
    let output = run_in(directory.path(), &["Hello."]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && stderr.contains("mcp-server"), "{stderr}");
    assert!(!directory.path().join("mcp_debug.log").exists(), "no server, no integration");
}

//! Tests of `log-stats` with a chat log.

use serde_json::{Value, json};

use crate::program::run;

const LOG: &str = r#"{"timestamp":1,"event_type":"ToolExecutionStart","details":{"tool":"echo"}}
{"timestamp":2,"event_type":"ToolExecutionComplete","details":{"tool":"echo","cached":false},"duration_ms":2.0}
{"timestamp":3,"event_type":"ToolExecutionComplete","details":{"tool":"echo","cached":true},"duration_ms":1.0}
{"timestamp":4,"event_type":"ToolExecutionError","details":{"tool":"add","error":"no"}}
nonsense
"#;

/// Proves: S33
#[test]
fn a_log_is_counted_for_each_tool() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("log"), LOG).unwrap();
    let output = run(&["log-stats", "log", "--json"], dir.path());
    assert_eq!(output.status.code(), Some(0));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "tools": {
            "add": {"calls": 1, "errors": 1, "cached": 0},
            "echo": {"calls": 2, "errors": 0, "cached": 1, "mean_ms": 1.5, "max_ms": 2.0},
        },
        "lines": 4,
        "unreadableLines": 1,
    });
    assert_eq!(result, expected);
    let output = run(&["log-stats", "log"], dir.path());
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> =
        stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1], ["add", "1", "1", "0", "-", "-"]);
    assert_eq!(lines[2], ["echo", "2", "0", "1", "1.5", "2.0"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("ignored 1 lines"));
}

#[test]
fn a_log_that_is_not_there_is_a_usage_error_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["log-stats", "missing.log"], dir.path());
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("cannot read `missing.log`"), "{stderr}");
}

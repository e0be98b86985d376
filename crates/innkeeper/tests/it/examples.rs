//! Runs each example with the fixture server and checks the output.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use innkeeper_testkit::{Journal, fixture_program};

/// Path of a built example, relative to the test binary.
fn example_path(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.is_file(), "build it with `cargo build -p innkeeper --examples`");
    path
}

/// Runs an example with `before` ahead of the server's command. Returns stdout and the journal of
/// the fixture server.
#[expect(clippy::disallowed_methods, reason = "these tests are about the programs themselves")]
fn run_example(name: &str, before: &[&str], input: &str) -> (String, Journal) {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let mut child = Command::new(example_path(name))
        .args(before)
        .arg(fixture_program())
        .args([Path::new("--journal"), &journal])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stdout}\n{stderr}");
    (stdout, Journal::read(&journal))
}

/// Replaces the number before each `ms` with `N`.
fn mask_durations(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        match word.trim_end().strip_suffix("ms") {
            Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                out.push_str(&word.replacen(number, "N", 1));
            }
            Some(_) | None => out.push_str(word),
        }
    }
    out
}

/// Proves: S34
#[test]
fn the_smallest_example_shows_the_text_and_the_tool() {
    let (stdout, _) = run_example("minimal_streaming", &[], "");
    let expected = "Let me say it.\n\n\n\nSaid.\nTool echo executed in Nms\n\"hello\"\n";
    assert_eq!(mask_durations(&stdout), expected);
}

/// Proves: S1, S35
#[test]
fn the_chat_keeps_its_model_and_history_and_uses_a_tool_in_the_middle() {
    let (stdout, journal) = run_example("streaming_chat_app", &[], "hello\nadd 2 3\n");
    let expected = "> hello\nYou said `hello`, and I am 0.7 warm.\n(0 tools)\n\
                  > add 2 3\nLet me add that.\n\nThe tool says \"5.0\".\n(1 tools)\n\
                  system user assistant user assistant user assistant\n";
    assert_eq!(stdout, expected);
    assert_eq!(journal.count("tools/call"), 1);
}

/// Proves: S36
#[test]
fn the_pass_through_example_changes_nothing_and_runs_nothing_by_itself() {
    let (stdout, journal) = run_example("passthrough_mode", &[], "");
    let lines: Vec<&str> = stdout.lines().collect();
    let expected = [
        "text: I would call ",
        "text: {\"tool\": \"echo\", \"params\": {\"message\": \"hello\"}}",
        "text:  for that.",
        "0 tool calls executed",
    ];
    assert_eq!(lines[..4], expected);
    assert!(lines[4].contains("by hand"), "{stdout}");
    let calls = journal.params("tools/call");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["arguments"]["message"], "by hand");
}

/// Proves: S37
#[test]
fn the_placeholder_example_shows_one_text_a_call() {
    let (stdout, _) = run_example("placeholder_mode", &[], "");
    let expected = "Two sums: [calculating] and [calculating].\n\
                  add {\"a\":1,\"b\":2} = \"3\"\nadd {\"a\":3,\"b\":4} = \"7\"\n";
    assert_eq!(stdout, expected);
}

/// Proves: S38
#[test]
fn the_instrumentation_example_leaves_a_log_of_three_patterns() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let (stdout, _) = run_example("instrumentation_demo", &[log.to_str().unwrap()], "");
    let expected = "clean: echo\nmixed: add\nseveral: echo, fail\n\
                  add: 1 calls, 0 errors\necho: 2 calls, 0 errors\nfail: 1 calls, 1 errors\n\
                  10 durations\n";
    assert_eq!(stdout, expected);
    let log = std::fs::read_to_string(&log).unwrap();
    let kinds: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for kind in ["ToolDetectionStart", "ToolExecutionError", "TokenClassification"] {
        assert!(kinds.iter().any(|line| line["event_type"] == kind), "{kind}");
    }
}

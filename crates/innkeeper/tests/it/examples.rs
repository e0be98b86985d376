//! Each example is run over the fixture server, and its output is looked at.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use innkeeper_testkit::{Journal, fx_program};

/// Where the examples are built: beside the directory of this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.is_file(), "build it with `cargo build -p innkeeper --examples`");
    path
}

/// Runs an example with words before those that start the server; gives its output and what the
/// server received.
#[expect(clippy::disallowed_methods, reason = "these tests are about the programs themselves")]
fn run(name: &str, before: &[&str], input: &str) -> (String, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut child = Command::new(example(name))
        .args(before)
        .arg(fx_program())
        .args([Path::new("--journal"), &journal])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}\n{talk}");
    (said, Journal::read(&journal))
}

/// The text with each number before `ms` as one letter.
fn without_times(text: &str) -> String {
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
    let (said, _) = run("minimal_streaming", &[], "");
    let wanted = "Let me say it.\n\n\n\nSaid.\nTool echo executed in Nms\n\"hello\"\n";
    assert_eq!(without_times(&said), wanted);
}

/// Proves: S1, S35
#[test]
fn the_chat_keeps_its_model_and_history_and_uses_a_tool_in_the_middle() {
    let (said, journal) = run("streaming_chat_app", &[], "hello\nadd 2 3\n");
    let wanted = "> hello\nYou said `hello`, and I am 0.7 warm.\n(0 tools)\n\
                  > add 2 3\nLet me add that.\n\nThe tool says \"5.0\".\n(1 tools)\n\
                  system user assistant user assistant user assistant\n";
    assert_eq!(said, wanted);
    assert_eq!(journal.count("tools/call"), 1);
}

/// Proves: S36
#[test]
fn the_pass_through_example_changes_nothing_and_runs_nothing_by_itself() {
    let (said, journal) = run("passthrough_mode", &[], "");
    let lines: Vec<&str> = said.lines().collect();
    let wanted = [
        "as it came: I would call ",
        "as it came: {\"tool\": \"echo\", \"params\": {\"message\": \"hello\"}}",
        "as it came:  for that.",
        "0 tools were run",
    ];
    assert_eq!(lines[..4], wanted);
    assert!(lines[4].contains("by hand"), "{said}");
    let calls = journal.params("tools/call");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["arguments"]["message"], "by hand");
}

/// Proves: S37
#[test]
fn the_placeholder_example_shows_one_text_a_call() {
    let (said, _) = run("placeholder_mode", &[], "");
    let wanted = "Two sums: [calculating] and [calculating].\n\
                  add {\"a\":1,\"b\":2} = \"3\"\nadd {\"a\":3,\"b\":4} = \"7\"\n";
    assert_eq!(said, wanted);
}

/// Proves: S38
#[test]
fn the_instrumentation_example_leaves_a_log_of_three_patterns() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (said, _) = run("instrumentation_demo", &[log.to_str().unwrap()], "");
    let wanted = "clean: echo\nmixed: add\nseveral: echo, fail\n\
                  add: 1 calls, 0 errors\necho: 2 calls, 0 errors\nfail: 1 calls, 1 errors\n\
                  10 durations\n";
    assert_eq!(said, wanted);
    let log = std::fs::read_to_string(&log).unwrap();
    let kinds: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for kind in ["ToolDetectionStart", "ToolExecutionError", "TokenClassification"] {
        assert!(kinds.iter().any(|line| line["event_type"] == kind), "{kind}");
    }
}

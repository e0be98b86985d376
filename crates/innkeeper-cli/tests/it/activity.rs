//! Tests of the line on stderr while a call or a model runs.

use std::fs;

use innkeeper_testkit::{fixture, mcp_json};
use serde_json::json;

use crate::program::{innkeeper, run};
use crate::terminal::{run_with_stderr_on_terminal, screen_text};

#[test]
fn progress_of_a_call_is_shown_on_a_terminal_and_removed_at_the_end() {
    let server = fixture("one")
        .with("--progress", 3)
        .with("--progress-delay", 200)
        .with("--progress-message", "reading \u{1b}[2J世界");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mcp.json"), mcp_json([server]).to_string()).unwrap();
    let args = ["call", "one.echo", "message=hi", "--config", "mcp.json"];
    for columns in [80, 120] {
        let run = run_with_stderr_on_terminal(innkeeper(&args, dir.path()), "", columns);
        assert_eq!(run.status.code(), Some(0));
        assert!(run.stdout.contains("\"text\":\"hi\""), "{}", run.stdout);
        let shown = "calling one.echo  2/3  reading \\u{1b}[2J世界";
        assert!(run.stderr.contains(shown), "{:?}", run.stderr);
        assert_eq!(screen_text(&run.stderr, columns), "", "{:?}", run.stderr);
    }
    let on_pipe = run(&args, dir.path());
    assert_eq!(on_pipe.stderr, b"");
}

#[test]
fn the_prompt_of_ask_comes_from_stdin_and_the_waiting_line_disappears() {
    let dir = tempfile::tempdir().unwrap();
    let script = json!([
        {"calls": [{"name": "notes.find_notes", "arguments": {}}]},
        {"text": "Hello."}
    ]);
    fs::write(dir.path().join("script.json"), script.to_string()).unwrap();
    let options = ["--demo", "--provider", "scripted", "--script", "script.json"];
    for prompt in [&["-"][..], &[]] {
        let args = [&["ask"], prompt, &options].concat();
        let run = run_with_stderr_on_terminal(innkeeper(&args, dir.path()), "Hi\n", 80);
        assert_eq!(run.status.code(), Some(0), "{:?}", run.stderr);
        assert_eq!(run.stdout, "Hello.\n");
        assert!(run.stderr.contains("waiting for the model"), "{:?}", run.stderr);
        let screen = screen_text(&run.stderr, 80);
        assert!(screen.starts_with("called: `notes.find_notes` {}\n"), "{screen}");
        assert!(!screen.contains("waiting"), "{screen}");
    }
}

#[test]
fn an_empty_prompt_from_stdin_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("script.json"), "[]").unwrap();
    let args = ["ask", "--demo", "--provider", "scripted", "--script", "script.json"];
    let output = run(&args, dir.path());
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("error: the prompt from stdin is empty\n"), "{stderr}");
}

//! Tests of the line on stderr while a call or a model runs.

use std::fs;
use std::thread;
use std::time::Duration;

use innkeeper_testkit::{Journal, fixture, mcp_json};
use serde_json::json;

use crate::program::{innkeeper, run};
use crate::terminal::{
    run_in_terminal, run_with_stderr_on_terminal, run_with_stderr_on_terminal_while, screen_text,
};

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
fn on_a_terminal_text_calls_and_the_waiting_line_do_not_overwrite_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let script = json!([
        {"text": "I look.", "calls": [{"name": "notes.find_notes", "arguments": {"tag": "x"}}]},
        {"text": "Nothing found."}
    ]);
    fs::write(dir.path().join("script.json"), script.to_string()).unwrap();
    let args = ["ask", "Hi", "--demo", "--provider", "scripted", "--script", "script.json"];
    for columns in [80, 120] {
        let (status, text) = run_in_terminal(innkeeper(&args, dir.path()), columns);
        assert_eq!(status.code(), Some(0), "{text}");
        let screen = screen_text(&text, columns);
        let expected = "I look.\ncalled: `notes.find_notes` {\"tag\":\"x\"}\n        0 of 0 \
                        notes\\n\\n{\"notes\":[],\"total\":0}\nNothing found.";
        assert_eq!(screen, expected);
    }
}

#[test]
fn a_missing_prompt_on_a_terminal_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("script.json"), "[]").unwrap();
    let args = ["ask", "--demo", "--provider", "scripted", "--script", "script.json"];
    let (status, text) = run_in_terminal(innkeeper(&args, dir.path()), 80);
    assert_eq!(status.code(), Some(2));
    assert!(screen_text(&text, 80).starts_with("error: the prompt is missing\n"), "{text}");
}

#[test]
fn a_signal_during_a_call_removes_the_line() {
    let journal = tempfile::NamedTempFile::new().unwrap();
    let server = fixture("one").journal(journal.path());
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mcp.json"), mcp_json([server]).to_string()).unwrap();
    let args = ["call", "one.sleep", "ms=60000", "--config", "mcp.json"];
    let run = run_with_stderr_on_terminal_while(innkeeper(&args, dir.path()), 80, |child| {
        while Journal::read(journal.path()).count("tools/call") == 0 {
            assert!(child.try_wait().unwrap().is_none(), "the program ended before the call");
            thread::sleep(Duration::from_millis(10));
        }
        let program = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(program, rustix::process::Signal::INT).unwrap();
    });
    assert_eq!(run.status.code(), Some(130));
    assert!(run.stderr.contains("calling one.sleep"), "{:?}", run.stderr);
    assert!(!screen_text(&run.stderr, 80).contains("calling"), "{:?}", run.stderr);
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

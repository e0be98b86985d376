//! Tests of `extract`: model text on stdin, tool calls on stdout.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::program::innkeeper;

const TOOLS: &str = r#"[{"name": "get_weather", "inputSchema": {"type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}]"#;

/// Runs `extract` on a text, with the tools in a file.
fn run_extract(args: &[&str], tools: &str, text: &[u8]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tools.json"), tools).unwrap();
    let command_line = [&["extract", "--tools", "tools.json"], args].concat();
    let mut child = innkeeper(&command_line, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().unwrap();
    let text = text.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&text)));
    let output = child.wait_with_output().expect("the program ends");
    writer.join().unwrap();
    output
}

fn json_lines(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// Returns the output lines; joins consecutive text events.
fn merged_lines(output: &Output) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for line in json_lines(output) {
        match all.last_mut() {
            Some(last) if last["event"] == line["event"] && line["event"] == "text" => {
                let both =
                    format!("{}{}", last["text"].as_str().unwrap(), line["text"].as_str().unwrap());
                last["text"] = both.into();
            }
            _ => all.push(line),
        }
    }
    all
}

const MODEL_TEXT: &str = "<think>\nLook it up.\n</think>\n\nOne moment ☕.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich\", \"days\": \"3\",}}\n</tool_call>";

#[test]
fn a_call_is_one_line_with_its_repairs() {
    let events = merged_lines(&run_extract(&[], TOOLS, MODEL_TEXT.as_bytes()));
    assert_eq!(events[0], json!({"event": "reasoning", "text": "\nLook it up.\n"}));
    assert_eq!(events[1], json!({"event": "text", "text": "\n\nOne moment ☕.\n"}));
    assert_eq!(events[2]["event"], "call");
    assert_eq!(events[2]["name"], "get_weather");
    assert_eq!(events[2]["arguments"], json!({"city": "Zürich", "days": 3}));
    assert_eq!(events[2]["repairs"].as_array().unwrap().len(), 2, "{events:?}");
    assert_eq!(events.len(), 3);
}

#[test]
fn it_makes_no_difference_how_small_the_chunks_are() {
    let full_events =
        merged_lines(&run_extract(&["--model", "qwen3:8b"], TOOLS, MODEL_TEXT.as_bytes()));
    for chunk in ["1", "2", "3", "7", "4096"] {
        let args = ["--format", "hermes", "--chunk", chunk];
        let mut events = merged_lines(&run_extract(&args, TOOLS, MODEL_TEXT.as_bytes()));
        // Reasoning text is split into chunks too.
        let thinking: String = events
            .iter()
            .filter(|line| line["event"] == "reasoning")
            .map(|line| line["text"].as_str().unwrap())
            .collect();
        events.retain(|line| line["event"] != "reasoning");
        assert_eq!(full_events[0]["text"], thinking, "{chunk}");
        assert_eq!(events, full_events[1..], "{chunk}");
    }
}

#[test]
fn the_format_and_the_model_decide_which_text_is_a_call() {
    let text = b"```tool_code\nget_weather(city=\"Bern\")\n```";
    for (args, is_call) in [
        (["--format", "gemma"], true),
        (["--format", "llama"], false),
        (["--model", "gemma3:4b"], true),
        (["--model", "llama3.2:3b"], false),
    ] {
        let events = json_lines(&run_extract(&args, TOOLS, text));
        assert_eq!(events.iter().any(|line| line["event"] == "call"), is_call, "{events:?}");
    }
}

/// Proves: S46
#[test]
fn an_incomplete_call_is_reported_and_one_of_no_tool_is_text_with_a_suggestion() {
    let text =
        br#"{"tool": "get_wether", "params": {}} {"tool": "get_weather", "params": {"city": "Par"#;
    let events = merged_lines(&run_extract(&[], TOOLS, text));
    assert_eq!(
        events[0],
        json!({"event": "text", "text": r#"{"tool": "get_wether", "params": {}}"#})
    );
    assert_eq!(events[1]["event"], "rejected");
    assert_eq!(events[1]["suggestions"], json!(["get_weather"]));
    assert_eq!(events[3]["event"], "incomplete");
    assert_eq!(events[3]["text"], r#"{"tool": "get_weather", "params": {"city": "Par"#);
    assert_eq!(events[3]["reason"], "the text ends inside the call");
}

#[test]
fn with_json_all_events_are_one_value_and_numbers_stay_as_they_were_written() {
    let text = br#"{"name": "get_weather", "arguments": {"days": 123456789012345678901}}"#;
    let output = run_extract(&["--json"], TOOLS, text);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.starts_with("[{\"event\":\"call\""), "{stdout}");
    assert!(stdout.contains("{\"days\":123456789012345678901}"), "{stdout}");
}

#[test]
fn tools_that_cannot_be_read_are_a_usage_error_that_names_the_file() {
    for (tools, expected_error) in [
        ("{}", "`tools.json`: no array of tools"),
        ("[{\"title\": \"x\"}]", "tool 1 of the array has no `name`"),
        ("[", "`tools.json`: EOF"),
    ] {
        let output = run_extract(&[], tools, b"");
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(expected_error), "{stderr}");
    }
    let output = innkeeper(&["extract", "--tools", "none.json"], Path::new("/")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let output = run_extract(&["--format", "runes"], TOOLS, b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("expected one of detect, generic"));
}

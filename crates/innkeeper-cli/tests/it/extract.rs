//! `extract`: a model's text on stdin, its calls on stdout.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::program::innkeeper;

const TOOLS: &str = r#"[{"name": "get_weather", "inputSchema": {"type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}]"#;

/// Runs `extract` over a text, with the tools in a file.
fn extract(args: &[&str], tools: &str, text: &[u8]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tools.json"), tools).unwrap();
    let words = [&["extract", "--tools", "tools.json"], args].concat();
    let mut child = innkeeper(&words, folder.path())
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

fn lines(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// The lines, text of one kind joined.
fn joined(output: &Output) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for line in lines(output) {
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

const TEXT: &str = "<think>\nLook it up.\n</think>\n\nOne moment ☕.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich\", \"days\": \"3\",}}\n</tool_call>";

#[test]
fn a_call_is_one_line_with_what_was_mended_in_it() {
    let found = joined(&extract(&[], TOOLS, TEXT.as_bytes()));
    assert_eq!(found[0], json!({"event": "reasoning", "text": "\nLook it up.\n"}));
    assert_eq!(found[1], json!({"event": "text", "text": "\n\nOne moment ☕.\n"}));
    assert_eq!(found[2]["event"], "call");
    assert_eq!(found[2]["name"], "get_weather");
    assert_eq!(found[2]["arguments"], json!({"city": "Zürich", "days": 3}));
    assert_eq!(found[2]["repairs"].as_array().unwrap().len(), 2, "{found:?}");
    assert_eq!(found.len(), 3);
}

#[test]
fn it_makes_no_difference_how_small_the_chunks_are() {
    let whole = joined(&extract(&["--model", "qwen3:8b"], TOOLS, TEXT.as_bytes()));
    for chunk in ["1", "2", "3", "7", "4096"] {
        let args = ["--format", "hermes", "--chunk", chunk];
        let mut found = joined(&extract(&args, TOOLS, TEXT.as_bytes()));
        // Thoughts come in pieces too.
        let thought: String = found
            .iter()
            .filter(|line| line["event"] == "reasoning")
            .map(|line| line["text"].as_str().unwrap())
            .collect();
        found.retain(|line| line["event"] != "reasoning");
        assert_eq!(whole[0]["text"], thought, "{chunk}");
        assert_eq!(found, whole[1..], "{chunk}");
    }
}

/// Proves: S46
#[test]
fn a_call_without_end_is_told_and_one_of_no_tool_is_text_with_a_suggestion() {
    let text =
        br#"{"tool": "get_wether", "params": {}} {"tool": "get_weather", "params": {"city": "Par"#;
    let found = joined(&extract(&[], TOOLS, text));
    assert_eq!(
        found[0],
        json!({"event": "text", "text": r#"{"tool": "get_wether", "params": {}}"#})
    );
    assert_eq!(found[1]["event"], "rejected");
    assert_eq!(found[1]["suggestions"], json!(["get_weather"]));
    assert_eq!(found[3]["event"], "incomplete");
    assert_eq!(found[3]["text"], r#"{"tool": "get_weather", "params": {"city": "Par"#);
    assert_eq!(found[3]["reason"], "the text ends inside the call");
}

#[test]
fn with_json_all_events_are_one_value_and_numbers_stay_as_they_were_written() {
    let text = br#"{"name": "get_weather", "arguments": {"days": 123456789012345678901}}"#;
    let output = extract(&["--json"], TOOLS, text);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("[{\"event\":\"call\""), "{said}");
    assert!(said.contains("{\"days\":123456789012345678901}"), "{said}");
}

#[test]
fn tools_that_cannot_be_read_are_a_usage_error_that_names_the_file() {
    for (tools, words) in [
        ("{}", "`tools.json`: holds no array of tools"),
        ("[{\"title\": \"x\"}]", "tool 1 of the array has no `name`"),
        ("[", "`tools.json`: EOF"),
    ] {
        let output = extract(&[], tools, b"");
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(words), "{said}");
    }
    let output = innkeeper(&["extract", "--tools", "none.json"], Path::new("/")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let output = extract(&["--format", "runes"], TOOLS, b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("expected one of detect, generic"));
}

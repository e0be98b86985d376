//! Tests of the program `innkeeper-llm`.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::normalized_reply::NormalizedReply;
use super::{api_path, conversation};
use crate::remote::http::{HttpExchange, within_timeout};

#[expect(clippy::disallowed_methods, reason = "the test starts the program under test")]
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper-llm"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

async fn read_origin(child: &mut Child) -> String {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    within_timeout(lines.next_line()).await.unwrap().unwrap()
}

async fn run_to_end(mut command: Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = within_timeout(command.output()).await.unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[tokio::test]
async fn the_program_answers_until_its_input_ends_and_writes_what_it_was_asked() {
    let dir = tempfile::tempdir().unwrap();
    let (script, requests) = (dir.path().join("script"), dir.path().join("requests"));
    let script_json = json!({"steps": [{"answer": {"parts": [{"text": "Hello."}]}}]});
    std::fs::write(&script, script_json.to_string()).unwrap();
    let mut child = program().arg(&script).arg("--requests").arg(&requests).spawn().unwrap();
    let llm = read_origin(&mut child).await;
    let body = json!({"model": "m", "messages": []});
    let address = api_path("chat", false);
    let mut reply =
        HttpExchange::request(&llm, "POST", address, &[("X-Key", "k")], Some(&body)).await;
    assert_eq!(NormalizedReply::from_body("chat", &reply.json().await).text, "Hello.");
    let mut reply = HttpExchange::request(&llm, "GET", "/v1/models?a=b", &[], None).await;
    assert_eq!(reply.json().await["data"][0]["id"], "scripted");
    let _ = child.stdin.take();
    assert!(within_timeout(child.wait()).await.unwrap().success());

    let log = std::fs::read_to_string(requests).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["path"], &lines[0]["method"]), (&json!(address), &json!("POST")));
    assert_eq!((&lines[0]["headers"]["x-key"], &lines[0]["body"]), (&json!("k"), &body));
    assert_eq!((&lines[1]["query"], &lines[1]["body"]), (&json!("a=b"), &Value::Null));
}

#[tokio::test]
async fn a_command_line_that_cannot_be_parsed_is_reported() {
    let (code, stderr) = run_to_end(program()).await;
    assert_eq!(
        (code, stderr.as_str()),
        (Some(2), "innkeeper-llm: a script is required; see `--help`\n")
    );
    let mut command = program();
    command.arg("--else");
    let (code, stderr) = run_to_end(command).await;
    assert_eq!(
        (code, stderr.as_str()),
        (Some(2), "innkeeper-llm: unknown argument `--else`; see `--help`\n")
    );
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    std::fs::write(&script, r#"{"steps": [{}]}"#).unwrap();
    let mut command = program();
    command.arg(&script);
    let (code, stderr) = run_to_end(command).await;
    assert_eq!(code, Some(2));
    assert!(
        stderr.ends_with("`steps[0]`: exactly one of `answer`, `failure` and `raw` is required\n"),
        "{stderr}"
    );
}

#[tokio::test]
async fn the_scripts_of_a_program_may_say_everything() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    let part = json!({"tool_call": {"name": "fs.read", "arguments": {"path": "a"}}});
    let script_json = json!({"steps": [{"answer": {"parts": [{"reasoning": "t"}, part]}}]});
    std::fs::write(&script, script_json.to_string()).unwrap();
    let mut child = program().arg(&script).spawn().unwrap();
    let llm = read_origin(&mut child).await;
    let body = conversation::first_request("anthropic");
    let mut reply =
        HttpExchange::request(&llm, "POST", api_path("anthropic", false), &[], Some(&body)).await;
    let normalized = NormalizedReply::from_body("anthropic", &reply.json().await);
    assert_eq!((normalized.reasoning.as_str(), normalized.calls[0].1.as_str()), ("t", "fs_read"));
}

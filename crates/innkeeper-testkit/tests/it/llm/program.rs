//! The program `innkeeper-llm`, for clients that are no Rust.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::fold::Said;
use super::{path, talk};
use crate::remote::http::{Http, soon};

#[expect(clippy::disallowed_methods, reason = "the program itself is tested")]
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper-llm"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

async fn origin(child: &mut Child) -> String {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    soon(lines.next_line()).await.unwrap().unwrap()
}

async fn outcome(mut command: Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = soon(command.output()).await.unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[tokio::test]
async fn the_program_answers_until_its_input_ends_and_writes_what_it_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (script, requests) = (folder.path().join("script"), folder.path().join("requests"));
    let steps = json!({"steps": [{"answer": {"parts": [{"says": "Hello."}]}}]});
    std::fs::write(&script, steps.to_string()).unwrap();
    let mut child = program().arg(&script).arg("--requests").arg(&requests).spawn().unwrap();
    let llm = origin(&mut child).await;
    let body = json!({"model": "m", "messages": []});
    let address = path("chat", false);
    let mut reply = Http::ask(&llm, "POST", address, &[("X-Key", "k")], Some(&body)).await;
    assert_eq!(Said::whole("chat", &reply.json().await).text, "Hello.");
    let mut reply = Http::ask(&llm, "GET", "/v1/models?a=b", &[], None).await;
    assert_eq!(reply.json().await["data"][0]["id"], "scripted");
    drop(child.stdin.take());
    assert!(soon(child.wait()).await.unwrap().success());

    let written = std::fs::read_to_string(requests).unwrap();
    let lines: Vec<Value> =
        written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["path"], &lines[0]["method"]), (&json!(address), &json!("POST")));
    assert_eq!((&lines[0]["headers"]["x-key"], &lines[0]["body"]), (&json!("k"), &body));
    assert_eq!((&lines[1]["query"], &lines[1]["body"]), (&json!("a=b"), &Value::Null));
}

#[tokio::test]
async fn a_command_line_that_cannot_be_understood_is_told() {
    let (code, words) = outcome(program()).await;
    assert_eq!(
        (code, words.as_str()),
        (Some(2), "innkeeper-llm: a script is missing; see `--help`\n")
    );
    let mut command = program();
    command.arg("--else");
    let (code, words) = outcome(command).await;
    assert_eq!(
        (code, words.as_str()),
        (Some(2), "innkeeper-llm: `--else` is not known; see `--help`\n")
    );
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, r#"{"steps": [{}]}"#).unwrap();
    let mut command = program();
    command.arg(&script);
    let (code, words) = outcome(command).await;
    assert_eq!(code, Some(2));
    assert!(words.ends_with("`steps[0]`: it is one of `answer`, `failure` and `raw`\n"), "{words}");
}

#[tokio::test]
async fn the_scripts_of_a_program_may_say_everything() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    let part = json!({"calls": {"name": "fs.read", "arguments": {"path": "a"}}});
    let steps = json!({"steps": [{"answer": {"parts": [{"thinks": "t"}, part]}}]});
    std::fs::write(&script, steps.to_string()).unwrap();
    let mut child = program().arg(&script).spawn().unwrap();
    let llm = origin(&mut child).await;
    let body = talk::begin("anthropic");
    let mut reply = Http::ask(&llm, "POST", path("anthropic", false), &[], Some(&body)).await;
    let said = Said::whole("anthropic", &reply.json().await);
    assert_eq!((said.thoughts.as_str(), said.calls[0].1.as_str()), ("t", "fs_read"));
}

//! Tests of the first minute: without a configuration, the suggested commands work as printed.

use std::path::Path;
use std::process::{Output, Stdio};

use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply};
use serde_json::{Value, json};

use crate::program::{innkeeper, run};

/// Splits a command like a shell: quoted text is one word.
fn shell_words(command: &str) -> Vec<String> {
    let mut args = Vec::new();
    for (at, segment) in command.split('"').enumerate() {
        match at % 2 {
            0 => args.extend(segment.split_whitespace().map(str::to_owned)),
            _ => args.push(segment.to_owned()),
        }
    }
    args
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn what_the_demo_says_to_type_works_in_that_very_folder() {
    let dir = tempfile::tempdir().unwrap();
    let stderr = stderr_text(&run(&["demo"], dir.path()));
    let line = stderr.lines().find_map(|line| line.trim().strip_prefix("`ANTHROPIC_API_KEY=… "));
    let mut typed = shell_words(line.unwrap().split_once('`').unwrap().0);
    assert_eq!(typed.remove(0), "innkeeper");
    let call = ScriptedReply::tool_call("files.search_text", json!({"query": "wine"}));
    let llm = ScriptedLlm::start(Script::new([call, ScriptedReply::text("Turn it.")])).await;
    typed.extend(["--json", "--base-url", llm.origin()].map(str::to_owned));
    let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
    let mut command = innkeeper(&typed, dir.path());
    command.env("ANTHROPIC_API_KEY", "k").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = tokio::process::Command::from(command).spawn().unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["final_result"], "Turn it.");
    let content = result["tool_chain"][0]["result"].to_string();
    assert!(content.contains("elderberry wine"), "{result}");
    assert!(is_empty(dir.path()), "something was left behind");
}

#[test]
fn without_a_model_and_a_configuration_one_error_says_both_and_what_to_type() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["ask", "What do the files say?"], dir.path());
    let stderr = stderr_text(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    let expected = [
        "no model selected",
        "no configuration found",
        "`--provider NAME`",
        "`innkeeper demo`",
        "`innkeeper ask --demo …`",
        "`innkeeper import > mcp.json`",
    ];
    for text in expected {
        assert!(stderr.contains(text), "{text}: {stderr}");
    }
    let output = run(&["ask", "Hi", "--provider", "ollama"], dir.path());
    let stderr = stderr_text(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("`innkeeper ask --demo …`") && !stderr.contains("no model"),
        "{stderr}"
    );
    assert_eq!(output.stdout, b"");
}

#[test]
fn the_servers_of_the_demo_replace_a_configuration_and_do_not_add_to_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mcp.json"), "no JSON").unwrap();
    let line = ["ask", "Hi", "--provider", "scripted", "--script", "script.json", "--demo"];
    std::fs::write(dir.path().join("script.json"), r#"[{"text": "Hello."}]"#).unwrap();
    let output = run(&line, dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    assert_eq!(output.stdout, b"Hello.\n");
    for at in [0, line.len()] {
        let mut both = line.to_vec();
        both.splice(at..at, ["--config", "mcp.json"]);
        let output = run(&both, dir.path());
        assert_eq!(output.status.code(), Some(2), "{}", stderr_text(&output));
        assert!(stderr_text(&output).contains("--demo"), "{}", stderr_text(&output));
    }
}

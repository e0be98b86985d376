//! The first minute: nothing is configured, and what the program says to type works as it stands.

use std::path::Path;
use std::process::{Output, Stdio};

use innkeeper_testkit::{Script, ScriptedLlm, Step};
use serde_json::{Value, json};

use crate::program::{innkeeper, run};

/// The words of a command as a shell reads them: a pair of quotes holds one word together.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in command.split('"').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn what_the_demo_says_to_type_works_in_that_very_folder() {
    let folder = tempfile::tempdir().unwrap();
    let told = said(&run(&["demo"], folder.path()));
    let line = told.lines().find_map(|line| line.trim().strip_prefix("`ANTHROPIC_API_KEY=… "));
    let mut typed = words(line.unwrap().split_once('`').unwrap().0);
    assert_eq!(typed.remove(0), "innkeeper");
    let call = Step::call("files.search_text", json!({"query": "wine"}));
    let llm = ScriptedLlm::start(Script::new([call, Step::say("Turn it.")])).await;
    typed.extend(["--json", "--base-url", llm.origin()].map(str::to_owned));
    let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
    let mut command = innkeeper(&typed, folder.path());
    command.env("ANTHROPIC_API_KEY", "k").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = tokio::process::Command::from(command).spawn().unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["final_result"], "Turn it.");
    let found = result["tool_chain"][0]["result"].to_string();
    assert!(found.contains("elderberry wine"), "{result}");
    assert!(is_empty(folder.path()), "something was left behind");
}

#[test]
fn without_a_model_and_a_configuration_one_error_says_both_and_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["ask", "What do the files say?"], folder.path());
    let told = said(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    let parts = [
        "no model is named",
        "no configuration found",
        "`--provider NAME`",
        "`innkeeper demo`",
        "`innkeeper ask --demo …`",
        "`innkeeper import > mcp.json`",
    ];
    for part in parts {
        assert!(told.contains(part), "{part}: {told}");
    }
    let output = run(&["ask", "Hi", "--provider", "ollama"], folder.path());
    let told = said(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("`innkeeper ask --demo …`") && !told.contains("no model"), "{told}");
    assert_eq!(output.stdout, b"");
}

#[test]
fn the_servers_of_the_demo_stand_in_place_of_a_configuration_and_not_beside_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mcp.json"), "no JSON").unwrap();
    let line = ["ask", "Hi", "--provider", "scripted", "--script", "script.json", "--demo"];
    std::fs::write(folder.path().join("script.json"), r#"[{"text": "Hello."}]"#).unwrap();
    let output = run(&line, folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(output.stdout, b"Hello.\n");
    for at in [0, line.len()] {
        let mut both = line.to_vec();
        both.splice(at..at, ["--config", "mcp.json"]);
        let output = run(&both, folder.path());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("--demo"), "{}", said(&output));
    }
}

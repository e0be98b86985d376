//! Requests of servers during `ask`: messages of the model and input of the user.

use std::path::Path;
use std::process::Command;

use innkeeper_testkit::{Fixture, Journal, fixture, mcp_json};
use serde_json::{Value, json};

use crate::program::innkeeper;
use crate::terminal::{Reply, run_in_terminal_while};

/// Writes a configuration with a server, and a script in which the model calls a tool once. The
/// answer to a sampling request is a reply of the same script.
fn prepare(dir: &Path, server: Fixture, answers_sampling: bool) -> Fixture {
    let server = server.journal(&dir.join("journal"));
    std::fs::write(dir.join("mcp.json"), mcp_json([server.clone()]).to_string()).unwrap();
    let call = json!({"calls": [{"name": "one.add", "arguments": {"a": 2, "b": 3}}]});
    let answer = answers_sampling.then(|| json!({"text": "Blue."}));
    let replies: Vec<_> =
        [call].into_iter().chain(answer).chain([json!({"text": "Done."})]).collect();
    std::fs::write(dir.join("script.json"), json!(replies).to_string()).unwrap();
    server
}

fn ask(dir: &Path, policy: &str) -> Command {
    let mut command = ask_without_sampling(dir, policy);
    command.arg("--sampling");
    command
}

fn ask_without_sampling(dir: &Path, policy: &str) -> Command {
    let mut args = vec!["ask", "--config", "mcp.json", "Add.", "--provider", "scripted"];
    args.extend(["--script", "script.json", "--approve", policy]);
    innkeeper(&args, dir)
}

/// Returns the responses that the server got to its requests.
fn answers(dir: &Path) -> Vec<Value> {
    let journal = Journal::read(&dir.join("journal"));
    let results = journal.responses().into_iter();
    results.map(|response| response.get("result").unwrap_or(&response["error"]).clone()).collect()
}

fn declared(dir: &Path) -> Value {
    let journal = Journal::read(&dir.join("journal"));
    journal.params("initialize")[0]["capabilities"].clone()
}

#[test]
fn with_approve_all_the_model_answers_and_forms_are_declined_without_a_question() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path(), fixture("one").switch("--ask-sampling").switch("--ask-elicit"), true);
    let output = ask(dir.path(), "all").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Done.\n", "{stderr}");
    let answers = answers(dir.path());
    let content = json!({"type": "text", "text": "Blue."});
    let message = json!({
        "role": "assistant", "content": content, "model": "scripted", "stopReason": "endTurn",
    });
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers.contains(&message) && answers.contains(&json!({"action": "decline"})));
    let capabilities = json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}});
    assert_eq!(declared(dir.path()), capabilities);
}

/// Attack: model | a server requests a message of the model in a run without approved calls |
/// nothing is declared to the server | Approval first
#[test]
fn with_approve_never_nothing_is_declared() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path(), fixture("one").switch("--ask-sampling"), false);
    ask(dir.path(), "never").output().unwrap();
    assert_eq!(declared(dir.path()), json!({}));
}

/// Attack: model | a server requests a message of the model in a run without `--sampling` | sampling is
/// not declared, and the request is refused | Approval first
#[test]
fn sampling_is_declared_only_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path(), fixture("one").switch("--ask-sampling"), false);
    ask_without_sampling(dir.path(), "all").output().unwrap();
    assert_eq!(declared(dir.path()), json!({"elicitation": {"form": {}, "url": {}}}));
}

#[test]
fn on_a_terminal_the_user_approves_the_call_and_sampling_and_fills_in_the_form() {
    let reply = |question_end, line| Reply { question_end, line };
    let call = reply("{\"a\":2,\"b\":3}? [y/N] ", "y");
    let content = json!({"type": "text", "text": "Blue."});
    let message = json!({
        "role": "assistant", "content": content, "model": "scripted", "stopReason": "endTurn",
    });
    let denial = json!({"code": -1, "message": "the user denied the request"});
    let to_server = "response to the server? [y/N] ";
    let form = json!({"action": "accept", "content": {"colour": "blue"}});
    for (switch, replies, expected) in [
        ("--ask-sampling", vec![call, reply(to_server, "y")], message),
        ("--ask-sampling", vec![call, reply(to_server, "n")], denial),
        (
            "--ask-elicit",
            vec![
                call,
                reply("Answer? [y/N] ", "y"),
                reply("colour: ", ""),
                reply("a value is required: ", "blue"),
                reply("Send to `one`? [y/N] ", "y"),
            ],
            form,
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let answers_sampling = expected.get("role").is_some();
        prepare(dir.path(), fixture("one").switch(switch), answers_sampling);
        let (status, text) = run_in_terminal_while(ask(dir.path(), "ask"), 100, replies, |_| {});
        assert!(status.success() && text.contains("  | one asks: which colour?\n"), "{text}");
        assert_eq!(answers(dir.path()), [expected], "{text}");
        assert!(text.contains("Done."), "{text}");
    }
}

#[test]
fn a_question_of_a_call_that_ended_is_withdrawn_and_the_next_question_gets_the_reply() {
    let dir = tempfile::tempdir().unwrap();
    let server = fixture("one").switch("--ask-elicit").with("--era", "modern");
    prepare(
        dir.path(),
        server.config_key("timeout", 0.5).config_key("maxTotalTimeout", 0.5),
        false,
    );
    let call = |a: u8| json!({"calls": [{"name": "one.add", "arguments": {"a": a, "b": 3}}]});
    let script = json!([call(2), call(4), {"text": "Done."}]);
    std::fs::write(dir.path().join("script.json"), script.to_string()).unwrap();
    let replies = [
        Reply { question_end: "{\"a\":2,\"b\":3}? [y/N] ", line: "y" },
        Reply { question_end: "{\"a\":4,\"b\":3}? [y/N] ", line: "n" },
    ];
    let (status, text) = run_in_terminal_while(ask(dir.path(), "ask"), 100, replies, |_| {});
    assert_eq!(status.code(), Some(1), "no call succeeded: {text}");
    assert!(text.contains("Answer? [y/N] (withdrawn)\n"), "{text}");
    assert!(text.contains("the user denied the call") && text.contains("Done."), "{text}");
}

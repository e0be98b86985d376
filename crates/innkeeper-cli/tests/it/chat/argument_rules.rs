//! Tests of `tools.approveArguments` with the whole program.

use innkeeper_testkit::{Journal, ScriptedReply, fixture};
use serde_json::json;

use super::{ChatEnv, text};
use crate::program::innkeeper;

/// Attack: model | a model repeats, adds or changes an argument of a call that a rule approves | only
/// the call that matches the rule runs without a question | Approval first
#[tokio::test]
async fn a_call_runs_without_a_question_only_if_its_arguments_match_a_rule() {
    let calls = [
        r#"{"a": 2, "b": 30}"#,
        r#"{"a": 3, "b": 30}"#,
        r#"{"a": 2, "b": 40}"#,
        r#"{"a": 2, "b": 30, "c": 1}"#,
        r#"{"a": 2, "b": 30, "a": 9}"#,
        r#"{"a": [2], "b": 30}"#,
        r#"{"b": 30}"#,
    ];
    let replies = calls.iter().flat_map(|arguments| {
        let call = ScriptedReply::new().with_raw_tool_call("one.add", *arguments);
        [call, ScriptedReply::text("Next.")]
    });
    let rules = json!({"approveArguments": {"add": [{"a": "2", "b": "3*"}], "sleep": [{}]}});
    let server = fixture("one").config_key("tools", rules);
    let env = ChatEnv::new(server, replies.collect::<Vec<_>>()).await;
    let output = env.run(&[], &"Add.\n".repeat(calls.len())).await;
    let stderr = text(&output.stderr);
    assert_eq!(Journal::read(&env.path().join("journal")).count("tools/call"), 1, "{stderr}");
    assert_eq!(stderr.matches("called: `one.add`").count(), 1, "{stderr}");
    assert!(stderr.contains(r#"called: `one.add` {"a":2,"b":30}"#), "{stderr}");
}

/// Attack: files | a file of a directory approves calls by their arguments | each call asks
/// | Approval first
#[tokio::test]
async fn a_found_file_approves_no_call_by_its_arguments() {
    let rules = json!({"approveArguments": {"*": [{"a": "*", "b": "*"}]}});
    let replies = || {
        let call = ScriptedReply::tool_call("one.add", json!({"a": 2, "b": 3}));
        [call, ScriptedReply::text("Done.")]
    };
    let server = fixture("one").config_key("tools", rules);
    let env = ChatEnv::new(server, replies().into_iter().chain(replies())).await;
    let url = env.llm.origin();
    for (source, calls) in [(&[][..], 0), (&["--config", "mcp.json"][..], 1)] {
        let model = ["--provider", "anthropic", "--model", "claude-opus-5-5", "--base-url", url];
        let arguments = [&["chat"], source, &model[..], &["Add."]].concat();
        let mut command = innkeeper(&arguments, env.path());
        command.env("HOME", env.path()).env("ANTHROPIC_API_KEY", "sk-planted");
        command.stdin(std::process::Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let journal = Journal::read(&env.path().join("journal"));
        assert_eq!(journal.count("tools/call"), calls, "{}", text(&output.stderr));
    }
}

//! Tests of `chat --record`: the file has every message, and replays without server and model.

use innkeeper_testkit::{ScriptedReply, fixture};
use serde_json::{Value, json};

use super::{ChatEnv, text};
use crate::program::run;

fn replies() -> [ScriptedReply; 3] {
    [
        ScriptedReply::text("I add.").with_tool_call("one.add", json!({"a": 2, "b": 3})),
        ScriptedReply::text("It is 5."),
        ScriptedReply::text("You are welcome."),
    ]
}

/// Replays a file without the server and the model, and returns the exit code with the report.
fn replay(env: &ChatEnv, file: &str) -> (Option<i32>, String) {
    let output = run(&["golden", "replay", file], env.path());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// Proves: G63, G64
#[tokio::test]
async fn a_recorded_chat_replays_all_its_messages() {
    let server = fixture("one").env("TOKEN", "planted-token-4Hj6");
    let env = ChatEnv::new(server, replies()).await;
    let args = ["--approve", "all", "--record", "sum.json"];
    let output = env.run(&args, "What is 2 + 3?\nThanks.\n").await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("recorded: sum.json"), "{}", text(&output.stderr));
    let path = env.path().join("sum.json");
    let recorded = std::fs::read_to_string(&path).unwrap();
    for secret in ["sk-planted", "planted-token-4Hj6"] {
        assert!(!recorded.contains(secret), "{recorded}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let golden: Value = serde_json::from_str(&recorded).unwrap();
    assert_eq!(golden["version"], 1);
    assert_eq!(golden["input"]["user_prompt"], "What is 2 + 3?");
    assert_eq!(golden["input"]["further_prompts"], json!(["Thanks."]));
    assert_eq!(golden["golden_output"]["final_result"], "You are welcome.");
    let iterations: Vec<_> = golden["provider_responses"].as_array().unwrap().iter().collect();
    assert_eq!(iterations.iter().map(|it| &it["iteration"]).collect::<Vec<_>>(), [1, 2, 3]);
    std::fs::remove_file(env.path().join("mcp.json")).unwrap();
    let (code, report) = replay(&env, "sum.json");
    assert_eq!(code, Some(0), "{report}");

    let other = recorded.replace(r#"\"text\":\"You"#, r#"\"text\":\"Who"#);
    assert_ne!(other, recorded);
    std::fs::write(env.path().join("answer.json"), other).unwrap();
    let (code, report) = replay(&env, "answer.json");
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains("/final_result"), "{report}");
    let other = recorded.replacen("\"Thanks.\"", "\"Thank you.\"", 1);
    std::fs::write(env.path().join("message.json"), other).unwrap();
    let (code, report) = replay(&env, "message.json");
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains("is now \"Thank you.\""), "{report}");
    let shown = run(&["golden", "inspect", "sum.json"], env.path());
    assert!(text(&shown.stdout).contains("then      Thanks."), "{}", text(&shown.stdout));
}

#[tokio::test]
async fn a_recorded_chat_refuses_what_a_replay_cannot_repeat() {
    let env = ChatEnv::new(fixture("one"), [ScriptedReply::text("Hello.")]).await;
    let lines = "Hi.\n/undo\n/attach mcp.json\n/model ollama\n/clear\n/tools\n";
    let output = env.run(&["--record", "hi.json"], lines).await;
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    for command in ["/undo", "/attach", "/model", "/clear"] {
        let refusal = format!("{command} is not possible while the chat is recorded");
        assert!(stderr.contains(&refusal), "{stderr}");
    }
    assert_eq!(replay(&env, "hi.json").0, Some(0));
}

#[tokio::test]
async fn a_chat_is_not_recorded_without_a_message_and_not_under_ci() {
    let env = ChatEnv::new(fixture("one"), []).await;
    let output = env.run(&["--record", "none.json"], "/tools\n").await;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let message = "the chat was not recorded in `none.json`: no message was sent";
    assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    let refused = env.command(&["--record", "ci.json"]).env("CI", "true").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("`--record` is refused where `CI` is set"));
    assert!(!env.path().join("none.json").exists() && !env.path().join("ci.json").exists());
}

#[tokio::test]
async fn a_question_of_a_server_is_in_the_recording_of_its_chat() {
    let server = fixture("one").switch("--ask-elicit");
    let env = ChatEnv::new(server, replies()).await;
    let lines = "What is 2 + 3?\nThanks.\n";
    let output = env.run(&["--approve", "all", "--record", "sum.json"], lines).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let recorded = std::fs::read_to_string(env.path().join("sum.json")).unwrap();
    let golden: Value = serde_json::from_str(&recorded).unwrap();
    let question = &golden["questions"][0];
    assert_eq!(question["method"], "elicitation/create");
    // Nobody sits at a pipe.
    assert_eq!(question["answer"]["action"], "cancel");
    let (code, report) = replay(&env, "sum.json");
    assert_eq!(code, Some(0), "{report}");
    let shown = run(&["golden", "inspect", "sum.json"], env.path());
    let shown = text(&shown.stdout);
    assert!(shown.contains("question  elicitation/create of one: "), "{shown}");
}

#[tokio::test]
async fn the_failure_of_a_recorded_message_replays_too() {
    let replies = [ScriptedReply::status(400), ScriptedReply::text("Hello.")];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let output = env.run(&["--record", "hi.json"], "Hi.\nHi again.\n").await;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let (code, report) = replay(&env, "hi.json");
    assert_eq!(code, Some(0), "{report}");
    let recorded = std::fs::read_to_string(env.path().join("hi.json")).unwrap();
    let golden: Value = serde_json::from_str(&recorded).unwrap();
    assert_eq!(golden["golden_output"]["success"], true);
    assert_eq!(golden["golden_output"]["errors"][0]["iteration"], 1);
}

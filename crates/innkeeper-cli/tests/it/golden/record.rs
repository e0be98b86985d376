//! Runs with a model over HTTP and a real server are recorded, and replayed without both.

use std::path::Path;
use std::process::{Output, Stdio};

use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply, fixture, mcp_json};
use serde_json::json;

use super::Goldens;
use crate::program::innkeeper;

const KEY: &str = "sk-planted-7Qw3zR9tYb5Nc1Xe";

fn replies() -> [ScriptedReply; 2] {
    [
        ScriptedReply::text("I add.").with_tool_call("fx.add", json!({"a": 2, "b": 3})),
        ScriptedReply::text("It is 5."),
    ]
}

/// Runs `ask` with the fixture server and a scripted model.
async fn ask(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let server = fixture("fx").env("TOKEN", "planted-token-4Hj6");
    std::fs::write(dir.join("mcp.json"), mcp_json([server]).to_string()).unwrap();
    let llm = ScriptedLlm::start(Script::new(replies())).await;
    let base_url = format!("{}/v1", llm.origin());
    let common = ["ask", "--config", "mcp.json", "--provider", "openai", "--base-url", &base_url];
    let mut command = innkeeper(&[&common[..], args].concat(), dir);
    command.env("OPENAI_API_KEY", KEY).envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = tokio::process::Command::from(command).spawn().unwrap();
    child.wait_with_output().await.unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Proves: G63, G64
#[tokio::test]
async fn a_run_is_recorded_for_its_owner_and_replays_without_server_and_model() {
    let goldens = Goldens::new::<0>([]);
    let output = ask(goldens.path(), &["What is 2 + 3?", "--record", "sum.json"], &[]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("recorded: sum.json"), "{}", stderr(&output));
    let text = goldens.read("sum.json");
    for secret in [KEY, "planted-token-4Hj6"] {
        assert!(!text.contains(secret), "{text}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = std::fs::metadata(goldens.path().join("sum.json")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    std::fs::remove_file(goldens.path().join("mcp.json")).unwrap();
    let replay = |args: &[&str]| {
        let args = [&["ask", "--replay", "sum.json"], args].concat();
        let finished = innkeeper(&args, goldens.path()).output().unwrap();
        (
            finished.status.code(),
            String::from_utf8_lossy(&finished.stdout).into_owned(),
            stderr(&finished),
        )
    };
    assert_eq!(replay(&[]), (Some(0), "It is 5.\n".to_owned(), String::new()));
    let (code, _, error) = replay(&["What is 2 + 4?"]);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("is now \"What is 2 + 4?\""), "{error}");
    let (code, _, error) = replay(&["--model", "gpt-4.1"]);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("`/body/model` was \"gpt-6.1-terra\", is now \"gpt-4.1\""), "{error}");
    let (code, _, error) = replay(&["--plan"]);
    assert_eq!(code, Some(2), "{error}");
}

#[tokio::test]
async fn a_new_recording_keeps_the_rules_that_people_wrote() {
    let goldens = Goldens::new::<0>([]);
    ask(goldens.path(), &["Add.", "--record", "sum.json"], &[]).await;
    let text = goldens.read("sum.json");
    let ruled =
        text.replacen("\n  \"servers\"", "\n  \"rules\": {\"outcome\": true},\n  \"servers\"", 1);
    assert_ne!(text, ruled);
    goldens.write("sum.json", &ruled);
    let output = ask(goldens.path(), &["Add.", "--record", "sum.json"], &[]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(goldens.json("sum.json")["rules"]["outcome"], true);
}

#[tokio::test]
async fn recording_is_refused_under_ci_and_where_the_file_cannot_be_written() {
    let goldens = Goldens::new::<0>([]);
    let refused = ask(goldens.path(), &["Add.", "--record", "a.json"], &[("CI", "true")]).await;
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("`--record` is refused where `CI` is set"));
    for file in ["missing/a.json", "."] {
        let refused = ask(goldens.path(), &["Add.", "--record", file], &[]).await;
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(
            stderr(&refused).contains(&format!("cannot write `{file}`")),
            "{}",
            stderr(&refused)
        );
    }
    assert!(!goldens.path().join("a.json").exists());
}

/// Proves: G-b14, G-b18
#[tokio::test]
async fn a_trace_of_two_runs_becomes_two_goldens() {
    let goldens = Goldens::new::<0>([]);
    for _ in 0..2 {
        let output = ask(goldens.path(), &["Add.", "--trace", "runs.jsonl"], &[("CI", "1")]).await;
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let made = goldens.run(&["from-trace", "runs.jsonl", "--out", "made"]);
    assert_eq!(made.code(), Some(0), "{}", stderr(&made.0));
    let replayed = goldens.run(&["replay", "made"]);
    assert_eq!(replayed.code(), Some(0), "{}", stderr(&replayed.0));
    assert!(stderr(&replayed.0).contains("2 goldens: 2 ok"), "{}", stderr(&replayed.0));
}

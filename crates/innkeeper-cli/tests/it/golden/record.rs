//! Runs with a model over HTTP and a real server are recorded, and replayed without both.

use std::path::Path;
use std::process::{Output, Stdio};

use innkeeper_testkit::{Fixture, Script, ScriptedLlm, ScriptedReply, fixture, mcp_json};
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
    ask_with(server, dir, args, variables).await
}

async fn ask_with(
    server: Fixture,
    dir: &Path,
    args: &[&str],
    variables: &[(&str, &str)],
) -> Output {
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

/// Proves: G63
#[tokio::test]
async fn a_golden_is_recorded_if_it_is_missing_and_replayed_if_it_exists() {
    let goldens = Goldens::new::<0>([]);
    let golden = ["What is 2 + 3?", "--golden", "sum.json"];
    let recorded = ask(goldens.path(), &golden, &[]).await;
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    assert!(stderr(&recorded).contains("recorded: sum.json"), "{}", stderr(&recorded));
    let text = goldens.read("sum.json");
    for variables in [&[][..], &[("CI", "true")]] {
        let replayed = ask(goldens.path(), &golden, variables).await;
        assert_eq!(stderr(&replayed), "");
        assert_eq!(String::from_utf8_lossy(&replayed.stdout), "It is 5.\n");
    }
    let other = ["What is 2 + 4?", "--golden", "sum.json"];
    let changed = ask(goldens.path(), &other, &[]).await;
    assert_eq!(changed.status.code(), Some(1), "{}", stderr(&changed));
    assert!(stderr(&changed).contains("is now \"What is 2 + 4?\""), "{}", stderr(&changed));
    let once = [&golden[..], &["--max-iterations", "1"]].concat();
    let changed = ask(goldens.path(), &once, &[]).await;
    assert_eq!(changed.status.code(), Some(1), "{}", stderr(&changed));
    let live = [&golden[..], &["--golden-mode", "live"]].concat();
    let live = ask(goldens.path(), &live, &[("CI", "true")]).await;
    assert!(stderr(&live).contains("called: `fx.add`"), "{}", stderr(&live));
    assert_eq!(goldens.read("sum.json"), text);
}

#[tokio::test]
async fn a_golden_under_ci_is_strict_and_nothing_records() {
    let goldens = Goldens::new::<0>([]);
    let ci = [("CI", "true")];
    let missing = ask(goldens.path(), &["Add.", "--golden", "a.json"], &ci).await;
    assert_eq!(missing.status.code(), Some(2), "{}", stderr(&missing));
    assert!(stderr(&missing).contains("cannot read `a.json`"), "{}", stderr(&missing));
    for mode in ["auto", "record"] {
        let args = ["Add.", "--golden", "a.json", "--golden-mode", mode];
        let refused = ask(goldens.path(), &args, &ci).await;
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        let message = format!("`--golden-mode {mode}` is refused where `CI` is set");
        assert!(stderr(&refused).contains(&message), "{}", stderr(&refused));
    }
    assert!(!goldens.path().join("a.json").exists());
}

#[tokio::test]
async fn an_unused_answer_is_a_warning_and_in_strict_an_error() {
    let goldens = Goldens::new::<0>([]);
    ask(goldens.path(), &["Add.", "--golden", "sum.json"], &[]).await;
    let mut golden = goldens.json("sum.json");
    let last = golden["provider_responses"][1].clone();
    golden["provider_responses"].as_array_mut().unwrap().push(last);
    goldens.write("sum.json", &golden.to_string());
    let unused = "nothing asked for request 3 (iteration 2)";
    for (mode, code) in [("replay", 0), ("auto", 0), ("strict", 1)] {
        let args = ["Add.", "--golden", "sum.json", "--golden-mode", mode];
        let replayed = ask(goldens.path(), &args, &[]).await;
        assert_eq!(replayed.status.code(), Some(code), "{mode}: {}", stderr(&replayed));
        assert!(stderr(&replayed).contains(unused), "{mode}: {}", stderr(&replayed));
    }
}

#[tokio::test]
async fn a_question_of_a_server_is_in_the_recording_of_its_run() {
    let goldens = Goldens::new::<0>([]);
    let server = fixture("fx").switch("--ask-elicit");
    let output = ask_with(server, goldens.path(), &["Add.", "--record", "sum.json"], &[]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    let golden = goldens.json("sum.json");
    assert_eq!(golden["questions"][0]["method"], "elicitation/create");
    assert_eq!(golden["questions"][0]["answer"]["action"], "decline");
    assert_eq!(golden["questions"][0]["call"], 0);
    goldens.run(&["replay", "sum.json"]).succeeds();
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

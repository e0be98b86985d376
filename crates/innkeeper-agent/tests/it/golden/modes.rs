//! Runs of document 002 with a golden, in each mode.

use innkeeper_agent::golden::{GoldenMode, GoldenRunError, mcp_ghost_with_golden};
use innkeeper_testkit::{Script, ScriptedLlm, ScriptedReply, fixture};
use serde_json::json;

use super::{WIRES, config};

/// Returns the replies of two runs.
fn script() -> Script {
    let call = || ScriptedReply::text("I add.").with_tool_call("fx.add", json!({"a": 1, "b": 2}));
    let answer = || ScriptedReply::text("It is 3.");
    Script::new([call(), answer(), call(), answer()])
}

/// Proves: G63, G64
#[tokio::test]
async fn auto_records_once_and_then_replays_without_asking_the_model() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("happy_path_sum.json");
    let llm = ScriptedLlm::start(script()).await;
    let config = config(WIRES[2], &llm, fixture("fx"));
    let recorded = mcp_ghost_with_golden(config.clone(), &file, GoldenMode::Auto).await.unwrap();
    assert_eq!(recorded.result.text, "It is 3.");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"test_name\": \"happy_path_sum\""), "{text}");
    for mode in [GoldenMode::Auto, GoldenMode::Replay, GoldenMode::Strict] {
        let replayed = mcp_ghost_with_golden(config.clone(), &file, mode).await.unwrap();
        assert_eq!(replayed.result.text, "It is 3.", "{mode:?}");
        assert_eq!(replayed.result.stats, recorded.result.stats, "{mode:?}");
    }
    assert_eq!(llm.requests().len(), 2);
    let live = mcp_ghost_with_golden(config, &file, GoldenMode::Live).await.unwrap();
    assert_eq!(live.result.text, "It is 3.");
    assert_eq!(llm.requests().len(), 4);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[tokio::test]
async fn a_replay_has_the_prompts_model_and_settings_of_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sum.json");
    let llm = ScriptedLlm::start(script()).await;
    let recorded = config(WIRES[2], &llm, fixture("fx"));
    mcp_ghost_with_golden(recorded.clone(), &file, GoldenMode::Record).await.unwrap();
    for (change, field) in [
        ("prompt", "was \"Add.\", is now \"Subtract.\""),
        ("system", "was \"Be brief.\", is now \"Be long.\""),
        ("model", "`/body/model` was \"claude-opus-5-5\", is now \"claude-haiku-4-5\""),
    ] {
        let mut config = recorded.clone();
        match change {
            "prompt" => config.user_prompt = "Subtract.".to_owned(),
            "system" => config.settings.system = "Be long.".to_owned(),
            _ => config.model.model = Some("claude-haiku-4-5".to_owned()),
        }
        let replayed = mcp_ghost_with_golden(config, &file, GoldenMode::Strict).await;
        let Err(GoldenRunError::Replay(error)) = replayed else { panic!("{change}") };
        assert!(error.to_string().contains(field), "{error}");
    }
    let mut other = recorded.clone();
    other.model.provider = "ollama".to_owned();
    let replayed = mcp_ghost_with_golden(other, &file, GoldenMode::Replay).await;
    let Err(GoldenRunError::Input(error)) = replayed else { panic!("{replayed:?}") };
    assert_eq!(error.to_string(), "the golden is a run with `anthropic`, not with `ollama`");
    // One call ends the run before the second recorded answer.
    let mut shorter = recorded;
    shorter.settings.limits.max_iterations = 1;
    let replayed = mcp_ghost_with_golden(shorter, &file, GoldenMode::Strict).await;
    assert!(matches!(replayed, Err(GoldenRunError::Replay(_))), "{replayed:?}");
}

#[tokio::test]
async fn strict_without_a_golden_asks_no_model_and_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("missing.json");
    let llm = ScriptedLlm::start(script()).await;
    let config = config(WIRES[2], &llm, fixture("fx"));
    let run = mcp_ghost_with_golden(config, &file, GoldenMode::Strict).await;
    assert!(matches!(run, Err(GoldenRunError::Load(_))), "{run:?}");
    assert!(llm.requests().is_empty() && !file.exists());
}

//! `ask`: a scripted model over HTTP on one side, the fixture server on the other.

use std::process::{Output, Stdio};
use std::time::Duration;

use innkeeper_testkit::{Nonce, Script, ScriptedLlm, Step, fx, mcp_json, wait_gone};
use serde_json::{Value, json};

use crate::program::innkeeper;

fn folder(nonce: &Nonce) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = mcp_json([fx("one").nonce(nonce)]).to_string();
    std::fs::write(folder.path().join("mcp.json"), config).unwrap();
    folder
}

fn json_of(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Asks a scripted model, which is asked for by `words`; the model's address stands for `URL`.
async fn ask(script: Script, words: &[&str]) -> (Output, ScriptedLlm) {
    let nonce = Nonce::new();
    let folder = folder(&nonce);
    let llm = ScriptedLlm::start(script).await;
    let words: Vec<_> = words.iter().map(|word| word.replace("URL", llm.origin())).collect();
    let words: Vec<&str> = ["ask", "--config", "mcp.json"]
        .into_iter()
        .chain(words.iter().map(String::as_str))
        .collect();
    let mut command = innkeeper(&words, folder.path());
    command.env("OPENAI_API_KEY", "sk-planted").env("ANTHROPIC_API_KEY", "sk-planted");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = tokio::process::Command::from(command).spawn().unwrap();
    let output = child.wait_with_output().await.unwrap();
    wait_gone(&nonce, Duration::from_secs(2)).unwrap();
    (output, llm)
}

fn sum() -> Script {
    let call = Step::think("Two numbers.").says("I add.").calls("one.add", json!({"a": 2, "b": 3}));
    Script::new([call.usage(50, 10), Step::say("It is 5.").usage(70, 5)])
}

/// Proves: N7
#[tokio::test]
async fn the_answer_is_data_and_the_calls_are_talk() {
    let (output, llm) =
        ask(sum(), &["What is 2 + 3?", "--provider", "openai", "--base-url", "URL/v1"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "It is 5.\n");
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(talk.contains("`one.add`") && !talk.contains("sk-planted"), "{talk}");
    assert_eq!(llm.requests()[0].path, "/v1/responses");
}

#[tokio::test]
async fn json_has_the_whole_result_with_the_tokens_the_provider_counted() {
    let words = [
        "--json",
        "Add.",
        "--provider",
        "Anthropic",
        "--base-url",
        "URL",
        "--model",
        "claude-opus-5-5",
    ];
    let (output, _) = ask(sum(), &words).await;
    assert_eq!(output.status.code(), Some(0));
    let told = json_of(&output);
    assert_eq!(told["success"], true);
    assert_eq!(told["final_result"], "It is 5.");
    let call = &told["tool_chain"][0];
    assert_eq!(call["tool_name"], "one.add");
    assert_eq!(call["arguments"], json!({"a": 2, "b": 3}));
    assert_eq!((&call["iteration"], &call["success"]), (&json!(1), &json!(true)));
    assert_eq!((&call["error"], &call["retry_attempt"]), (&Value::Null, &json!(0)));
    assert_eq!(
        (&call["mechanism"], &call["reasoning"]),
        (&json!("native"), &json!("Two numbers."))
    );
    assert_eq!(call["result"]["structuredContent"]["sum"], json!(5));
    let metadata = &told["execution_metadata"];
    let tokens = json!({"prompt_tokens": 120, "completion_tokens": 15, "total_tokens": 135, "available": true});
    assert_eq!(metadata["token_usage"], tokens);
    assert_eq!(metadata["total_iterations"], 2);
    assert_eq!(metadata["success_rate"], 100.0);
    assert_eq!(
        (&metadata["provider"], &metadata["model"]),
        (&json!("anthropic"), &json!("claude-opus-5-5"))
    );
}

#[tokio::test]
async fn a_model_that_fails_ends_with_1_and_its_own_words() {
    let refused = Script::new([Step::status(401).error("that key is not one of ours")]);
    let words = ["--json", "Hi", "--provider", "anthropic", "--base-url", "URL"];
    let (output, _) = ask(refused, &words).await;
    assert_eq!(output.status.code(), Some(1));
    let told = json_of(&output);
    assert_eq!(told["success"], false);
    let error = told["error"].as_str().unwrap();
    assert!(error.contains("not one of ours") && error.contains("check the key"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_asked_ends_with_2_and_nothing_is_sent() {
    for (words, wanted) in [
        (&["Hi", "--provider", "watson"][..], "`watson`"),
        (&["Hi", "--provider", "gemini"], "`GOOGLE_API_KEY`"),
        (&["Hi", "--provider", "openai", "--api-key-env", "NONE"], "`NONE`"),
        (&["Hi", "--provider", "openai-compatible"], "`--base-url`"),
        (&["Hi", "--provider", "openai", "--api", "soap"], "`soap`"),
        (&["Hi", "--provider", "scripted"], "--script"),
        (&["Hi", "--provider", "ollama", "--approve", "ask"], "needs a terminal"),
        (&["Hi", "--provider", "ollama", "--max-iterations", "0"], "--max-iterations"),
    ] {
        let (output, llm) = ask(Script::new([]), words).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(wanted), "{words:?}: {said}");
        assert!(llm.requests().is_empty());
    }
}

/// The configuration has an error: that it is not told shows that nothing was looked at before.
#[test]
fn an_address_that_no_model_can_have_is_a_usage_error_before_anything_is_started() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mcp.json"), "{").unwrap();
    for url in ["not a url", "ftp://localhost/v1", "localhost:8080/v1", "http://"] {
        let line =
            ["ask", "x", "--provider", "openai-compatible", "--model", "m", "--base-url", url];
        let refused = crate::program::run(&line, folder.path());
        assert_eq!(refused.status.code(), Some(2), "{url}");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.starts_with("error: `--base-url` is no address of a model: "), "{said}");
    }
}

#[tokio::test]
async fn a_server_with_one_model_is_asked_which_and_by_prompt_where_it_knows_no_tools() {
    let call = Step::say(r#"{"tool": "one.add", "params": {"a": 2, "b": 3}}"#);
    let script = Script::new([call, Step::say("It is 5.")])
        .models(["small"])
        .chat_template_caps(&json!({"supports_tools": false}));
    let words = ["--json", "Add.", "--provider", "openai-compatible", "--base-url", "URL/v1"];
    let (output, llm) = ask(script, &words).await;
    let told = json_of(&output);
    assert_eq!(told["success"], true, "{told}");
    let metadata = &told["execution_metadata"];
    assert_eq!(
        (&metadata["model"], &metadata["tool_calling"]),
        (&json!("small"), &json!("prompt"))
    );
    assert_eq!(told["tool_chain"][0]["mechanism"], "recovered");
    let keys = llm
        .requests()
        .iter()
        .flat_map(|seen| seen.headers.clone())
        .any(|(_, it)| it.contains("planted"));
    assert!(!keys, "a provider's key went to another server");
}

#[tokio::test]
async fn without_approval_nothing_is_run() {
    let words =
        ["--json", "Add.", "--provider", "openai", "--base-url", "URL/v1", "--approve", "never"];
    let (output, _) = ask(sum(), &words).await;
    assert_eq!(output.status.code(), Some(1));
    let told = json_of(&output);
    assert_eq!(told["tool_chain"][0]["success"], false);
    assert!(told["tool_chain"][0]["result"].is_null());
}

/// Proves: P-b5
#[tokio::test]
async fn what_went_wrong_and_then_right_can_be_kept_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lessons.jsonl");
    let bad = Step::say(r#"{"tool": "one.add", "params": {"a": 2}}"#);
    let good = Step::say(r#"{"tool": "one.add", "params": {"a": 2, "b": 3}}"#);
    let script = Script::new([bad, good, Step::say("It is 5.")]);
    let words = [
        "Add 2 and 3.",
        "--provider",
        "ollama",
        "--model",
        "m",
        "--base-url",
        "URL",
        "--tool-calling",
        "prompt",
        "--retries",
        file.to_str().unwrap(),
    ];
    let (output, _) = ask(script, &words).await;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let exported = crate::program::run(&["export-retries", file.to_str().unwrap()], folder.path());
    assert_eq!(exported.status.code(), Some(0));
    let pair = json_of(&exported);
    assert_eq!((&pair["model"], &pair["prompt"]), (&json!("m"), &json!("Add 2 and 3.")));
    assert_eq!(pair["rejected"], r#"{"tool": "one.add", "params": {"a": 2}}"#);
    assert_eq!(pair["chosen"], r#"{"tool": "one.add", "params": {"a": 2, "b": 3}}"#);
    assert!(pair["problem"].as_str().unwrap().contains("`b`"), "{pair}");
    std::fs::write(&file, "{}\n").unwrap();
    let wrong = crate::program::run(&["export-retries", file.to_str().unwrap()], folder.path());
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("lessons.jsonl:1"));
}

#[tokio::test]
async fn a_key_that_its_provider_says_is_not_kept_with_what_went_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lessons.jsonl");
    let unread = "error parsing tool call: raw='{\"a\": sk-planted', err=x";
    let bad = Step::say(r#"{"tool": "one.add", "params": {"a": "sk-planted"}}"#);
    let good = r#"{"tool": "one.add", "params": {"a": 2, "b": 3}} said sk-planted"#;
    let script =
        Script::new([Step::status(500).error(unread), bad, Step::say(good), Step::say("It is 5.")]);
    let words = [
        "Say sk-planted.",
        "--provider",
        "ollama",
        "--model",
        "m",
        "--base-url",
        "URL",
        "--api-key-env",
        "OPENAI_API_KEY",
        "--tool-calling",
        "prompt",
        "--retries",
        file.to_str().unwrap(),
    ];
    let (output, _) = ask(script, &words).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let kept = std::fs::read_to_string(&file).unwrap();
    let lesson: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(lesson["asked"], "Say ***.");
    assert_eq!(lesson["attempts"].as_array().map(Vec::len), Some(2), "{kept}");
    assert!(lesson["corrected"].as_str().unwrap().contains("***"), "{kept}");
    assert!(!kept.contains("planted"), "{kept}");
}

#[tokio::test]
async fn a_script_takes_the_place_of_a_model_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script.json");
    let script = json!([
        {"calls": [{"name": "one.echo", "arguments": {"message": "hi"}}]},
        {"text": "It said hi."},
    ]);
    std::fs::write(&file, script.to_string()).unwrap();
    let words = ["--json", "Echo.", "--provider", "scripted", "--script", file.to_str().unwrap()];
    let (output, _) = ask(Script::new([]), &words).await;
    let told = json_of(&output);
    assert_eq!((&told["success"], &told["final_result"]), (&json!(true), &json!("It said hi.")));
    assert_eq!(told["execution_metadata"]["provider"], "scripted");
}

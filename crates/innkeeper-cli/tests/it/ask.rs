//! Tests of `ask` with a scripted model over HTTP and the fixture server.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use innkeeper_testkit::{
    Fixture, ProcessTag, Script, ScriptedLlm, ScriptedReply, fixture, mcp_json, wait_gone,
};
use serde_json::{Value, json};

use crate::commands::guarded_payloads;
use crate::program::innkeeper;

fn config_dir(server: Fixture) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mcp.json"), mcp_json([server]).to_string()).unwrap();
    dir
}

fn stdout_json(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

/// Runs `ask` with a scripted model; `URL` in the arguments stands for the model's address.
async fn run_ask(script: Script, args: &[&str]) -> (Output, ScriptedLlm) {
    run_ask_with_server(fixture("one"), script, args).await
}

/// Runs `ask` as [`run_ask`] does, with this server.
async fn run_ask_with_server(
    server: Fixture,
    script: Script,
    args: &[&str],
) -> (Output, ScriptedLlm) {
    let tag = ProcessTag::new();
    let dir = config_dir(server.process_tag(&tag));
    let llm = ScriptedLlm::start(script).await;
    let args: Vec<_> = args.iter().map(|arg| arg.replace("URL", llm.origin())).collect();
    let args: Vec<&str> = ["ask", "--config", "mcp.json"]
        .into_iter()
        .chain(args.iter().map(String::as_str))
        .collect();
    let mut command = innkeeper(&args, dir.path());
    command.env("OPENAI_API_KEY", "sk-planted").env("ANTHROPIC_API_KEY", "sk-planted");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = tokio::process::Command::from(command).spawn().unwrap();
    let output = child.wait_with_output().await.unwrap();
    wait_gone(&tag, Duration::from_secs(2)).unwrap();
    (output, llm)
}

fn sum_script() -> Script {
    let call = ScriptedReply::reasoning("Two numbers.")
        .with_text("I add.")
        .with_tool_call("one.add", json!({"a": 2, "b": 3}));
    Script::new([call.with_usage(50, 10), ScriptedReply::text("It is 5.").with_usage(70, 5)])
}

/// Proves: N7
#[tokio::test]
async fn the_response_goes_to_stdout_and_the_calls_to_stderr() {
    let (output, llm) =
        run_ask(sum_script(), &["What is 2 + 3?", "--provider", "openai", "--base-url", "URL/v1"])
            .await;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "It is 5.\n");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("`one.add`") && !stderr.contains("sk-planted"), "{stderr}");
    assert_eq!(llm.requests()[0].path, "/v1/responses");
}

#[tokio::test]
async fn the_warnings_and_the_tokens_of_a_run_go_to_stderr() {
    let call = || ScriptedReply::tool_call("one.add", json!({"a": 2, "b": 3})).with_usage(50, 10);
    let done = ScriptedReply::text("It is 5.").with_usage(70, 5);
    let script = Script::new([call(), call(), done]);
    let (output, _llm) =
        run_ask(script, &["Add.", "--provider", "anthropic", "--base-url", "URL"]).await;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "It is 5.\n");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let labels: Vec<_> = stderr.lines().filter_map(|line| line.split_once(": ")).collect();
    let [called, again, warning, usage] = &labels[..] else { panic!("{stderr}") };
    assert_eq!([called.0, again.0, warning.0], ["called", "called", "warning"]);
    assert!(warning.1.contains("`one.add` already returned this result"), "{stderr}");
    assert_eq!(*usage, ("usage", "170 input tokens, 25 output tokens"));
}

/// Proves: G-b12
#[tokio::test]
async fn a_resource_to_which_a_result_links_can_be_read() {
    let link = json!({"type": "resource_link", "uri": "fx://shared", "name": "note"});
    let server = fixture("one").with("--call-result", json!({"content": [link]}));
    let call = |tool: &str, arguments| ScriptedReply::tool_call(tool, arguments);
    let script = Script::new([
        call("one.echo", json!({"message": "find"})),
        call("read_resource", json!({"uri": "fx://shared"})),
        ScriptedReply::text("Read."),
    ]);
    let args = ["--json", "Read.", "--provider", "anthropic", "--base-url", "URL"];
    let (output, _llm) = run_ask_with_server(server, script, &args).await;
    let read = &stdout_json(&output)["tool_chain"][1];
    assert!(read["result"].to_string().contains("fx://shared, reading 1"), "{read}");
}

#[tokio::test]
async fn json_has_the_whole_result_with_the_tokens_the_provider_counted() {
    let args = [
        "--json",
        "Add.",
        "--provider",
        "Anthropic",
        "--base-url",
        "URL",
        "--model",
        "claude-opus-5-5",
    ];
    let (output, _) = run_ask(sum_script(), &args).await;
    assert_eq!(output.status.code(), Some(0));
    let result = stdout_json(&output);
    assert_eq!(result["success"], true);
    assert_eq!(result["final_result"], "It is 5.");
    let summary = "The model finished after 2 responses; 1 of 1 tool call succeeded. It called \
                   `one.add` once.";
    assert_eq!(result["summary"], summary);
    let call = &result["tool_chain"][0];
    assert_eq!(call["tool_name"], "one.add");
    assert_eq!(call["arguments"], json!({"a": 2, "b": 3}));
    assert_eq!((&call["iteration"], &call["success"]), (&json!(1), &json!(true)));
    assert_eq!((&call["error"], &call["retry_attempt"]), (&Value::Null, &json!(0)));
    assert_eq!(
        (&call["mechanism"], &call["reasoning"]),
        (&json!("native"), &json!("Two numbers."))
    );
    assert_eq!(call["result"]["structuredContent"]["sum"], json!(5));
    let metadata = &result["execution_metadata"];
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
async fn a_model_that_fails_ends_with_1_and_its_own_message() {
    let script =
        Script::new([ScriptedReply::status(401).with_error_message("that key is not one of ours")]);
    let args = ["--json", "Hi", "--provider", "anthropic", "--base-url", "URL"];
    let (output, _) = run_ask(script, &args).await;
    assert_eq!(output.status.code(), Some(1));
    let result = stdout_json(&output);
    assert_eq!(result["success"], false);
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("not one of ours") && error.contains("check the API key"), "{error}");
}

#[tokio::test]
async fn an_invalid_request_ends_with_2_and_nothing_is_sent() {
    for (args, expected) in [
        (&["Hi", "--provider", "watson"][..], "`watson`"),
        (&["Hi", "--provider", "gemini"], "`GOOGLE_API_KEY`"),
        (&["Hi", "--provider", "openai", "--api-key-env", "NONE"], "`NONE`"),
        (&["Hi", "--provider", "openai-compatible"], "`--base-url`"),
        (&["Hi", "--provider", "openai", "--api", "soap"], "`soap`"),
        (&["Hi", "--provider", "scripted"], "--script"),
        (&["Hi", "--provider", "ollama", "--approve", "ask"], "needs a terminal"),
        (&["Hi", "--provider", "ollama", "--max-iterations", "0"], "--max-iterations"),
    ] {
        let (output, llm) = run_ask(Script::new([]), args).await;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
        assert!(llm.requests().is_empty());
    }
}

#[tokio::test]
async fn with_json_a_run_that_does_not_begin_has_the_same_result_as_any_other() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("broken.json"), "{").unwrap();
    std::fs::write(dir.path().join("mcp.json"), mcp_json([fixture("one")]).to_string()).unwrap();
    for (args, expected) in [
        (&["Hi", "--provider", "watson"][..], "supported: `openai`"),
        (&["Hi", "--provider", "anthropic"], "ANTHROPIC_API_KEY"),
        (&["Hi", "--provider", "ollama", "--config", "broken.json"], "broken.json"),
        (&["Hi", "--provider", "ollama", "--config", "missing.json"], "missing.json"),
        (&["Hi"], "no model selected"),
        (&["Hi", "--provider", "scripted"], "--script"),
        (&["Hi", "--provider", "ollama", "--temperature", "3"], "from 0 to 2"),
    ] {
        let args = [&["ask", "--json"], args].concat();
        let output = crate::program::run(&args, dir.path());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let result = stdout_json(&output);
        assert_eq!((&result["success"], &result["tool_chain"]), (&json!(false), &json!([])));
        let error = result["error"].as_str().unwrap_or_else(|| panic!("{result}"));
        assert!(error.contains(expected), "{error}");
        assert_eq!(result["errors"][0]["error"], result["error"]);
        let metadata = &result["execution_metadata"];
        assert_eq!(metadata["total_iterations"], 0, "{metadata}");
        assert_eq!(metadata["success_rate"], json!(0.0), "{metadata}");
    }
}

#[tokio::test]
async fn an_unknown_provider_is_answered_with_all_names() {
    let (output, _) = run_ask(Script::new([]), &["Hi", "--provider", "watson"]).await;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    for name in
        ["openai", "openai-compatible", "anthropic", "gemini", "ollama", "local", "scripted"]
    {
        assert!(stderr.contains(&format!("`{name}`")), "{name}: {stderr}");
    }
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_has_no_iteration() {
    let model = ["--provider", "ollama", "--model", "m", "--base-url", "http://127.0.0.1:9"];
    let (output, _) = run_ask(Script::new([]), &[&["--json", "Hi"], &model[..]].concat()).await;
    let result = stdout_json(&output);
    let metadata = &result["execution_metadata"];
    assert_eq!(
        (&metadata["total_iterations"], &metadata["success_rate"]),
        (&json!(0), &json!(0.0))
    );
    assert!(result["summary"].as_str().unwrap().contains("No response"), "{result}");
    assert_eq!(output.status.code(), Some(1));
}

#[tokio::test]
async fn the_options_of_document_002_reach_the_run() {
    let call = |text: &str| {
        ScriptedReply::text(text).with_tool_call("db_one.add", json!({"a": 2, "b": 3}))
    };
    let script = Script::new([call("First."), call("Second."), ScriptedReply::text("It is 5.")]);
    let model = ["--provider", "openai-compatible", "--base-url", "URL/v1", "--model", "m"];
    let options = ["--json", "Add.", "--namespace", "db", "--no-memory", "--temperature", "0.3"];
    let (output, llm) = run_ask(script, &[&options[..], &model[..]].concat()).await;
    let result = stdout_json(&output);
    assert_eq!(result["tool_chain"][0]["tool_name"], "one.add", "{result}");
    let mut requests = llm.requests();
    requests.retain(|request| request.path == "/v1/chat/completions");
    assert_eq!(requests[0].body["temperature"], json!(0.3));
    assert!(requests[0].body["tools"].to_string().contains("db_one"), "{}", requests[0].body);
    let last = requests[2].body["messages"].to_string();
    assert!(last.contains("Second.") && !last.contains("First."), "{last}");

    let fail = ScriptedReply::tool_call("one.fail", json!({}));
    let script = Script::new([fail, ScriptedReply::text("unused")]);
    let options = ["--json", "Fail.", "--no-backtracking"];
    let (output, llm) = run_ask(script, &[&options[..], &model[..]].concat()).await;
    let mut requests = llm.requests();
    requests.retain(|request| request.path == "/v1/chat/completions");
    let error = stdout_json(&output)["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("backtracking is disabled"), "{error}");
    assert_eq!((output.status.code(), requests.len()), (Some(1), 1));
    for wrong in ["2.1", "-1", "warm"] {
        let line = ["ask", "Hi", "--provider", "ollama", "--temperature", wrong];
        let output = crate::program::run(&line, Path::new("."));
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

#[tokio::test]
async fn a_server_that_is_lost_during_the_run_is_named_to_the_model_with_its_tools() {
    let server = fixture("one").with("--crash-after", 1);
    let echo = || ScriptedReply::tool_call("one.echo", json!({"message": "hi"}));
    let script = Script::new([echo(), echo(), ScriptedReply::text("It is gone.")]);
    let args = ["--json", "Echo.", "--provider", "anthropic", "--base-url", "URL"];
    let (output, llm) = run_ask_with_server(server, script, &args).await;
    let requests = llm.requests();
    for request in &requests[1..] {
        let messages = request.body["messages"].as_array().unwrap();
        let told = messages.last().unwrap().to_string();
        assert!(told.contains("server `one` is unavailable"), "{told}");
        assert!(told.contains("`one.echo`") && told.contains("`one.add`"), "{told}");
    }
    let result = stdout_json(&output);
    let errors = result["errors"].to_string();
    assert!(errors.contains("The server `one` is unavailable"), "{errors}");
    assert!(result["execution_metadata"]["tools_discovered"].as_u64() > Some(1), "{result}");
}

/// The configuration is invalid: no error about it shows that the URL is checked first.
#[test]
fn an_invalid_base_url_is_a_usage_error_before_anything_is_started() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mcp.json"), "{").unwrap();
    for url in ["not a url", "ftp://localhost/v1", "localhost:8080/v1", "http://"] {
        let line =
            ["ask", "x", "--provider", "openai-compatible", "--model", "m", "--base-url", url];
        let output = crate::program::run(&line, dir.path());
        assert_eq!(output.status.code(), Some(2), "{url}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with("error: invalid `--base-url`: "), "{stderr}");
    }
}

#[tokio::test]
async fn a_server_with_one_model_is_queried_for_its_name_and_prompted_where_it_has_no_tool_support()
{
    let call = ScriptedReply::text(r#"{"tool": "one.add", "params": {"a": 2, "b": 3}}"#);
    let script = Script::new([call, ScriptedReply::text("It is 5.")])
        .models(["small"])
        .chat_template_caps(&json!({"supports_tools": false}));
    let args = ["--json", "Add.", "--provider", "openai-compatible", "--base-url", "URL/v1"];
    let (output, llm) = run_ask(script, &args).await;
    let result = stdout_json(&output);
    assert_eq!(result["success"], true, "{result}");
    let metadata = &result["execution_metadata"];
    assert_eq!(
        (&metadata["model"], &metadata["tool_calling"]),
        (&json!("small"), &json!("prompt"))
    );
    assert_eq!(result["tool_chain"][0]["mechanism"], "recovered");
    let keys = llm
        .requests()
        .iter()
        .flat_map(|request| request.headers.clone())
        .any(|(_, value)| value.contains("planted"));
    assert!(!keys, "a provider's key went to another server");
}

#[tokio::test]
async fn the_json_has_the_cost_that_the_provider_reports() {
    let call = ScriptedReply::tool_call("one.add", json!({"a": 2, "b": 3})).with_usage(50, 10);
    let replies =
        [call.with_cost(0.1), ScriptedReply::text("It is 5.").with_usage(70, 5).with_cost(0.2)];
    let model = ["--provider", "openai-compatible", "--base-url", "URL/v1", "--model", "m"];
    let (output, _) =
        run_ask(Script::new(replies), &[&["--json", "Add."], &model[..]].concat()).await;
    let result = stdout_json(&output);
    let metadata = &result["execution_metadata"];
    assert_eq!(metadata["token_usage"]["cost"], json!(0.3), "{result}");
    let costs = metadata["token_usage_by_iteration"].as_array().unwrap().iter();
    let costs: Vec<&Value> = costs.map(|usage| &usage["cost"]).collect();
    assert_eq!(costs, [&json!(0.1), &json!(0.2)]);
}

#[tokio::test]
async fn without_approval_nothing_is_run() {
    let args =
        ["--json", "Add.", "--provider", "openai", "--base-url", "URL/v1", "--approve", "never"];
    let (output, _) = run_ask(sum_script(), &args).await;
    assert_eq!(output.status.code(), Some(1));
    let result = stdout_json(&output);
    let error = &result["errors"][0];
    assert_eq!((&error["iteration"], &error["recovery_action"]), (&json!(1), &Value::Null));
    assert_eq!(error["tool_call_id"], result["tool_chain"][0]["tool_call_id"]);
    assert!(!error["error"].as_str().unwrap_or_default().is_empty(), "{error}");
    assert_eq!(result["tool_chain"][0]["success"], false);
    assert!(result["tool_chain"][0]["result"].is_null());
}

/// Proves: P-b5
#[tokio::test]
async fn corrected_calls_can_be_stored_and_exported() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lessons.jsonl");
    let bad = ScriptedReply::text(r#"{"tool": "one.add", "params": {"a": 2}}"#);
    let valid_call = ScriptedReply::text(r#"{"tool": "one.add", "params": {"a": 2, "b": 3}}"#);
    let script = Script::new([bad, valid_call, ScriptedReply::text("It is 5.")]);
    let args = [
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
    let (output, _) = run_ask(script, &args).await;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let exported = crate::program::run(&["export-retries", file.to_str().unwrap()], dir.path());
    assert_eq!(exported.status.code(), Some(0));
    let pair = stdout_json(&exported);
    assert_eq!((&pair["model"], &pair["prompt"]), (&json!("m"), &json!("Add 2 and 3.")));
    assert_eq!(pair["rejected"], r#"{"tool": "one.add", "params": {"a": 2}}"#);
    assert_eq!(pair["chosen"], r#"{"tool": "one.add", "params": {"a": 2, "b": 3}}"#);
    assert!(pair["problem"].as_str().unwrap().contains("`b`"), "{pair}");
    std::fs::write(&file, "{}\n").unwrap();
    let wrong = crate::program::run(&["export-retries", file.to_str().unwrap()], dir.path());
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("lessons.jsonl:1"));
}

/// Attack: secrets | a model repeats the API key in rejected calls | the stored corrections contain
/// a mask | Secrets do not print
#[tokio::test]
async fn an_api_key_in_a_response_is_not_stored_with_corrections() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lessons.jsonl");
    let unread = "error parsing tool call: raw='{\"a\": sk-planted', err=x";
    let bad = ScriptedReply::text(r#"{"tool": "one.add", "params": {"a": "sk-planted"}}"#);
    let valid_call = r#"{"tool": "one.add", "params": {"a": 2, "b": 3}} said sk-planted"#;
    let script = Script::new([
        ScriptedReply::status(500).with_error_message(unread),
        bad,
        ScriptedReply::text(valid_call),
        ScriptedReply::text("It is 5."),
    ]);
    let args = [
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
    let (output, _) = run_ask(script, &args).await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let written = std::fs::read_to_string(&file).unwrap();
    let lesson: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(lesson["asked"], "Say ***.");
    assert_eq!(lesson["attempts"].as_array().map(Vec::len), Some(2), "{written}");
    assert!(lesson["corrected"].as_str().unwrap().contains("***"), "{written}");
    assert!(!written.contains("planted"), "{written}");
}

#[tokio::test]
async fn a_script_replaces_a_model_and_the_output_reports_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("script.json");
    let script = json!([
        {"calls": [{"name": "one.echo", "arguments": {"message": "hi"}}]},
        {"text": "It said hi."},
    ]);
    std::fs::write(&file, script.to_string()).unwrap();
    let args = ["--json", "Echo.", "--provider", "scripted", "--script", file.to_str().unwrap()];
    let (output, _) = run_ask(Script::new([]), &args).await;
    let result = stdout_json(&output);
    assert_eq!(
        (&result["success"], &result["final_result"]),
        (&json!(true), &json!("It said hi."))
    );
    assert_eq!(result["execution_metadata"]["provider"], "scripted");
}

/// Attack: data | under `refuse`, the injection is hidden by a second member of the same name, or is
/// in a block of an unknown type | nothing of the result reaches the model or the output
/// | Complete checks
#[tokio::test]
async fn a_result_whose_payload_is_hidden_by_a_duplicate_key_does_not_reach_the_model() {
    for result in guarded_payloads() {
        let server =
            fixture("one").with("--call-result-text", &result).config_key("guard", json!("refuse"));
        let call = ScriptedReply::tool_call("one.echo", json!({"message": "hi"}));
        let script = Script::new([call, ScriptedReply::text("Done.")]);
        let args = ["--json", "Echo.", "--provider", "anthropic", "--base-url", "URL"];
        let (output, llm) = run_ask_with_server(server, script, &args).await;
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(llm.requests().len(), 2, "{stderr}");
        let request = llm.requests()[1].body.to_string();
        assert!(request.contains("was withheld after the call ran"), "{request}");
        for text in [&*request, &stdout, &stderr] {
            assert!(!text.contains("PAYLOAD") && !text.contains("harmless"), "{result}: {text}");
        }
    }
}

/// Attack: secrets | a server repeats a value of `env` in a JSON-RPC error of a call | the line about
/// the call has a mask | Secrets do not print
#[tokio::test]
async fn a_secret_in_the_error_of_a_call_is_masked_in_the_line_about_the_call() {
    let secret = "canary-5d1c-secret";
    let server = fixture("one").env("KEY", secret).with("--server-error", -32000);
    let server = server.with("--error-text", format!("the key {secret} is wrong"));
    let call = ScriptedReply::tool_call("one.echo", json!({"message": "hi"}));
    let script = Script::new([call, ScriptedReply::text("Done.")]);
    let args = ["Echo.", "--provider", "anthropic", "--base-url", "URL"];
    let (output, _llm) = run_ask_with_server(server, script, &args).await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("the key *** is wrong"), "{stderr}");
    assert!(!stderr.contains(secret), "{stderr}");
}

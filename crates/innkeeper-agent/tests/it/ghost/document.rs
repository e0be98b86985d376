//! The run as document 002 describes it.

use innkeeper_agent::transport::{ModelRule, ModelSelector, PromptCondition};

use super::*;
use crate::whole_results::assert_schema;

/// Returns the texts of the results in the last message of a request to Anthropic.
fn last_message(llm: &ScriptedLlm, request: usize) -> String {
    let requests = llm.requests();
    requests[request].body["messages"].as_array().unwrap().last().unwrap().to_string()
}

fn echo(message: &str) -> ScriptedReply {
    ScriptedReply::tool_call("fx.echo", json!({"message": message}))
}

/// Proves: G2, G3, G4
#[tokio::test]
async fn the_tools_of_a_stdio_server_are_discovered_and_offered_to_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let server = fixture("fx").journal(&journal);
    let (result, llm) = run_with(server, [ScriptedReply::text("Hello.")], |_| {}).await;
    let journal = Journal::read(&journal);
    assert_eq!((journal.count("initialize"), journal.count("tools/list")), (1, 1));
    let offered = llm.requests()[0].body["tools"].as_array().unwrap().clone();
    assert_eq!(result["execution_metadata"]["tools_discovered"], json!(offered.len()));
    let echo = offered.iter().find(|tool| tool["name"] == "fx_echo").unwrap();
    assert_eq!(echo["description"], "Says the message back.");
    assert_eq!(echo["input_schema"]["required"], json!(["message"]));
}

/// Proves: G5, G11, G24
#[tokio::test]
async fn a_call_of_the_model_reaches_the_server_and_its_last_text_is_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let server = fixture("fx").journal(&journal);
    let replies = [
        ScriptedReply::text("I say it.").with_tool_call("fx.echo", json!({"message": "hi"})),
        ScriptedReply::text("It said hi."),
    ];
    let (result, llm) = run_with(server, replies, |_| {}).await;
    let journal = Journal::read(&journal);
    assert_eq!(journal.params("tools/call")[0]["arguments"], json!({"message": "hi"}));
    assert!(last_message(&llm, 1).contains("\"hi\""));
    assert_eq!(result["final_result"], "It said hi.");
    let history = result["conversation_history"].as_array().unwrap();
    assert_eq!(history.last().unwrap()["content"], result["final_result"]);
}

/// Proves: G6, G72
#[tokio::test]
async fn arguments_of_every_type_reach_the_tool_and_the_result_fits_its_schema() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let tools = json!([{"name": "any", "inputSchema": {"type": "object"}}]).to_string();
    let arguments = json!({
        "text": "größer \"q\"", "whole": -3, "number": 1.5, "yes": true, "none": null,
        "list": [1, ["a"], {}], "object": {"inner": {"list": []}},
    });
    let server = fixture("fx").with("--tools", &tools).journal(&journal);
    let replies =
        [ScriptedReply::tool_call("fx.any", arguments.clone()), ScriptedReply::text("Done.")];
    let (result, _llm) = run_with(server, replies, |_| {}).await;
    assert_eq!(Journal::read(&journal).params("tools/call")[0]["arguments"], arguments);
    assert_eq!(result["tool_chain"][0]["arguments"], arguments);
    assert_schema(&result);
    let llm = ScriptedLlm::start(Script::new([ScriptedReply::text("No.")])).await;
    let mut failed = config(json!({}), &llm);
    failed.model.provider = "nobody".to_owned();
    assert_schema(&to_json(&mcp_ghost(failed).await));
}

/// Proves: G23, G25
#[tokio::test]
async fn a_run_succeeds_if_the_model_finishes_and_not_every_call_failed() {
    let fail = || ScriptedReply::tool_call("fx.fail", json!({}));
    let done = || ScriptedReply::text("Done.");
    let cases = [
        (vec![done()], true, "The model finished after 1 response; no tool was called."),
        (
            vec![fail(), echo("a"), done()],
            true,
            "The model finished after 3 responses; 1 of 2 tool calls succeeded. It called `fx.fail` once \
             (failed) and `fx.echo` once.",
        ),
        (
            vec![fail(), done()],
            false,
            "The model finished after 2 responses; 0 of 1 tool call succeeded. It called `fx.fail` once \
             (failed).",
        ),
        (
            vec![echo("a"), echo("b"), done()],
            false,
            "The model did not finish after 3 responses; 2 of 2 tool calls succeeded. It called \
             `fx.echo` twice.",
        ),
        (
            vec![echo("a"), ScriptedReply::status(401)],
            false,
            "The model did not finish after 1 response; 1 of 1 tool call succeeded. It called `fx.echo` \
             once.",
        ),
    ];
    for (replies, success, summary) in cases {
        // The fourth course ends at the limit.
        let limit = if success { 3 } else { 2 };
        let server = fixture("fx");
        let (result, _llm) =
            run_with(server, replies, |config| config.settings.limits.max_iterations = limit).await;
        assert_eq!(result["success"], json!(success), "{result:#}");
        assert_eq!(result["summary"], summary);
        assert_eq!(result.get("error").is_some(), !success);
        // A failure that the model recovered from stays in the errors.
        let failures = result["tool_chain"].as_array().unwrap();
        let failures = failures.iter().filter(|call| call["success"] == false).count();
        let recorded = result["errors"].as_array().unwrap();
        let recorded = recorded.iter().filter(|error| error["tool_name"] == "fx.fail").count();
        assert_eq!(recorded, failures);
    }
}

/// Proves: G39, G44
#[tokio::test]
async fn a_tool_that_no_server_has_is_an_error_for_the_model_and_nothing_runs() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let server = fixture("fx").journal(&journal);
    let replies = [
        ScriptedReply::tool_call("bash.run", json!({"command": "id"})),
        ScriptedReply::tool_call("fx.no_such_tool", json!({})),
        ScriptedReply::text("I cannot."),
    ];
    let (result, llm) = run_with(server, replies, |_| {}).await;
    assert_eq!(Journal::read(&journal).count("tools/call"), 0);
    for request in [1, 2] {
        let told = last_message(&llm, request);
        assert!(told.contains("\"is_error\":true") && told.contains("no tool"), "{told}");
    }
    let chain = result["tool_chain"].as_array().unwrap();
    let names: Vec<_> = chain.iter().map(|call| &call["tool_name"]).collect();
    assert_eq!(names, ["bash.run", "fx.no_such_tool"]);
    assert!(chain.iter().all(|call| call["success"] == false && call["result"].is_null()));
    assert_eq!(result["execution_metadata"]["success_rate"], json!(0.0));
    assert_eq!(result["success"], json!(false), "nothing but rejected calls");
    assert_eq!(result["errors"].as_array().unwrap().len(), 3);
}

/// Proves: G-b7
#[tokio::test]
async fn the_times_of_a_tool_are_those_of_the_calls_that_the_tool_ran() {
    let fail = |at: u32| ScriptedReply::tool_call("fx.fail", json!({"attempt": at}));
    let replies = (1..=4).map(fail).chain([ScriptedReply::text("I give up.")]);
    let (result, _llm) = run_with(fixture("fx").with("--slow", 30), replies, |_| {}).await;
    assert_eq!(result["tool_chain"].as_array().unwrap().len(), 4, "the last call is refused");
    let times = &result["execution_metadata"]["tool_times"]["fx.fail"];
    assert_eq!(times["calls"], json!(3));
    assert!(times["p50"].as_f64().unwrap() >= 0.03, "{times}");
}

/// Proves: G51
#[tokio::test]
async fn results_that_contradict_each_other_are_both_in_the_last_request() {
    let replies =
        [echo("The price is 10."), echo("The price is 12."), ScriptedReply::text("10 or 12.")];
    let (result, llm) = run_with(fixture("fx"), replies, |_| {}).await;
    let last = &llm.requests()[2].text;
    assert!(last.contains("The price is 10.") && last.contains("The price is 12."), "{last}");
    assert_eq!(result["final_result"], "10 or 12.");
}

/// Proves: G15, G17
#[tokio::test]
async fn the_key_and_the_model_of_the_parameters_reach_the_provider() {
    for (key, variable, expected) in [(Some("mine"), "other", "mine"), (None, "other", "other")] {
        let llm = ScriptedLlm::start(Script::new([ScriptedReply::text("Hello.")])).await;
        let environment = Environment::from_pairs([("ANTHROPIC_API_KEY", variable)]);
        let mut config = GhostConfig { environment, ..config(json!({"mcpServers": {}}), &llm) };
        config.model.key = key.map(Secret::new);
        config.model.model = Some("claude-of-mine".to_owned());
        let result = to_json(&mcp_ghost(config).await);
        assert_eq!(result["success"], json!(true), "{result}");
        let sent = llm.requests().remove(0);
        assert_eq!(sent.header("x-api-key"), Some(expected));
        assert_eq!(sent.body["model"], json!("claude-of-mine"));
    }
}

/// Proves: G21
#[tokio::test]
async fn without_backtracking_a_run_ends_at_its_first_failure_with_a_result() {
    let fail = ScriptedReply::tool_call("fx.fail", json!({}));
    let replies = [echo("one"), fail, ScriptedReply::text("unused")];
    let (result, llm) =
        run_with(fixture("fx"), replies, |config| config.settings.tool_use.backtracking = false)
            .await;
    assert_eq!(result["success"], json!(false), "{result}");
    let chain = result["tool_chain"].as_array().unwrap();
    assert_eq!(chain.iter().map(|call| &call["success"]).collect::<Vec<_>>(), [true, false]);
    assert_eq!(llm.requests().len(), 2, "the model is not asked again");
}

/// Proves: G-b2
#[tokio::test]
async fn the_prompt_selects_the_provider_by_the_first_rule_that_applies() {
    for (user_prompt, path) in [("Run this SQL.", "/v1/chat/completions"), ("Hi.", "/v1/messages")]
    {
        let llm = ScriptedLlm::start(Script::new([ScriptedReply::text("Hello.")])).await;
        let model = ModelSelector {
            provider: "openai-compatible".to_owned(),
            model: Some("coder".to_owned()),
            base_url: Some(format!("{}/v1", llm.origin())),
            ..ModelSelector::default()
        };
        let condition =
            PromptCondition { any_word: vec!["sql".to_owned()], ..PromptCondition::default() };
        let config = GhostConfig {
            user_prompt: user_prompt.to_owned(),
            model_rules: vec![ModelRule { condition, model }],
            ..config(json!({"mcpServers": {}}), &llm)
        };
        assert_eq!(to_json(&mcp_ghost(config).await)["final_result"], "Hello.");
        assert_eq!(llm.requests()[0].path, path);
    }
}

/// Proves: G-b8
#[tokio::test]
async fn a_run_with_a_plan_has_the_plan_as_a_message_before_its_calls() {
    let plan = json!({"steps": [{"id": "1", "tool": "fx.echo"}]}).to_string();
    let replies = [ScriptedReply::text(plan), echo("one"), ScriptedReply::text("Done.")];
    let (result, _llm) =
        run_with(fixture("fx"), replies, |config| config.settings.tool_use.planning = true).await;
    assert_eq!(result["final_result"], "Done.", "{result}");
    let history = result["conversation_history"].as_array().unwrap();
    let is_plan = |message: &Value| {
        let text = message["content"].as_str().unwrap_or_default();
        message["role"] == "assistant" && text.starts_with("{\"steps\":")
    };
    let planned = history.iter().position(is_plan).expect("the plan is a message");
    let called = history.iter().position(|message| message["tool_calls"].is_array()).unwrap();
    assert!(planned < called, "{history:#?}");
}

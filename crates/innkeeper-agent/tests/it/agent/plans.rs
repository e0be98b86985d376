//! Runs with a plan.

use std::time::Duration;

use innkeeper_agent::agent::{AgentEvent, AgentSettings};
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{LlmError, LlmErrorKind, Response, ScriptedProvider};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{AgentHarness, ModelReply, call_reply, harness, text_reply};

fn planning_harness(replies: impl IntoIterator<Item = ModelReply>) -> AgentHarness {
    let mut settings = AgentSettings::default();
    settings.tool_use.planning = true;
    harness(ScriptedProvider::new(replies), settings)
}

fn plan_reply(steps: &Value) -> ModelReply {
    Ok(Response::from_text(json!({"steps": steps}).to_string()))
}

fn text_of(message: &Message) -> String {
    match message {
        Message::User(content) => content.to_text().into_owned(),
        Message::Assistant(assistant) => assistant.visible_text(),
        Message::ToolResults(results) => {
            results.iter().map(|result| result.content.to_text()).collect()
        }
    }
}

/// Proves: G-b4, G-b8
#[tokio::test(start_paused = true)]
async fn a_call_waits_for_the_call_that_its_step_needs_and_an_independent_call_does_not() {
    let steps = json!([
        {"id": "1", "tool": "clock.nap", "purpose": "First."},
        {"id": "2", "tool": "clock.nap", "after": ["1"]},
        {"id": "3", "tool": "clock.nap"},
    ]);
    let calls = Response::from_tool_calls([
        ("clock.nap", r#"{"seconds": 3}"#),
        ("clock.nap", r#"{"seconds": 1}"#),
        ("clock.nap", r#"{"seconds": 2}"#),
    ]);
    let test_env = planning_harness([plan_reply(&steps), Ok(calls), text_reply("Done.")]);
    let (begun, mut started, mut planned) = (Instant::now(), Vec::new(), Vec::new());
    let report = test_env
        .agent
        .run_streaming("Wait.", |event| match event {
            AgentEvent::Planned(steps) => planned = steps,
            AgentEvent::ToolCallStarted { arguments, .. } => {
                started.push((arguments.to_string(), begun.elapsed().as_secs()));
            }
            AgentEvent::Text(text) => assert_eq!(text, "Done."),
            _ => {}
        })
        .await;
    assert!(report.is_success(), "{report:?}");
    let starts: Vec<_> = started.iter().map(|(text, at)| (text.as_str(), *at)).collect();
    assert_eq!(starts, [(r#"{"seconds":3}"#, 0), (r#"{"seconds":2}"#, 0), (r#"{"seconds":1}"#, 3)]);
    assert_eq!(begun.elapsed(), Duration::from_secs(4));
    assert_eq!(planned.len(), 3);
    assert_eq!((&*planned[0].purpose, &*planned[1].after), ("First.", &["1".to_owned()][..]));

    // The plan is a message before the calls, and the request for it offers the tools as text.
    let requests = test_env.model.requests();
    assert!(requests[0].tools.is_empty() && !requests[1].tools.is_empty());
    let asked = text_of(&requests[0].messages[0]);
    assert!(asked.starts_with("Wait.") && asked.contains("\"clock.nap\": \"Waits.\""), "{asked}");
    let conversation = test_env.agent.conversation();
    let texts: Vec<_> = conversation.messages().iter().map(text_of).collect();
    assert_eq!(texts[0], "Wait.");
    assert!(texts[1].starts_with("{\"steps\":"), "{texts:?}");
    // The last user message has the question, because every request contains this message.
    assert!(
        texts[2].starts_with("Wait.") && texts[2].contains("Carry out this plan."),
        "{texts:?}"
    );
}

/// Proves: G-b9
#[tokio::test(start_paused = true)]
async fn a_step_whose_condition_is_not_met_is_not_run() {
    let steps = json!([
        {"id": "look", "tool": "fs.read"},
        {"id": "clean", "tool": "fs.rm", "if": {"step": "look", "succeeded": false}},
    ]);
    let calls = || {
        Ok(Response::from_tool_calls([
            ("fs.read", r#"{"path": "a"}"#),
            ("fs.rm", r#"{"path": "b"}"#),
        ]))
    };
    let test_env = planning_harness([plan_reply(&steps), calls(), text_reply("Done.")]);
    let report = test_env.agent.run("Look.").await;
    assert!(report.is_success());
    assert_eq!(test_env.tools.calls(), [("fs.read".to_owned(), json!({"path": "a"}))]);
    let reason = "not run: step `clean` of the plan is skipped, because step `look` succeeded";
    assert_eq!(report.tool_calls[1].result_text, reason);
    assert!(!report.tool_calls[1].outcome.success);
}

#[tokio::test(start_paused = true)]
async fn without_a_valid_plan_the_run_goes_on_and_its_errors_say_why() {
    let replies = [
        text_reply("I just read it."),
        call_reply("fs.read", r#"{"path": "a"}"#),
        text_reply("Done."),
    ];
    let test_env = planning_harness(replies);
    let mut planned = false;
    let report = test_env
        .agent
        .run_streaming("Read.", |event| planned |= matches!(event, AgentEvent::Planned(_)))
        .await;
    assert!(report.is_success() && !planned);
    assert_eq!(
        report.errors[0].error,
        "the run continues without a plan: the text contains no JSON object"
    );
    let requests = test_env.model.requests();
    assert_eq!(requests[1].messages, [Message::User("Read.".into())]);
}

#[tokio::test(start_paused = true)]
async fn a_second_run_plans_with_earlier_calls_as_text_and_a_rejected_request_needs_no_plan() {
    let steps = json!([{"id": "1", "tool": "fs.read"}]);
    let rejected = LlmError::new("scripted", LlmErrorKind::InvalidRequest, "no");
    let replies = [
        plan_reply(&steps),
        call_reply("fs.read", r#"{"path": "a"}"#),
        text_reply("Done."),
        Err(rejected),
        text_reply("Done again."),
    ];
    let test_env = planning_harness(replies);
    assert!(test_env.agent.run("Read a.").await.is_success());
    let report = test_env.agent.run("And now?").await;
    assert!(report.is_success(), "{report:?}");
    assert!(report.errors[0].error.starts_with("the run continues without a plan: "));
    let requests = test_env.model.requests();
    let planned = &requests[3];
    assert!(planned.tools.is_empty());
    for message in &planned.messages {
        let has_call = matches!(message, Message::Assistant(it) if it.calls().next().is_some());
        assert!(!has_call && !matches!(message, Message::ToolResults(_)), "{message:?}");
    }
    assert!(!requests[4].tools.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_plan_behind_reasoning_in_the_text_is_found() {
    let text =
        r#"<think>Its arguments are {path}.</think>{"steps": [{"id": "1", "tool": "fs.rm"}]}"#;
    let test_env = planning_harness([text_reply(text), text_reply("Done.")]);
    let mut planned = Vec::new();
    let sink = |event| {
        if let AgentEvent::Planned(steps) = event {
            planned = steps;
        }
    };
    assert!(test_env.agent.run_streaming("Remove.", sink).await.is_success());
    assert_eq!(planned.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_plan_without_conversation_memory_stays_with_the_question() {
    let steps = json!([{"id": "1", "tool": "fs.read"}]);
    let replies =
        [plan_reply(&steps), call_reply("fs.read", r#"{"path": "a"}"#), text_reply("Done.")];
    let mut settings = AgentSettings::default();
    settings.tool_use.planning = true;
    settings.requests.conversation_memory = false;
    let test_env = harness(ScriptedProvider::new(replies), settings);
    assert!(test_env.agent.run("Read a.").await.is_success());
    for request in &test_env.model.requests()[1..] {
        let first = text_of(&request.messages[0]);
        assert!(first.starts_with("Read a.") && first.contains("\"steps\""), "{first}");
    }
}

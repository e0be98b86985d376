//! Native and prompt mode.

use innkeeper_agent::agent::{AgentEvent, AgentSettings};
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{
    Capabilities, LlmError, LlmErrorKind, LlmProvider, Response, ScriptedProvider, ToolSupport,
    Usage,
};
use innkeeper_agent::run::{CallOrigin, RunOutcome, ToolCallMode, ToolCalling};
use serde_json::json;

use super::{
    READ_CALL, call_reply, harness, native_harness, prompted_harness, text_only_capabilities,
    text_reply,
};

#[tokio::test(start_paused = true)]
async fn a_native_call_is_run_and_its_result_leads_to_the_answer() {
    let test_env =
        native_harness([call_reply("fs.read", r#"{"path": "a"}"#), text_reply("It says a.")]);
    let report = test_env.agent.run("What is in a?").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.text, "It says a.");
    assert_eq!(test_env.tools.calls(), [("fs.read".to_owned(), json!({"path": "a"}))]);
    assert_eq!((report.stats.iterations, report.stats.requests), (2, 2));
    assert_eq!(report.tool_calls[0].origin, CallOrigin::Native);
    let requests = test_env.model.requests();
    assert_eq!(requests[0].tools.len(), 3);
    let Some(Message::ToolResults(results)) = requests[1].messages.last() else {
        panic!("no results")
    };
    assert_eq!(results[0].content.to_text(), r#"fs.read {"path":"a"}"#);
}

/// Proves: P2, P12, P14
#[tokio::test(start_paused = true)]
async fn a_model_without_tools_gets_them_in_its_prompt_and_its_calls_are_found_in_its_text() {
    let reply_text = "<think>maybe {\"tool\": \"fs.rm\"}</think>I look.\n{\"tool\": \"fs.read\", \"params\": {\"path\": \"a{}b\"}}\n```json\n{\"name\": \"fs.read\", \"arguments\": {\"path\": \"c\"}}\n```\n";
    let test_env = prompted_harness([reply_text, "Both read."]);
    let report = test_env.agent.run("Read.").await;
    assert_eq!(report.text, "Both read.");
    let paths: Vec<_> = test_env
        .tools
        .calls()
        .into_iter()
        .map(|(_, arguments)| arguments["path"].clone())
        .collect();
    assert_eq!(paths, ["a{}b", "c"]);
    assert!(report.tool_calls.iter().all(|step| step.origin == CallOrigin::Recovered));
    assert_eq!(report.tool_call_mode, Some(ToolCallMode::Prompt));
    let requests = test_env.model.requests();
    assert!(requests[0].tools.is_empty() && requests[0].system.contains("fs.read"));
    let Some(Message::User(results)) = requests[1].messages.last() else { panic!("no results") };
    let results = results.to_text();
    assert!(results.contains(r#""result_of": "fs.read""#), "{results}");
}

/// Proves: P11, P20
#[tokio::test(start_paused = true)]
async fn the_first_request_has_every_schema_and_the_rules_of_calling() {
    let test_env = prompted_harness(["Hello."]);
    test_env.agent.run("Hi").await;
    let system = test_env.model.requests().remove(0).system;
    for expected in [
        "fs.read",
        "Reads a file.",
        "\"path\"",
        "required",
        "How to Call a Tool",
        r#"{"tool": "name", "params": {...}}"#,
    ] {
        assert!(system.contains(expected), "{expected} in {system}");
    }
}

/// Proves: P21
#[tokio::test(start_paused = true)]
async fn a_plain_answer_is_taken_at_once() {
    let test_env = prompted_harness(["The tool fs.read reads {files}, but none is needed."]);
    let report = test_env.agent.run("Hi").await;
    assert!(report.is_success());
    assert_eq!(report.text, "The tool fs.read reads {files}, but none is needed.");
    assert_eq!(report.stats.requests, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_left_in_the_text_of_a_model_with_tools_is_found() {
    let test_env = native_harness([text_reply(READ_CALL), text_reply("Done.")]);
    let report = test_env.agent.run("Read a.").await;
    assert_eq!(report.tool_calls[0].origin, CallOrigin::Recovered);
    assert_eq!(report.tool_call_mode, Some(ToolCallMode::Native));
    let requests = test_env.model.requests();
    let Message::Assistant(message) = &requests[1].messages[1] else { panic!("no answer") };
    assert_eq!(message.calls().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_refuses_tools_gets_them_in_its_prompt() {
    let error = LlmError::new("scripted", LlmErrorKind::ToolsUnsupported, "does not support tools");
    let test_env = native_harness([Err(error), text_reply(READ_CALL), text_reply("Done.")]);
    let report = test_env.agent.run("Read a.").await;
    assert!(report.is_success());
    assert_eq!(report.tool_call_mode, Some(ToolCallMode::Prompt));
    assert!(test_env.model.requests()[1].system.contains("fs.read"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_drops_tools_is_noticed_by_what_it_read() {
    let usage = Some(Usage { prompt_tokens: 12, cached_tokens: 4, ..Usage::default() });
    let blind = Response { usage, ..Response::from_text("I have no tools.") };
    let takes = Capabilities {
        tools: ToolSupport { native: true, may_be_dropped: true, ..text_only_capabilities().tools },
        ..text_only_capabilities()
    };
    let model = ScriptedProvider::new([Ok(blind), text_reply(READ_CALL), text_reply("Done.")])
        .with_capabilities(takes);
    let test_env = harness(model, AgentSettings::default());
    let report = test_env.agent.run("Read a.").await;
    assert_eq!(report.tool_call_mode, Some(ToolCallMode::Prompt));
    assert_eq!(test_env.tools.calls().len(), 1);
    assert!(!report.stats.usage_is_complete);
}

#[tokio::test(start_paused = true)]
async fn text_is_shown_while_it_is_written_without_the_calls_in_it() {
    let reply_text = "Let me look.\n{\"tool\": \"fs.read\", \"params\": {\"path\": \"a\"}}";
    let test_env = prompted_harness([reply_text, "It says a."]);
    let mut visible_text = String::new();
    let mut results = Vec::new();
    let report = test_env
        .agent
        .run_streaming("What is in a?", |event| match event {
            AgentEvent::Text(text) => visible_text.push_str(&text),
            AgentEvent::ToolCallStarted { tool, .. } => results.push(format!("running {tool}")),
            AgentEvent::ToolCallFinished(record) => {
                results.push(format!("ran {} {}", record.tool, record.outcome.success));
            }
            AgentEvent::Reasoning(_)
            | AgentEvent::ToolCallDetected { .. }
            | AgentEvent::ToolCallProgress { .. }
            | AgentEvent::Planned(_)
            | AgentEvent::HistorySummaryStarted { .. }
            | AgentEvent::HistoryShortened { .. }
            | AgentEvent::ResponseFinished { .. }
            | AgentEvent::Warned(_)
            | AgentEvent::ToolsOmitted(_)
            | AgentEvent::Retrying { .. }
            | AgentEvent::MessagesAdded(_)
            | AgentEvent::Finished(_) => {}
        })
        .await;
    assert!(report.is_success());
    assert_eq!(visible_text.replace('\n', ""), "Let me look.It says a.");
    assert_eq!(results, ["running fs.read", "ran fs.read true"]);
}

#[tokio::test(start_paused = true)]
async fn in_prompt_mode_only_the_prompt_is_used() {
    let replies = [text_reply(READ_CALL), text_reply("Done.")];
    let mut settings = AgentSettings::default();
    settings.tool_use.tool_calling = ToolCalling::Prompt;
    let test_env = harness(ScriptedProvider::new(replies), settings);
    assert!(test_env.agent.run("Read.").await.is_success());
    assert!(test_env.model.requests().iter().all(|request| request.tools.is_empty()));
    assert_eq!(test_env.model.name(), "scripted");
}

#[tokio::test(start_paused = true)]
async fn in_native_mode_only_native_tool_calls_are_used() {
    let error = LlmError::new("scripted", LlmErrorKind::ToolsUnsupported, "does not support tools");
    let mut settings = AgentSettings::default();
    settings.tool_use.tool_calling = ToolCalling::Native;
    let report = harness(ScriptedProvider::new([Err(error), text_reply("unused")]), settings)
        .agent
        .run("Hi")
        .await;
    assert!(matches!(report.outcome, RunOutcome::Failed(_)), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn thoughts_in_the_text_of_an_answer_are_not_part_of_it() {
    let test_env = prompted_harness(["<think>Hm, easy.</think>It is 5."]);
    let report = test_env.agent.run("2 + 3?").await;
    assert_eq!(report.text, "It is 5.");
}

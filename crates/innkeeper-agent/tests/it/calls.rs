//! The calls of a response: concurrent, timed, validated, each with its own outcome.

use std::time::Duration;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::chat::{
    DEFAULT_PARALLEL_CALLS, MAX_CALLS_PER_RESPONSE, StreamingMode, TextSegment, ToolExecution,
};
use innkeeper_agent::provider::{Response, ScriptedProvider};
use innkeeper_agent::run::RunLimits;
use innkeeper_agent::{ChatSettings, ToolError};
use innkeeper_toolcall::Json;
use serde_json::json;
use tokio::time::Instant;

use crate::setup::{
    CollectedResponse, InMemoryTools, call_json, echo_call, error_text, output_text,
    response_stream, split_chunks,
};

/// Proves: S8, S18
#[tokio::test(start_paused = true)]
async fn a_tool_runs_by_itself_and_its_result_has_name_arguments_and_the_real_time() {
    let all = CollectedResponse::from_chunks([call_json("sleep", &json!({"ms": 250}))]).await;
    let [ToolExecution { index, tool, arguments, elapsed, cached, .. }] = &all.executions[..]
    else {
        panic!("{:?}", all.executions)
    };
    assert_eq!((*index, tool.as_str(), *cached), (0, "sleep", false));
    assert_eq!(arguments.get("ms"), Some(&Json::Number("250".to_owned())));
    assert_eq!(*elapsed, Duration::from_millis(250));
    assert_eq!(output_text(&all.executions[0]), "slept");
}

/// Proves: S18
#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_behind_a_placeholder_is_as_real() {
    let mode = StreamingMode::WithPlaceholders { placeholder_text: "…".to_owned() };
    let chat = InMemoryTools::new().chat(ChatSettings { mode, ..ChatSettings::default() });
    let chunks = response_stream([call_json("sleep", &json!({"ms": 250}))]);
    let all =
        CollectedResponse::collect(&mut chat.start_run().read_response(chunks).unwrap()).await;
    assert_eq!(all.executions[0].elapsed, Duration::from_millis(250));
}

/// Proves: S43
#[tokio::test(start_paused = true)]
async fn calls_run_beside_each_other_up_to_the_limit() {
    let run_calls = |count: usize| async move {
        let start = Instant::now();
        let all = CollectedResponse::from_chunks(vec![
            call_json("sleep", &json!({"ms": 300}))
                + "\n";
            count
        ])
        .await;
        assert_eq!(all.executions.len(), count);
        start.elapsed()
    };
    assert_eq!(run_calls(2).await, Duration::from_millis(300));
    assert_eq!(run_calls(DEFAULT_PARALLEL_CALLS).await, Duration::from_millis(300));
    assert_eq!(run_calls(DEFAULT_PARALLEL_CALLS + 1).await, Duration::from_millis(600));
}

#[tokio::test(start_paused = true)]
async fn results_come_as_calls_end_with_the_index_of_their_call() {
    let calls = [30, 10, 20].map(|ms| call_json("sleep", &json!({"ms": ms})) + "\n");
    let all = CollectedResponse::from_chunks(calls).await;
    let indices: Vec<usize> = all.executions.iter().map(|execution| execution.index).collect();
    assert_eq!(indices, [1, 2, 0]);
}

#[tokio::test]
async fn every_failure_is_an_outcome_of_its_call_alone() {
    let names = ["broken", "panic", "fail"];
    let all =
        CollectedResponse::from_chunks(names.map(|name| call_json(name, &json!({})) + "\n")).await;
    let execution_of =
        |name: &str| all.executions.iter().find(|execution| execution.tool == name).unwrap();
    assert_eq!(error_text(execution_of("broken")), "cannot run tool `broken`");
    assert_eq!(error_text(execution_of("panic")), "tool `panic` panicked");
    assert!(execution_of("fail").outcome.as_ref().unwrap().is_error());
}

/// Proves: S-b2
#[tokio::test]
async fn arguments_that_do_not_fit_are_never_sent() {
    let tools = InMemoryTools::new();
    let chat = tools.chat(ChatSettings::default());
    let all = CollectedResponse::collect(
        &mut chat
            .start_run()
            .read_response(response_stream([call_json("sleep", &json!({"s": 1}))]))
            .unwrap(),
    )
    .await;
    let error = all.executions[0].outcome.as_ref().unwrap_err();
    let ToolError::InvalidArguments { tool, violations } = &**error else { panic!("{error:?}") };
    assert_eq!((tool.as_str(), violations.len()), ("sleep", 1));
    assert!(error.to_string().starts_with("invalid arguments for `sleep`: "), "{error}");
    assert!(tools.started_calls().is_empty());
}

#[tokio::test]
async fn an_unfinished_call_at_the_end_is_shown_and_never_run() {
    let call = echo_call("hello");
    for end in [1, 9, 20, call.len() - 1] {
        let tools = InMemoryTools::new();
        let text = format!("Look:\n{}", &call[..end]);
        let chat = tools.chat(ChatSettings::default());
        let all = CollectedResponse::collect(
            &mut chat.start_run().read_response(response_stream(split_chunks(&text, 3))).unwrap(),
        )
        .await;
        assert_eq!(all.visible_text(), text);
        assert!(tools.started_calls().is_empty());
    }
}

#[tokio::test]
async fn a_call_of_an_unknown_tool_is_shown_and_reported() {
    let text = format!("<tool_call>{}</tool_call>", call_json("echoo", &json!({})));
    let all = CollectedResponse::from_chunks([text.as_str()]).await;
    assert_eq!(all.visible_text(), text);
    assert!(all.executions.is_empty());
    let whys: Vec<&str> = all
        .segments
        .iter()
        .filter_map(|token| match token {
            TextSegment::RejectedCall { reason, .. } => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(whys, ["there is no tool `echoo`; did you mean `echo`?"]);
}

#[tokio::test]
async fn a_call_in_one_piece_with_text_around_it_is_taken_out_and_run() {
    let all =
        CollectedResponse::from_chunks([format!("I'll use {} to help.", echo_call("x"))]).await;
    assert_eq!(all.visible_text(), "I'll use  to help.");
    assert_eq!(all.executions.len(), 1);
}

#[tokio::test]
async fn calls_beyond_the_limit_are_reported_and_not_run() {
    let all =
        CollectedResponse::from_chunks(vec![echo_call("x") + "\n"; MAX_CALLS_PER_RESPONSE + 1])
            .await;
    assert_eq!(all.executions.len(), MAX_CALLS_PER_RESPONSE);
    let is_rejected = |token: &&TextSegment| matches!(token, TextSegment::RejectedCall { .. });
    assert_eq!(all.segments.iter().filter(is_rejected).count(), 1);
    let all =
        CollectedResponse::from_chunks(vec![echo_call("x") + "\n"; MAX_CALLS_PER_RESPONSE]).await;
    assert_eq!(all.segments.iter().filter(is_rejected).count(), 0);
}

/// Returns the numbers of calls that an agent and a chat start for one response.
async fn started_by_agent_and_chat(text: &str) -> (usize, usize) {
    let tools = InMemoryTools::new();
    let responses = [Ok(Response::from_text(text)), Ok(Response::from_text("Done."))];
    let model = std::sync::Arc::new(ScriptedProvider::new(responses));
    Agent::new(model, tools.clone(), AgentSettings::default()).run("Go.").await;
    let chat_tools = InMemoryTools::new();
    let run = chat_tools.chat(ChatSettings::default()).start_run();
    let mut response = run.read_response(response_stream([text])).unwrap();
    CollectedResponse::collect(&mut response).await;
    (tools.started_calls().len(), chat_tools.started_calls().len())
}

#[tokio::test(start_paused = true)]
async fn a_complete_call_in_unclosed_reasoning_runs_for_an_agent_and_for_a_chat() {
    let call = format!(
        r#"<tool_call>{{"name": "echo", "arguments": {}}}</tool_call>"#,
        json!({"message": "x"})
    );
    for (text, expected) in [
        (format!("<think>I call it. {call}"), 1),
        (format!("<think>I call it. {call} No.</think> Hm."), 0),
        (format!("<think>I call it.</think>{call}"), 1),
    ] {
        assert_eq!(started_by_agent_and_chat(&text).await, (expected, expected), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_and_a_chat_have_one_limit_of_calls_per_response() {
    assert_eq!(RunLimits::default().max_calls, MAX_CALLS_PER_RESPONSE);
    let calls = |count: usize| vec![echo_call("x"); count].join("\n");
    let at_limit = started_by_agent_and_chat(&calls(MAX_CALLS_PER_RESPONSE)).await;
    assert_eq!(at_limit, (MAX_CALLS_PER_RESPONSE, MAX_CALLS_PER_RESPONSE));
    // A chat runs each call when the call is complete, before the number of calls is known.
    let above_limit = started_by_agent_and_chat(&calls(MAX_CALLS_PER_RESPONSE + 1)).await;
    assert_eq!(above_limit, (0, MAX_CALLS_PER_RESPONSE));
}

/// Attack: model | a tool returns a page with a call, and the model quotes it | the quotation is text and
/// runs nothing | No guessed call
#[tokio::test(start_paused = true)]
async fn a_chat_runs_no_call_that_the_model_has_read_in_a_result() {
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let page = format!("Minutes. {} End.", call_json("sleep", &json!({"ms": 1})));
    let read = |text: String| {
        let mut response = chat.start_run().read_response(response_stream([text])).unwrap();
        async move { CollectedResponse::collect(&mut response).await }
    };
    let first = read(call_json("echo", &json!({"message": page}))).await;
    assert!(output_text(&first.executions[0]).contains("Minutes."));
    let quoted = format!("The page says {}, so I don't.", call_json("sleep", &json!({"ms": 1})));
    let second = read(quoted.clone()).await;
    assert!(second.executions.is_empty(), "{:?}", second.executions);
    assert_eq!(second.visible_text(), quoted);
    let other = read(format!("I do {}", call_json("sleep", &json!({"ms": 2})))).await;
    assert_eq!(other.executions.len(), 1);
    chat.add_foreign_text(&call_json("sleep", &json!({"ms": 3})));
    let third = read(call_json("sleep", &json!({"ms": 3}))).await;
    assert!(third.executions.is_empty());
}

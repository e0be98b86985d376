//! Chat runs: results as the next message, and the iteration limit.

use std::convert::Infallible;

use innkeeper_agent::chat::{ChatErrorRecord, TextSegment};
use innkeeper_agent::{Chat, ChatSettings};
use serde_json::Value;

use crate::setup::{CollectedResponse, InMemoryTools, echo_call, response_stream};

fn capped_settings(max_tool_iterations: usize) -> ChatSettings {
    ChatSettings { max_tool_iterations, ..ChatSettings::default() }
}

/// Proves: S41
#[tokio::test]
async fn results_become_a_message_in_the_order_of_the_calls() {
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let text = format!(
        "{}\n{}\n{{\"tool\": \"broken\", \"params\": {{}}}}",
        echo_call("a\nb"),
        echo_call("c")
    );
    let response = chat.start_run().read_response(response_stream([text])).unwrap();
    let message = response.results_as_message().await.unwrap();
    assert_eq!(response.results_as_message().await.as_deref(), Some(message.as_str()), "again");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], "Results of the tools, one a line:");
    let values: Vec<Value> =
        lines[1..].iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(values[0]["result"], r#"{"message":"a\nb"}"#);
    assert_eq!((&values[1]["result_of"], &values[1]["call"]), (&"echo".into(), &1.into()));
    assert_eq!(values[2]["error"], "cannot run tool `broken`");
    // A model that repeats the message makes no call.
    assert!(CollectedResponse::from_chunks([message]).await.executions.is_empty());
}

/// Runs a chat with a model that calls a tool in every response. Returns the result and the
/// messages to the model.
async fn run_always_calling(
    chat: &Chat,
) -> (innkeeper_agent::chat::ChatRunResult, Vec<Option<String>>) {
    let mut requests = Vec::new();
    let result = chat
        .run(
            |message| {
                requests.push(message);
                async { Ok::<_, Infallible>(response_stream([echo_call("again")])) }
            },
            |_| {},
        )
        .await
        .unwrap();
    (result, requests)
}

/// Attack: model | a model calls a tool in each response | the run ends at its iteration limit | No
/// unbounded wait
/// Proves: S42
#[tokio::test]
async fn a_model_that_always_calls_a_tool_is_stopped_and_zero_iterations_run_nothing() {
    for cap in [3, 1, 0] {
        let tools = InMemoryTools::new();
        let chat = tools.chat(capped_settings(cap));
        for turn in 1..=2 {
            let (result, requests) = run_always_calling(&chat).await;
            assert_eq!(
                (result.iterations, result.skipped_calls, requests.len()),
                (cap, 1, cap + 1)
            );
            assert_eq!(tools.started_calls().len(), cap * turn);
            assert!(requests[0].is_none() && requests[1..].iter().all(Option::is_some));
        }
    }
}

#[tokio::test]
async fn a_run_counts_iterations_by_the_messages_taken_and_resets_after_the_last() {
    let tools = InMemoryTools::new();
    let run = tools.chat(capped_settings(2)).start_run();
    let mut executed_counts = Vec::new();
    for _ in 0..6 {
        let response = run.read_response(response_stream([echo_call("x")])).unwrap();
        executed_counts.push(response.results_as_message().await.is_some());
    }
    assert_eq!(executed_counts, [true, true, false, true, true, false]);
    // A response without calls ends the run as well.
    for (text, runs) in [(echo_call("1"), true), ("done".to_owned(), false)] {
        let response = run.read_response(response_stream([text])).unwrap();
        assert_eq!(response.results_as_message().await.is_some(), runs);
    }
    for _ in 0..2 {
        assert!(
            run.read_response(response_stream([echo_call("x")]))
                .unwrap()
                .results_as_message()
                .await
                .is_some()
        );
    }
}

/// Proves: S41
#[tokio::test]
async fn a_run_of_two_iterations_shows_every_response_and_feeds_the_results_back() {
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let mut visible_text = String::new();
    let result = chat
        .run(
            |message: Option<String>| async move {
                Ok::<_, Infallible>(response_stream([match message {
                    None => format!("Let me see. {}", echo_call("seven")),
                    Some(message) if message.contains("seven") => "It is seven.".to_owned(),
                    Some(message) => message,
                }]))
            },
            |token: TextSegment| visible_text.push_str(token.visible_text().unwrap_or_default()),
        )
        .await
        .unwrap();
    assert_eq!(visible_text, "Let me see. It is seven.");
    assert_eq!((result.iterations, result.executions.len(), result.skipped_calls), (1, 1, 0));
}

#[tokio::test]
async fn a_model_that_cannot_be_asked_ends_the_run_with_its_error() {
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let error = chat
        .run(
            |_| async {
                let response: Result<futures_util::stream::Empty<String>, _> =
                    Err(std::io::Error::other("no model"));
                response
            },
            |_| {},
        )
        .await
        .unwrap_err();
    assert!(matches!(&error, ChatErrorRecord::Model(error) if error.to_string() == "no model"));
}

//! Reading the two streams of a response in any order or in part.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use innkeeper_agent::ChatSettings;
use innkeeper_agent::chat::{
    MAX_UNREAD_BYTES, StreamEnd, TEXT_BUFFER_BYTES, TextSegment, ToolExecution,
};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::setup::{
    CollectedResponse, InMemoryTools, call_json, chunk_channel, echo_call, output_text,
    response_stream,
};

const CALL_COUNT: usize = 1_000;

/// Returns a thousand calls with text between them.
fn many_calls() -> Vec<String> {
    (0..CALL_COUNT).map(|at| format!("Call {at}:\n{}\n", echo_call(&at.to_string()))).collect()
}

fn sorted_indices(executions: &[ToolExecution]) -> Vec<usize> {
    let mut indices: Vec<usize> = executions.iter().map(|execution| execution.index).collect();
    indices.sort_unstable();
    indices
}

/// Proves: S16, S19
#[tokio::test]
async fn a_thousand_calls_are_taken_in_either_order_without_a_deadlock() {
    for tokens_first in [true, false] {
        let chat = InMemoryTools::new().chat(ChatSettings::default());
        let mut response = chat.start_run().read_response(response_stream(many_calls())).unwrap();
        let (mut visible_text, mut executions) = (String::new(), Vec::new());
        let taking = async {
            for tokens in [tokens_first, !tokens_first] {
                if tokens {
                    while let Some(token) = response.segment_stream.recv().await {
                        visible_text.push_str(token.visible_text().unwrap_or_default());
                    }
                } else {
                    while let Some(execution) = response.execution_stream.recv().await {
                        executions.push(execution);
                    }
                }
            }
        };
        timeout(Duration::from_secs(30), taking).await.expect("no deadlock");
        assert_eq!(sorted_indices(&executions), (0..CALL_COUNT).collect::<Vec<_>>());
        assert!(
            visible_text.starts_with("Call 0:\n\n") && visible_text.contains("Call 999:"),
            "{visible_text}"
        );
    }
}

#[tokio::test]
async fn results_alone_can_be_read_although_unread_text_exceeds_its_buffer() {
    let filler = "word ".repeat(TEXT_BUFFER_BYTES / 5);
    let text = [filler.clone(), echo_call("1"), filler.clone(), echo_call("2"), filler.clone()];
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let mut response = chat.start_run().read_response(response_stream(text)).unwrap();
    for _ in 0..2 {
        assert!(response.execution_stream.recv().await.is_some());
    }
    assert!(response.execution_stream.recv().await.is_none());
    assert_eq!(response.results.stream_end(), Some(StreamEnd::Complete));
    let mut length = 0;
    while let Some(token) = response.segment_stream.recv().await {
        length += token.visible_text().map_or(0, str::len);
    }
    assert_eq!(length, 3 * filler.len());
}

#[tokio::test]
async fn the_message_is_available_although_the_text_is_unread() {
    let filler = "word ".repeat(TEXT_BUFFER_BYTES / 5);
    let text = [filler.clone(), echo_call("1"), filler, echo_call("2")];
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let response = chat.start_run().read_response(response_stream(text)).unwrap();
    let message = timeout(Duration::from_secs(30), response.results_as_message()).await;
    assert_eq!(message.unwrap().unwrap().lines().count(), 3);
}

#[tokio::test]
async fn unread_text_stops_the_reading_when_its_buffer_is_full() {
    let chunk = "x".repeat(1 << 16);
    let read = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = read.clone();
    let endless = stream::repeat(chunk.clone()).inspect(move |chunk| {
        count.fetch_add(chunk.len(), std::sync::atomic::Ordering::Relaxed);
    });
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let mut response = chat.start_run().read_response(endless).unwrap();
    assert!(response.segment_stream.recv().await.is_some());
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let read = read.load(std::sync::atomic::Ordering::Relaxed);
    assert!(
        (TEXT_BUFFER_BYTES - chunk.len()..=TEXT_BUFFER_BYTES + 2 * chunk.len()).contains(&read),
        "{read}"
    );
}

/// Attack: model | a model writes without end while nobody reads the text | the stream ends at the
/// limit of unread bytes | No unbounded memory
#[tokio::test]
async fn endless_text_ends_at_its_limit_where_only_results_are_taken() {
    let endless = stream::repeat("x".repeat(1 << 20));
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let mut response = chat.start_run().read_response(endless).unwrap();
    assert!(response.execution_stream.recv().await.is_none());
    assert_eq!(response.results.stream_end(), Some(StreamEnd::BufferFull));
    let mut length = 0;
    while let Some(token) = response.segment_stream.recv().await {
        length += token.text().len();
    }
    assert!(
        (MAX_UNREAD_BYTES - (1 << 20)..=MAX_UNREAD_BYTES + (1 << 20)).contains(&length),
        "{length}"
    );
}

#[tokio::test]
async fn either_receiver_may_be_dropped() {
    let tools = InMemoryTools::new();
    let long: Vec<String> = many_calls()
        .into_iter()
        .map(|text| text + &"word ".repeat(TEXT_BUFFER_BYTES / 1_000))
        .collect();
    let response = tools
        .chat(ChatSettings::default())
        .start_run()
        .read_response(response_stream(long))
        .unwrap();
    drop(response.segment_stream);
    let watched = response.results;
    let read = async {
        while watched.stream_end().is_none() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), read).await.expect("the text is read to its end");
    let executions: Vec<ToolExecution> = response.execution_stream.collect().await;
    assert_eq!(executions.len(), CALL_COUNT);

    let tools = InMemoryTools::new();
    let response = tools
        .chat(ChatSettings::default())
        .start_run()
        .read_response(response_stream(many_calls()))
        .unwrap();
    drop(response.execution_stream);
    let tokens: Vec<TextSegment> = response.segment_stream.collect().await;
    assert!(tokens.len() > 2 * CALL_COUNT);
    assert_eq!(response.results.as_message().await.unwrap().lines().count(), CALL_COUNT + 1);
    assert_eq!(
        tools.finished_calls().len(),
        CALL_COUNT,
        "calls run although nobody takes their results"
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_the_answer_ends_the_reading_and_cancels_its_calls() {
    let tools = InMemoryTools::new();
    let (sender, chunks) = chunk_channel();
    let mut response =
        tools.chat(ChatSettings::default()).start_run().read_response(chunks).unwrap();
    sender.send(&call_json("sleep", &json!({"ms": 1_000}))).await;
    while tools.started_calls().is_empty() {
        response.segment_stream.recv().await;
    }
    drop(response);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(tools.finished_calls().is_empty());
    let sent = timeout(Duration::from_secs(1), async { sender.try_send("more").await });
    assert!(!sent.await.unwrap(), "nobody reads the stream any more");
}

#[tokio::test]
async fn one_remaining_stream_keeps_the_task_alive() {
    let in_memory = InMemoryTools::new();
    let chat = in_memory.chat(ChatSettings::default());
    let tools =
        chat.start_run().read_response(response_stream([echo_call("1")])).unwrap().execution_stream;
    assert_eq!(tools.collect::<Vec<_>>().await.len(), 1);
}

/// Proves: S-b1
#[tokio::test]
async fn merged_a_result_stands_behind_the_text_of_its_call() {
    use innkeeper_agent::chat::ResponseItem;
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let (sender, chunks) = chunk_channel();
    let mut response = chat.start_run().read_response(chunks).unwrap();
    sender.send(&format!("{}\n", echo_call("1"))).await;
    // The result arrives while the response goes on.
    let execution = loop {
        if let ResponseItem::Execution(execution) = response.next_item().await.unwrap() {
            break execution;
        }
    };
    assert_eq!(output_text(&execution), r#"{"message":"1"}"#);
    sender.send("after").await;
    drop(sender);
    let mut rest = String::new();
    while let Some(item) = response.next_item().await {
        if let ResponseItem::Segment(segment) = item {
            rest.push_str(segment.visible_text().unwrap_or_default());
        }
    }
    assert!(rest.ends_with("after"), "{rest}");

    let mut response = chat.start_run().read_response(response_stream(many_calls())).unwrap();
    let (mut calls, mut results) = (0, 0);
    while let Some(item) = response.next_item().await {
        match item {
            ResponseItem::Segment(TextSegment::ToolCall(_)) => calls += 1,
            ResponseItem::Segment(_) => {}
            ResponseItem::Execution(execution) => {
                results += 1;
                assert!(execution.index < calls, "{} of {calls}", execution.index);
            }
        }
    }
    assert_eq!((calls, results), (CALL_COUNT, CALL_COUNT));
}

/// Proves: S5
#[tokio::test(start_paused = true)]
async fn text_goes_on_while_a_tool_works() {
    let (sender, chunks) = chunk_channel();
    let mut response = InMemoryTools::new()
        .chat(ChatSettings::default())
        .start_run()
        .read_response(chunks)
        .unwrap();
    let start = Instant::now();
    sender.send(&format!("{}\n", call_json("sleep", &json!({"ms": 5_000})))).await;
    for at in 0..20 {
        sender.send(&format!("word {at}\n")).await;
    }
    drop(sender);
    let mut visible_text = String::new();
    while let Some(token) = response.segment_stream.recv().await {
        visible_text.push_str(token.visible_text().unwrap_or_default());
    }
    assert!(visible_text.contains("word 19"));
    assert!(start.elapsed() < Duration::from_millis(1), "{:?}", start.elapsed());
    let execution = response.execution_stream.recv().await.unwrap();
    assert_eq!(execution.elapsed, Duration::from_secs(5));
}

#[tokio::test]
async fn a_stream_that_panics_ends_both_streams() {
    let breaks = stream::iter(0..).map(|at| {
        assert!(at < 3, "as asked");
        "text ".to_owned()
    });
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let mut response = chat.start_run().read_response(breaks).unwrap();
    let all = CollectedResponse::collect(&mut response).await;
    assert_eq!(all.visible_text(), "text text text ");
    assert_eq!(response.results.stream_end(), Some(StreamEnd::Panicked));
}

#[test]
fn outside_of_a_runtime_there_is_an_error_and_no_panic() {
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let error = chat.start_run().read_response(response_stream(["x"])).unwrap_err();
    assert!(error.to_string().contains("Tokio runtime"), "{error}");
}

//! Limits on unread results, messages and memory.

use innkeeper_agent::ChatSettings;
use innkeeper_agent::chat::{MAX_UNREAD_BYTES, TextSegment};
use serde_json::json;

use crate::setup::{
    CollectedResponse, InMemoryTools, call_json, echo_call, error_text, response_stream,
};

/// The size of each result in the tests below.
const RESULT_BYTES: usize = 8 << 20;

/// Attack: model | a model calls a tool with large results while nobody reads them | the calls past
/// the limit of unread bytes are rejected | No unbounded memory
#[tokio::test]
async fn nothing_more_is_run_while_too_much_of_results_waits() {
    let fit = MAX_UNREAD_BYTES / RESULT_BYTES;
    let tools = InMemoryTools::new();
    let chat = tools.chat(ChatSettings::default());
    let calls = vec![call_json("big", &json!({"bytes": RESULT_BYTES})) + "\n"; fit + 8];
    let mut response = chat.start_run().read_response(response_stream(calls)).unwrap();
    while response.segment_stream.recv().await.is_some() {}
    // The application takes the executions only after all calls have ended.
    let message = response.results_as_message().await.unwrap();
    let mut rejected = 0;
    while let Some(execution) = response.execution_stream.recv().await {
        if execution.outcome.is_err() {
            rejected += 1;
            assert!(
                error_text(&execution).contains(&format!("{MAX_UNREAD_BYTES} bytes")),
                "{}",
                error_text(&execution)
            );
        }
    }
    let finished = tools.finished_calls().len();
    assert_eq!(finished + rejected, fit + 8);
    assert!((fit..fit + 4).contains(&finished), "{finished}");
    assert!(message.len() < 1 << 20, "{}", message.len());
}

#[tokio::test]
async fn a_result_that_does_not_fit_into_the_message_is_named_in_it() {
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let calls = [call_json("big", &json!({"bytes": (1 << 20) + 1})), echo_call("small")].join("\n");
    let response = chat.start_run().read_response(response_stream([calls])).unwrap();
    let message = response.results_as_message().await.unwrap();
    let lines: Vec<&str> = message.lines().collect();
    assert!(
        lines[1].contains("omitted") && lines[1].contains("\"result_of\": \"big\""),
        "{}",
        lines[1]
    );
    assert!(lines[2].contains("small"), "{}", lines[2]);
}

/// Attack: model | a model writes 100 MB after an open brace | the memory stays bounded | No
/// unbounded memory
/// Proves: S44
#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::disallowed_methods, reason = "memory is measured in a process of its own")]
fn a_hundred_megabytes_behind_an_unclosed_brace_need_no_memory() {
    const ALONE: &str = "INNKEEPER_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(hundred_megabytes());
    }
    let name = "limits::a_hundred_megabytes_behind_an_unclosed_brace_need_no_memory";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
}

#[cfg(target_os = "linux")]
async fn hundred_megabytes() {
    use futures_util::{StreamExt, stream};
    use innkeeper_testkit::rss_kib;
    let head = "{\"tool\": \"echo\", \"params\": {\"message\": \"".to_owned();
    let chunk = "y".repeat(10_000);
    let chunk_count = 10_000;
    let text = stream::iter([head.clone()]).chain(stream::repeat(chunk.clone()).take(chunk_count));
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    let mut response = chat.start_run().read_response(Box::pin(text)).unwrap();
    let (mut length, mut before, mut peak) = (0, 0_u64, 0);
    while let Some(token) = response.segment_stream.recv().await {
        assert!(!matches!(token, TextSegment::ToolCall(_)));
        length += token.text().len();
        if length < 8 << 20 {
            before = rss_kib();
        } else {
            peak = peak.max(rss_kib());
        }
    }
    assert_eq!(length, head.len() + chunk_count * chunk.len());
    assert!(peak.saturating_sub(before) < 8 << 10, "from {before} to {peak} KiB");
    assert!(response.execution_stream.recv().await.is_none());
}

#[tokio::test]
async fn a_call_at_the_limit_of_its_length_is_run_and_one_past_it_is_text() {
    let message = |length: usize| echo_call(&"z".repeat(length - echo_call("").len()));
    for (length, runs) in [(2_000, 1), (2_001, 0)] {
        let chat = InMemoryTools::new()
            .chat(ChatSettings { max_call_bytes: 2_000, ..ChatSettings::default() });
        let text = message(length);
        let all = CollectedResponse::collect(
            &mut chat.start_run().read_response(response_stream([text.clone()])).unwrap(),
        )
        .await;
        assert_eq!((all.executions.len(), all.input_text().as_str()), (runs, text.as_str()));
    }
}

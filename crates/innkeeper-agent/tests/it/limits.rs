//! Limits of what is kept: results nobody takes, messages, memory.

use innkeeper_agent::Settings;
use innkeeper_agent::chat::{Token, UNTAKEN};
use serde_json::json;

use crate::setup::{All, Shop, answer_of, call, echo, error};

/// How long the results are in the tests below.
const RESULT: usize = 8 << 20;

#[tokio::test]
async fn nothing_more_is_run_while_too_much_of_results_waits() {
    let fit = UNTAKEN / RESULT;
    let shop = Shop::new();
    let chat = shop.chat(Settings::default());
    let calls = vec![call("big", &json!({"bytes": RESULT})) + "\n"; fit + 8];
    let mut answer = chat.turn().answer(answer_of(calls)).unwrap();
    while answer.token_stream.recv().await.is_some() {}
    // Taken only when all have ended.
    let message = answer.results_as_message().await.unwrap();
    let mut refused = 0;
    while let Some(executed) = answer.tool_stream.recv().await {
        if executed.outcome.is_err() {
            refused += 1;
            assert!(error(&executed).contains(&format!("{UNTAKEN} bytes")), "{}", error(&executed));
        }
    }
    let ran = shop.ended().len();
    assert_eq!(ran + refused, fit + 8);
    assert!((fit..fit + 4).contains(&ran), "{ran}");
    assert!(message.len() < 1 << 20, "{}", message.len());
}

#[tokio::test]
async fn a_result_that_does_not_fit_into_the_message_is_named_in_it() {
    let chat = Shop::new().chat(Settings::default());
    let calls = [call("big", &json!({"bytes": (1 << 20) + 1})), echo("small")].join("\n");
    let answer = chat.turn().answer(answer_of([calls])).unwrap();
    let message = answer.results_as_message().await.unwrap();
    let lines: Vec<&str> = message.lines().collect();
    assert!(
        lines[1].contains("left out") && lines[1].contains("\"result_of\": \"big\""),
        "{}",
        lines[1]
    );
    assert!(lines[2].contains("small"), "{}", lines[2]);
}

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
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[cfg(target_os = "linux")]
async fn hundred_megabytes() {
    use futures_util::{StreamExt, stream};
    use innkeeper_testkit::rss_kib;
    let head = "{\"tool\": \"echo\", \"params\": {\"message\": \"".to_owned();
    let piece = "y".repeat(10_000);
    let pieces = 10_000;
    let text = stream::iter([head.clone()]).chain(stream::repeat(piece.clone()).take(pieces));
    let chat = Shop::new().chat(Settings::default());
    let mut answer = chat.turn().answer(Box::pin(text)).unwrap();
    let (mut length, mut before, mut most) = (0, 0_u64, 0);
    while let Some(token) = answer.token_stream.recv().await {
        assert!(!matches!(token, Token::ToolCall(_)));
        length += token.text().len();
        if length < 8 << 20 {
            before = rss_kib();
        } else {
            most = most.max(rss_kib());
        }
    }
    assert_eq!(length, head.len() + pieces * piece.len());
    assert!(most.saturating_sub(before) < 8 << 10, "from {before} to {most} KiB");
    assert!(answer.tool_stream.recv().await.is_none());
}

#[tokio::test]
async fn a_call_at_the_limit_of_its_length_is_run_and_one_past_it_is_text() {
    let message = |length: usize| echo(&"z".repeat(length - echo("").len()));
    for (length, runs) in [(2_000, 1), (2_001, 0)] {
        let chat = Shop::new().chat(Settings { max_call_bytes: 2_000, ..Settings::default() });
        let text = message(length);
        let all = All::of(&mut chat.turn().answer(answer_of([text.clone()])).unwrap()).await;
        assert_eq!((all.executed.len(), all.input().as_str()), (runs, text.as_str()));
    }
}

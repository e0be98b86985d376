//! Late, endless, interleaved and repeated lines.

use std::time::Duration;

use innkeeper_host::error::ProtocolError;
use innkeeper_host::{CallError, CallOptions};
use serde_json::{Map, json};
use tokio::time::Instant;

use super::{DEADLINE_TOLERANCE, host_with_call_script, result_json, tagged_config, with_timeout};
use crate::setup::{LogCapture, TestEnv, builder, result_text};
use crate::shell_server::ShellServer;

/// Fault 1.
/// Attack: framing | 900 lines that are no message precede each response | the call gets its result
/// | No unbounded wait
#[tokio::test]
async fn thousands_of_lines_that_are_no_message_cost_their_reading_and_nothing_else() {
    let test_env = TestEnv::new();
    // The noise also precedes every response during the start.
    let noisy = test_env.fixture("noisy").with("--noise", 900);
    let host = test_env.start([noisy]).await.unwrap();
    let result = host.call_tool("noisy.echo", json!({"message": "found"})).await.unwrap();
    assert_eq!(result_text(&result), "found");
    assert!(host.shutdown().await.is_clean());
}

/// Fault 2.
/// Attack: framing | half of a response comes, and the rest after the timeout | the call ends at
/// its deadline; the next call succeeds | No unbounded wait
#[tokio::test]
async fn half_an_answer_costs_the_time_of_its_call_and_the_other_half_nobody() {
    let test_env = TestEnv::new();
    let code = r#"count=$((count+1)); if [ $count = 1 ]; then
        printf '{"jsonrpc":"2.0","id":%s,"result":{"half":1' "$id"; sleep 0.6; printf '}}\n'; fi"#;
    let host = host_with_call_script(&test_env, code).await;
    let time = Duration::from_millis(300);
    let started_at = Instant::now();
    let error = host.call_tool_with("sh.any", (), with_timeout(time)).await.unwrap_err();
    let elapsed = started_at.elapsed();
    assert!(matches!(error, CallError::Timeout { timeout, .. } if timeout == time), "{error:?}");
    assert!(elapsed >= time && elapsed < time + DEADLINE_TOLERANCE, "{elapsed:?}");
    let next = host.call_tool("sh.any", ()).await.unwrap();
    assert_eq!(result_json(&next), json!({"content": []}));
    host.shutdown().await;
}

/// Fault 3.
/// Attack: framing | a response of 100 MB in one line | the call fails; the next call succeeds | No
/// unbounded memory
#[tokio::test]
async fn an_answer_of_a_hundred_megabytes_fails_its_call_and_keeps_the_connection() {
    let test_env = TestEnv::new();
    let code = r#"count=$((count+1)); if [ $count = 1 ]; then
        printf '{"jsonrpc":"2.0","id":%s,"result":{"large":"' "$id"
        head -c 100000000 /dev/zero | tr '\0' x; printf '"}}\n'; continue; fi"#;
    let host = host_with_call_script(&test_env, code).await;
    let error = host.call_tool("sh.any", ()).await.unwrap_err();
    let CallError::Protocol { source: ProtocolError::TooLarge { .. }, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(result_json(&host.call_tool("sh.any", ()).await.unwrap()), json!({"content": []}));
    host.shutdown().await;
}

/// Fault 8.
#[tokio::test]
async fn an_answer_over_many_lines_ends_its_call_at_once_and_names_the_cause() {
    let (test_env, log) = (TestEnv::new(), LogCapture::capture());
    let host =
        test_env.start([test_env.fixture("one").with("--malformed", "pretty")]).await.unwrap();
    let started_at = Instant::now();
    let error = host.call_tool("one.echo", json!({"message": ""})).await.unwrap_err();
    assert!(started_at.elapsed() < Duration::from_millis(250), "{:?}", started_at.elapsed());
    let CallError::Protocol { source, .. } = &error else { panic!("{error:?}") };
    assert!(source.to_string().contains("multi-line JSON"), "{source}");
    let lines = log.with_message("unusable message");
    let detail = lines[0]["detail"].as_str().unwrap();
    assert!(detail.contains("multi-line JSON"), "{detail}");
    host.shutdown().await;
}

/// Fault 14.
/// Attack: framing | a response comes one byte at a time and never ends | the call ends at its
/// deadline, and the process is gone after the shutdown | No unbounded wait
#[tokio::test]
async fn an_answer_that_drips_in_ends_its_call_at_its_deadline() {
    let test_env = TestEnv::new();
    let host = host_with_call_script(&test_env, "while printf x; do sleep 0.06; done").await;
    let time = Duration::from_millis(400);
    let started_at = Instant::now();
    let error = host.call_tool_with("sh.any", (), with_timeout(time)).await.unwrap_err();
    let elapsed = started_at.elapsed();
    assert!(matches!(error, CallError::Timeout { .. }), "{error:?}");
    assert!(elapsed >= time && elapsed < time + DEADLINE_TOLERANCE, "{elapsed:?}");
    host.shutdown().await;
    test_env.assert_gone().await;
}

/// Fault 15.
/// Attack: framing | a response is written into the middle of another response | each of the two
/// calls ends with its own error, and no call gets the result of another | Own response
#[tokio::test]
async fn an_answer_written_into_another_is_given_to_nobody() {
    let test_env = TestEnv::new();
    let code = r#"count=$((count+1))
        if [ $count = 1 ]; then first=$id; continue; fi
        if [ $count = 2 ]; then
            printf '{"jsonrpc":"2.0",{"jsonrpc":"2.0","id":%s,"result":{"of":2}}\n' "$id"
            printf '"id":%s,"result":{"of":1}}\n' "$first"; continue
        fi"#;
    let host = host_with_call_script(&test_env, code).await;
    let call = || host.call_tool_with("sh.any", (), with_timeout(Duration::from_millis(500)));
    let (first, second) = tokio::join!(call(), call());
    for result in [first, second] {
        let error = result.unwrap_err();
        let is_own_error = matches!(error, CallError::Protocol { .. } | CallError::Timeout { .. });
        assert!(is_own_error, "{error:?}");
    }
    assert_eq!(result_json(&call().await.unwrap()), json!({"content": []}));
    host.shutdown().await;
}

/// Fault 21.
#[tokio::test]
async fn a_result_that_its_output_schema_forbids_is_handed_on_with_its_text_and_flagged() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").switch("--bad-structured")]).await.unwrap();
    let result = host.call_tool("one.add", json!({"a": 1, "b": 2})).await.unwrap();
    assert_eq!(result_text(&result), "3");
    assert_eq!(result_json(&result)["structuredContent"]["sum"], "not a number");
    assert_eq!(result.output_schema_violation().unwrap().pointer, "/sum");
    host.shutdown().await;
}

#[tokio::test]
async fn the_structured_content_of_a_tool_error_is_not_held_against_the_output_schema() {
    for (is_error, has_violation) in [(true, false), (false, true)] {
        let test_env = TestEnv::new();
        let result = json!({"content": [], "isError": is_error, "structuredContent": {"sum": "x"}});
        let schema = json!({"type": "object", "properties": {"sum": {"type": "number"}}});
        let tool =
            json!({"name": "any", "inputSchema": {"type": "object"}, "outputSchema": schema});
        let shell = ShellServer {
            tools_result: &json!({"tools": [tool]}).to_string(),
            call_result: &result.to_string(),
            ..ShellServer::default()
        };
        let config = test_env.config_from(&tagged_config(&test_env, &shell));
        let host = builder(config).start().await.unwrap();
        let result = host.call_tool("sh.any", ()).await.unwrap();
        assert_eq!(result.is_error(), is_error);
        assert_eq!(result.output_schema_violation().is_some(), has_violation);
        host.shutdown().await;
    }
}

/// Fault 27.
/// Attack: framing | the server responds to the id of the next request in advance | the next call
/// gets its own result; the ids of two sessions differ | Own response
#[tokio::test]
async fn an_answer_to_a_request_not_made_yet_answers_nothing() {
    let test_env = TestEnv::new();
    let code = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"guessed":1}}\n' $((id + 1))"#;
    let host = host_with_call_script(&test_env, code).await;
    for _ in 0..3 {
        let result = host.call_tool("sh.any", ()).await.unwrap();
        assert_eq!(result_json(&result), json!({"content": []}));
    }
    host.shutdown().await;

    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    let first = |server: &str| {
        let journal = test_env.journal().for_server(server);
        journal.received("tools/list")[0].message["id"].as_u64().unwrap()
    };
    assert_ne!(first("one"), first("two"), "ids can be guessed");
    host.shutdown().await;
}

/// Faults 5 to 6, 10 to 12 and 16 to 20: with real processes and the real clock.
/// Attack: framing | ten kinds of malformed responses with a readable id | each call fails within
/// 250 ms, and the connection remains | No unbounded wait
#[tokio::test]
async fn a_malformed_answer_with_a_readable_id_is_an_error_within_250_milliseconds() {
    const KINDS: [&str; 10] = [
        "notutf8",
        "nul",
        "truncated",
        "deep",
        "duplicatekey",
        "nojsonrpc",
        "both",
        "neither",
        "resultnull",
        "wrongtypes",
    ];
    let test_env = TestEnv::new();
    let server = |kind: &&str| test_env.fixture(kind).with("--malformed", kind);
    let host = test_env.start(KINDS.iter().map(server)).await.unwrap();
    for kind in KINDS {
        let mut fastest = Duration::MAX;
        // The fastest of several runs counts, because a loaded machine delays some.
        for _ in 0..5 {
            let started_at = Instant::now();
            let message = json!({"message": "an answer of some length"});
            let error = host.call_tool(&format!("{kind}.echo"), message).await.unwrap_err();
            fastest = fastest.min(started_at.elapsed());
            assert!(matches!(error, CallError::Protocol { .. }), "{kind}: {error:?}");
        }
        println!("{kind}: {fastest:?}");
        assert!(fastest < Duration::from_millis(250), "{kind}: {fastest:?}");
        let (plain, none) = (format!("{kind}.plain"), Map::new());
        host.get_prompt(&plain, &none, CallOptions::default()).await.unwrap();
    }
    host.shutdown().await;
}

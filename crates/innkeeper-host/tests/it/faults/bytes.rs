//! Lines that come late, without end, into one another, or by the thousand.

use std::time::Duration;

use innkeeper_host::error::ProtocolFault;
use innkeeper_host::{CallError, CallOptions};
use serde_json::{Map, json};
use tokio::time::Instant;

use super::{SLACK, on_call, value, within};
use crate::setup::{Log, Scene, text};

/// Fault 1.
#[tokio::test]
async fn thousands_of_lines_that_are_no_message_cost_their_reading_and_nothing_else() {
    let scene = Scene::new();
    // Before each of the answers of the start as well.
    let noisy = scene.fx("noisy").with("--noise", 900);
    let host = scene.start([noisy]).await.unwrap();
    let result = host.call_tool("noisy.echo", json!({"message": "found"})).await.unwrap();
    assert_eq!(text(&result), "found");
    assert!(host.shutdown().await.is_clean());
}

/// Fault 2.
#[tokio::test]
async fn half_an_answer_costs_the_time_of_its_call_and_the_other_half_nobody() {
    let scene = Scene::new();
    let code = r#"count=$((count+1)); if [ $count = 1 ]; then
        printf '{"jsonrpc":"2.0","id":%s,"result":{"half":1' "$id"; sleep 0.6; printf '}}\n'; fi"#;
    let host = on_call(&scene, code).await;
    let time = Duration::from_millis(300);
    let began = Instant::now();
    let error = host.call_tool_with("sh.any", (), within(time)).await.unwrap_err();
    let took = began.elapsed();
    assert!(matches!(error, CallError::Timeout { after, .. } if after == time), "{error:?}");
    assert!(took >= time && took < time + SLACK, "{took:?}");
    let next = host.call_tool("sh.any", ()).await.unwrap();
    assert_eq!(value(&next), json!({"content": []}));
    host.shutdown().await;
}

/// Fault 3.
#[tokio::test]
async fn an_answer_of_a_hundred_megabytes_fails_its_call_and_keeps_the_connection() {
    let scene = Scene::new();
    let code = r#"count=$((count+1)); if [ $count = 1 ]; then
        printf '{"jsonrpc":"2.0","id":%s,"result":{"large":"' "$id"
        head -c 100000000 /dev/zero | tr '\0' x; printf '"}}\n'; continue; fi"#;
    let host = on_call(&scene, code).await;
    let error = host.call_tool("sh.any", ()).await.unwrap_err();
    let CallError::Protocol { source: ProtocolFault::TooLarge { .. }, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(value(&host.call_tool("sh.any", ()).await.unwrap()), json!({"content": []}));
    host.shutdown().await;
}

/// Fault 8.
#[tokio::test]
async fn an_answer_over_many_lines_ends_its_call_at_once_and_names_the_cause() {
    let (scene, log) = (Scene::new(), Log::capture());
    let host = scene.start([scene.fx("one").with("--malformed", "pretty")]).await.unwrap();
    let began = Instant::now();
    let error = host.call_tool("one.echo", json!({"message": ""})).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_millis(250), "{:?}", began.elapsed());
    let CallError::Protocol { source, .. } = &error else { panic!("{error:?}") };
    assert!(source.to_string().contains("multi-line JSON"), "{source}");
    let lines = log.of("unusable message");
    let detail = lines[0]["detail"].as_str().unwrap();
    assert!(detail.contains("multi-line JSON"), "{detail}");
    host.shutdown().await;
}

/// Fault 14.
#[tokio::test]
async fn an_answer_that_drips_in_ends_its_call_at_its_deadline() {
    let scene = Scene::new();
    let host = on_call(&scene, "while printf x; do sleep 0.06; done").await;
    let time = Duration::from_millis(400);
    let began = Instant::now();
    let error = host.call_tool_with("sh.any", (), within(time)).await.unwrap_err();
    let took = began.elapsed();
    assert!(matches!(error, CallError::Timeout { .. }), "{error:?}");
    assert!(took >= time && took < time + SLACK, "{took:?}");
    host.shutdown().await;
    scene.assert_gone().await;
}

/// Fault 15.
#[tokio::test]
async fn an_answer_written_into_another_is_given_to_nobody() {
    let scene = Scene::new();
    let code = r#"count=$((count+1))
        if [ $count = 1 ]; then first=$id; continue; fi
        if [ $count = 2 ]; then
            printf '{"jsonrpc":"2.0",{"jsonrpc":"2.0","id":%s,"result":{"of":2}}\n' "$id"
            printf '"id":%s,"result":{"of":1}}\n' "$first"; continue
        fi"#;
    let host = on_call(&scene, code).await;
    let call = || host.call_tool_with("sh.any", (), within(Duration::from_millis(500)));
    let (first, second) = tokio::join!(call(), call());
    for result in [first, second] {
        let error = result.unwrap_err();
        let own = matches!(error, CallError::Protocol { .. } | CallError::Timeout { .. });
        assert!(own, "{error:?}");
    }
    assert_eq!(value(&call().await.unwrap()), json!({"content": []}));
    host.shutdown().await;
}

/// Fault 21.
#[tokio::test]
async fn a_result_that_its_output_schema_forbids_is_handed_on_with_its_text_and_flagged() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").switch("--bad-structured")]).await.unwrap();
    let result = host.call_tool("one.add", json!({"a": 1, "b": 2})).await.unwrap();
    assert_eq!(text(&result), "3");
    assert_eq!(value(&result)["structuredContent"]["sum"], "not a number");
    assert_eq!(result.misfit().unwrap().pointer, "/sum");
    host.shutdown().await;
}

/// Fault 27.
#[tokio::test]
async fn an_answer_to_a_request_not_made_yet_answers_nothing() {
    let scene = Scene::new();
    let code = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"guessed":1}}\n' $((id + 1))"#;
    let host = on_call(&scene, code).await;
    for _ in 0..3 {
        let result = host.call_tool("sh.any", ()).await.unwrap();
        assert_eq!(value(&result), json!({"content": []}));
    }
    host.shutdown().await;

    let host = scene.start([scene.fx("one"), scene.fx("two")]).await.unwrap();
    let first = |server: &str| {
        let journal = scene.journal().of(server);
        journal.received("tools/list")[0].message["id"].as_u64().unwrap()
    };
    assert_ne!(first("one"), first("two"), "ids can be guessed");
    host.shutdown().await;
}

/// Faults 5 to 6, 10 to 12 and 16 to 20: with real processes and the real clock.
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
    let scene = Scene::new();
    let server = |kind: &&str| scene.fx(kind).with("--malformed", kind);
    let host = scene.start(KINDS.iter().map(server)).await.unwrap();
    for kind in KINDS {
        let mut fastest = Duration::MAX;
        // The best of several, so that a busy machine does not decide.
        for _ in 0..5 {
            let began = Instant::now();
            let message = json!({"message": "an answer of some length"});
            let error = host.call_tool(&format!("{kind}.echo"), message).await.unwrap_err();
            fastest = fastest.min(began.elapsed());
            assert!(matches!(error, CallError::Protocol { .. }), "{kind}: {error:?}");
        }
        println!("{kind}: {fastest:?}");
        assert!(fastest < Duration::from_millis(250), "{kind}: {fastest:?}");
        let (plain, none) = (format!("{kind}.plain"), Map::new());
        host.get_prompt(&plain, &none, CallOptions::default()).await.unwrap();
    }
    host.shutdown().await;
}

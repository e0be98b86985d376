//! The cache of tool results.

use std::time::Duration;

use innkeeper_agent::chat::CacheSettings;
use innkeeper_agent::{Chat, ChatSettings};
use serde_json::{Value, json};

use crate::setup::{CollectedResponse, InMemoryTools, call_json, output_text, response_stream};

fn cached_settings() -> ChatSettings {
    ChatSettings { cache: Some(CacheSettings::default()), ..ChatSettings::default() }
}

/// Runs one call in a response; returns whether its result came from the cache.
async fn run_call(chat: &Chat, tool: &str, params: &Value) -> bool {
    let all = CollectedResponse::collect(
        &mut chat.start_run().read_response(response_stream([call_json(tool, params)])).unwrap(),
    )
    .await;
    all.executions[0].cached
}

/// Runs one call in a response; returns the text of its result.
async fn call_text(chat: &Chat, tool: &str, params: &Value) -> String {
    let all = CollectedResponse::collect(
        &mut chat.start_run().read_response(response_stream([call_json(tool, params)])).unwrap(),
    )
    .await;
    output_text(&all.executions[0])
}

/// Proves: S-b3, P-b3
#[tokio::test(start_paused = true)]
async fn the_same_call_of_a_tool_that_changes_nothing_is_answered_from_before() {
    let tools = InMemoryTools::new();
    let chat = tools.chat(cached_settings());
    let path = json!({"path": "a", "line": 1});
    assert!(!run_call(&chat, "read", &path).await);
    assert!(run_call(&chat, "read", &json!({"line": 1, "path": "a"})).await, "in whatever order");
    assert_eq!(call_text(&chat, "read", &path).await, "read 1", "the output of the first call");
    assert!(!run_call(&chat, "read", &json!({"path": "b"})).await);
    assert_eq!(tools.started_calls().len(), 2);
    assert!(!run_call(&chat, "read", &json!({})).await);
    assert!(!run_call(&chat, "set", &json!({})).await, "another tool with the same arguments");
    tokio::time::sleep(Duration::from_secs(301)).await;
    assert!(!run_call(&chat, "read", &path).await, "after five minutes");
    let to = json!({"to": "on"});
    assert!(!run_call(&chat, "set", &to).await);
    assert!(run_call(&chat, "set", &to).await, "an idempotent tool");
}

/// Proves: S-b3, P-b3
#[tokio::test(start_paused = true)]
async fn nothing_is_cached_unless_enabled_nor_for_tools_that_may_change_something() {
    let chat = InMemoryTools::new().chat(ChatSettings::default());
    assert!(!run_call(&chat, "read", &json!({})).await);
    assert!(!run_call(&chat, "read", &json!({})).await);
    let chat = InMemoryTools::new().chat(cached_settings());
    for tool in ["sleep", "fail"] {
        assert!(!run_call(&chat, tool, &json!({"ms": 1})).await);
        assert!(!run_call(&chat, tool, &json!({"ms": 1})).await, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_change_something_makes_every_answer_before_it_doubtful() {
    let chat = InMemoryTools::new().chat(cached_settings());
    assert!(!run_call(&chat, "read", &json!({})).await);
    assert!(!run_call(&chat, "echo", &json!({"message": "x"})).await);
    assert!(!run_call(&chat, "read", &json!({})).await);
    let (a, b) = (json!({"to": "a"}), json!({"to": "b"}));
    assert!(!run_call(&chat, "set", &a).await);
    assert!(run_call(&chat, "set", &a).await, "it is set already");
    assert!(!run_call(&chat, "set", &b).await);
    assert!(!run_call(&chat, "set", &a).await, "it was set to something else in between");
}

#[tokio::test(start_paused = true)]
async fn while_a_call_may_change_something_no_old_result_is_used_and_no_new_one_cached() {
    let chat = InMemoryTools::new().chat(cached_settings());
    let path = json!({"path": "a"});
    assert!(!run_call(&chat, "read", &path).await);
    let both = [call_json("sleep", &json!({"ms": 100})), call_json("read", &path)].join("\n");
    let all = CollectedResponse::collect(
        &mut chat.start_run().read_response(response_stream([both])).unwrap(),
    )
    .await;
    let read = all.executions.iter().find(|execution| execution.tool == "read").unwrap();
    assert!(!read.cached, "it may have changed already");
    assert!(!run_call(&chat, "read", &path).await, "it may have changed afterwards");
    assert!(run_call(&chat, "read", &path).await);
}

#[tokio::test(start_paused = true)]
async fn equal_calls_at_the_same_time_are_one() {
    let tools = InMemoryTools::new();
    let chat = tools.chat(cached_settings());
    let calls = vec![call_json("read", &json!({"path": "a"})) + "\n"; 4];
    let all = CollectedResponse::collect(
        &mut chat.start_run().read_response(response_stream(calls)).unwrap(),
    )
    .await;
    assert_eq!(tools.started_calls().len(), 1);
    let texts: Vec<String> = all.executions.iter().map(output_text).collect();
    assert_eq!(texts, ["read 1"; 4]);
    assert_eq!(all.executions.iter().filter(|executed| executed.cached).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_answer_goes_when_there_are_too_many() {
    let settings = CacheSettings { max_entries: 2, ..CacheSettings::default() };
    let chat = InMemoryTools::new()
        .chat(ChatSettings { cache: Some(settings), ..ChatSettings::default() });
    for path in ["a", "b", "c"] {
        assert!(!run_call(&chat, "read", &json!({"path": path})).await);
    }
    assert!(run_call(&chat, "read", &json!({"path": "c"})).await);
    assert!(run_call(&chat, "read", &json!({"path": "b"})).await);
    assert!(!run_call(&chat, "read", &json!({"path": "a"})).await);
}

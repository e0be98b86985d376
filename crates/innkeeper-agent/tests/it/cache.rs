//! Answers kept for calls that are made again.

use std::time::Duration;

use innkeeper_agent::chat::CacheSettings;
use innkeeper_agent::{Chat, Settings};
use serde_json::{Value, json};

use crate::setup::{All, Shop, answer_of, call, text};

fn cached() -> Settings {
    Settings { cache: Some(CacheSettings::default()), ..Settings::default() }
}

/// Runs one call alone; gives whether its answer was kept from before.
async fn one(chat: &Chat, tool: &str, params: &Value) -> bool {
    let all = All::of(&mut chat.turn().answer(answer_of([call(tool, params)])).unwrap()).await;
    all.executed[0].cached
}

/// Proves: S-b3, P-b3
#[tokio::test(start_paused = true)]
async fn the_same_call_of_a_tool_that_changes_nothing_is_answered_from_before() {
    let shop = Shop::new();
    let chat = shop.chat(cached());
    let path = json!({"path": "a", "line": 1});
    assert!(!one(&chat, "read", &path).await);
    assert!(one(&chat, "read", &json!({"line": 1, "path": "a"})).await, "in whatever order");
    assert!(!one(&chat, "read", &json!({"path": "b"})).await);
    assert_eq!(shop.begun().len(), 2);
    tokio::time::sleep(Duration::from_secs(301)).await;
    assert!(!one(&chat, "read", &path).await, "after five minutes");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_unless_asked_for_or_for_tools_that_may_change_something() {
    let chat = Shop::new().chat(Settings::default());
    assert!(!one(&chat, "read", &json!({})).await);
    assert!(!one(&chat, "read", &json!({})).await);
    let chat = Shop::new().chat(cached());
    for tool in ["sleep", "fail"] {
        assert!(!one(&chat, tool, &json!({"ms": 1})).await);
        assert!(!one(&chat, tool, &json!({"ms": 1})).await, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_change_something_makes_every_answer_before_it_doubtful() {
    let chat = Shop::new().chat(cached());
    assert!(!one(&chat, "read", &json!({})).await);
    assert!(!one(&chat, "echo", &json!({"message": "x"})).await);
    assert!(!one(&chat, "read", &json!({})).await);
    let (a, b) = (json!({"to": "a"}), json!({"to": "b"}));
    assert!(!one(&chat, "set", &a).await);
    assert!(one(&chat, "set", &a).await, "it is set already");
    assert!(!one(&chat, "set", &b).await);
    assert!(!one(&chat, "set", &a).await, "it was set to something else in between");
}

#[tokio::test(start_paused = true)]
async fn beside_a_call_that_may_change_something_nothing_old_is_given_and_nothing_new_kept() {
    let chat = Shop::new().chat(cached());
    let path = json!({"path": "a"});
    assert!(!one(&chat, "read", &path).await);
    let both = [call("sleep", &json!({"ms": 100})), call("read", &path)].join("\n");
    let all = All::of(&mut chat.turn().answer(answer_of([both])).unwrap()).await;
    let read = all.executed.iter().find(|executed| executed.tool == "read").unwrap();
    assert!(!read.cached, "it may have changed already");
    assert!(!one(&chat, "read", &path).await, "it may have changed afterwards");
    assert!(one(&chat, "read", &path).await);
}

#[tokio::test(start_paused = true)]
async fn equal_calls_at_the_same_time_are_one() {
    let shop = Shop::new();
    let chat = shop.chat(cached());
    let calls = vec![call("read", &json!({"path": "a"})) + "\n"; 4];
    let all = All::of(&mut chat.turn().answer(answer_of(calls)).unwrap()).await;
    assert_eq!(shop.begun().len(), 1);
    let texts: Vec<String> = all.executed.iter().map(text).collect();
    assert_eq!(texts, ["read 1"; 4]);
    assert_eq!(all.executed.iter().filter(|executed| executed.cached).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_answer_goes_when_there_are_too_many() {
    let settings = CacheSettings { max_entries: 2, ..CacheSettings::default() };
    let chat = Shop::new().chat(Settings { cache: Some(settings), ..Settings::default() });
    for path in ["a", "b", "c"] {
        assert!(!one(&chat, "read", &json!({"path": path})).await);
    }
    assert!(one(&chat, "read", &json!({"path": "c"})).await);
    assert!(one(&chat, "read", &json!({"path": "b"})).await);
    assert!(!one(&chat, "read", &json!({"path": "a"})).await);
}

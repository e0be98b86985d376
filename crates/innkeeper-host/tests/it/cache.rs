//! What is kept of resources and prompts: who is asked again, and who is not.

use innkeeper_host::{CallOptions, Event, Host};
use innkeeper_testkit::Fixture;
use serde_json::{Map, Value, json};

use crate::setup::{Scene, until_told};

fn fresh() -> CallOptions {
    CallOptions { fresh: true, ..CallOptions::default() }
}

async fn read_with(host: &Host, uri: &str, options: CallOptions) -> Value {
    let raw = host.read_resource(uri, None, options).await.unwrap();
    serde_json::from_str(raw.get()).unwrap()
}

/// The text of a resource, which counts the readings at its server.
async fn read(host: &Host, uri: &str) -> String {
    let result = read_with(host, uri, CallOptions::default()).await;
    result["contents"][0]["text"].as_str().unwrap().to_owned()
}

async fn greet(host: &Host, name: &str, arguments: Value) -> String {
    let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
    let raw = host.get_prompt(name, &arguments, CallOptions::default()).await.unwrap();
    raw.get().to_owned()
}

/// Has the server change a list, and waits until that is seen.
async fn change(host: &Host, server: &str, what: &str) {
    let mut events = host.events();
    host.call_tool(&format!("{server}.grow"), json!({"what": what})).await.unwrap();
    until_told(&mut events, |event| matches!(event, Event::CatalogChanged { .. })).await;
}

/// Proves: FR8.1, N29
#[tokio::test]
async fn a_resource_read_twice_is_asked_for_once_and_a_fresh_one_again() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one"), scene.fx("two")]).await.unwrap();
    for _ in 0..3 {
        assert_eq!(read(&host, "fx://one/static").await, "one: fx://one/static, reading 1");
    }
    assert_eq!(scene.journal().count("resources/read"), 1);
    let metrics = host.metrics()["one"].clone();
    assert_eq!((metrics.request_count, metrics.cache_hits, metrics.cache_misses), (1, 2, 1));
    assert_eq!(metrics.cache_entries, 1);
    assert!(metrics.cache_bytes > 50, "{metrics:?}");
    assert_eq!(host.metrics()["two"].cache_entries, 0);
    let again = read_with(&host, "fx://one/static", fresh()).await;
    assert_eq!(again["contents"][0]["text"], "one: fx://one/static, reading 2");
    assert_eq!(read(&host, "fx://one/static").await, "one: fx://one/static, reading 2");
    assert_eq!(scene.journal().count("resources/read"), 2);
    host.shutdown().await;
}

/// Proves: FR8.2, FR8.4, N29
#[tokio::test]
async fn a_prompt_got_twice_is_asked_for_once_for_each_set_of_arguments() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one"), scene.fx("two")]).await.unwrap();
    let first = greet(&host, "one.greet", json!({"name": "Ada", "style": "warmly"})).await;
    let second = greet(&host, "one.greet", json!({"style": "warmly", "name": "Ada"})).await;
    assert_eq!(first, second);
    assert_eq!(scene.journal().count("prompts/get"), 1);
    greet(&host, "one.greet", json!({"name": "Bob"})).await;
    assert!(greet(&host, "two.greet", json!({"name": "Bob"})).await.contains("two: greet Bob"));
    assert_eq!(scene.journal().count("prompts/get"), 3);
    let arguments = json!({"name": "Bob"}).as_object().unwrap().clone();
    host.get_prompt("one.greet", &arguments, fresh()).await.unwrap();
    assert_eq!(scene.journal().count("prompts/get"), 4);
    host.shutdown().await;
}

/// Proves: FR8.1
#[tokio::test]
async fn readers_at_the_same_time_share_a_request() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let mut readers: tokio::task::JoinSet<_> = (0..50)
        .map(|_| {
            let host = host.clone();
            async move { read(&host, "fx://one/static").await }
        })
        .collect();
    while let Some(text) = readers.join_next().await {
        assert_eq!(text.unwrap(), "one: fx://one/static, reading 1");
    }
    assert_eq!(scene.journal().count("resources/read"), 1);
    host.shutdown().await;
}

/// Proves: FR8.3
#[tokio::test]
async fn a_change_drops_what_is_kept_of_that_kind_and_that_server() {
    let scene = Scene::new();
    let fx = |name| -> Fixture { scene.fx(name).switch("--list-changed") };
    let host = scene.start([fx("one"), fx("two")]).await.unwrap();
    let arguments = || json!({"name": "Ada"});
    let asked = |server: &str| {
        let journal = scene.journal().of(server);
        (journal.count("resources/read"), journal.count("prompts/get"))
    };
    let all = async || {
        for server in ["one", "two"] {
            read(&host, &format!("fx://{server}/static")).await;
            greet(&host, &format!("{server}.greet"), arguments()).await;
        }
        (asked("one"), asked("two"))
    };
    assert_eq!(all().await, ((1, 1), (1, 1)));
    change(&host, "one", "tools").await;
    assert_eq!(all().await, ((1, 1), (1, 1)), "tools have nothing to do with it");
    change(&host, "one", "resources").await;
    assert_eq!(all().await, ((2, 1), (1, 1)));
    change(&host, "one", "prompts").await;
    assert_eq!(all().await, ((2, 2), (1, 1)));
    host.shutdown().await;
}

#[tokio::test]
async fn errors_and_results_of_tools_are_never_kept() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one"), scene.fx("two")]).await.unwrap();
    for _ in 0..2 {
        let named = host.read_resource("fx://one/static", Some("two"), CallOptions::default());
        named.await.unwrap_err();
        host.call_tool("one.read", json!({"path": "/"})).await.unwrap();
    }
    assert_eq!(scene.journal().count("resources/read"), 2);
    assert_eq!(scene.journal().count("tools/call"), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_of_the_newer_era_says_for_how_long_and_zero_seconds_keep_nothing() {
    let scene = Scene::new();
    let never = scene.fx("never").key("cache", json!({"ttl": 0}));
    let host = scene.start([scene.fx("new").with("--era", "modern"), never]).await.unwrap();
    for server in ["new", "never"] {
        for reading in [1, 2] {
            let uri = format!("fx://{server}/static");
            assert_eq!(read(&host, &uri).await, format!("{server}: {uri}, reading {reading}"));
        }
    }
    host.shutdown().await;
}

#[tokio::test]
async fn what_was_kept_is_gone_after_a_restart() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    read(&host, "fx://one/static").await;
    host.restart_server("one").await.unwrap();
    assert_eq!(host.metrics()["one"].cache_entries, 0);
    read(&host, "fx://one/static").await;
    assert_eq!(scene.journal().count("resources/read"), 2);
    host.shutdown().await;
}

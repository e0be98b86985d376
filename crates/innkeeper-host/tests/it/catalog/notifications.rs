//! Change notifications on a listen stream or a subscription.

use innkeeper_host::{CallOptions, CompletionReference, ErrorClass, Host, HostEvent};
use serde_json::{Map, json};

use super::{is_catalog_change, tools};
use crate::setup::{TestEnv, drain_events, wait_for_event};

const STATIC_URI: &str = "fx://one/static";

async fn read_static(host: &Host) {
    host.read_resource(STATIC_URI, None, CallOptions::default()).await.unwrap();
}

/// Proves: FR3.6
#[tokio::test]
async fn a_server_of_the_newer_era_is_listened_to_and_does_not_hold_up_the_end() {
    let test_env = TestEnv::new();
    let fixture = test_env.fixture("one").with("--era", "modern").switch("--list-changed");
    let host = test_env.start([fixture]).await.unwrap();
    let mut events = host.events();
    let journal =
        test_env.wait_for_journal(|journal| journal.count("subscriptions/listen") == 1).await;
    let requested = &journal.params("subscriptions/listen")[0]["notifications"];
    let lists = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];
    assert!(lists.iter().all(|list| requested[list] == true), "{requested}");
    assert_eq!(host.status()["one"].in_flight, 0, "nobody waits for it");
    let before = tools(&host.catalog(), "one").len();
    host.call_tool("one.grow", json!({})).await.unwrap();
    wait_for_event(&mut events, is_catalog_change).await;
    assert_eq!(tools(&host.catalog(), "one").len(), before + 1);
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test]
async fn a_server_without_subscriptions_is_asked_once() {
    let test_env = TestEnv::new();
    let fixture = test_env
        .fixture("one")
        .with("--era", "modern")
        .switch("--list-changed")
        .switch("--no-listen");
    let host = test_env.start([fixture]).await.unwrap();
    test_env.wait_for_journal(|journal| journal.count("subscriptions/listen") == 1).await;
    host.call_tool("one.pid", ()).await.unwrap();
    assert_eq!(test_env.journal().count("subscriptions/listen"), 1);
    host.shutdown().await;
}

/// Proves: FR3.7
#[tokio::test]
async fn lists_of_a_server_that_does_not_notify_are_read_again_when_they_are_too_old() {
    let test_env = TestEnv::new();
    let fixture = test_env
        .fixture("one")
        .with("--era", "modern")
        .switch("--list-changed")
        .switch("--no-listen");
    let host = test_env.start([fixture.with("--list-ttl", 10)]).await.unwrap();
    let mut events = host.events();
    // The minimum interval is one second, whatever `ttlMs` the server sends.
    test_env.wait_for_journal(|journal| journal.count("tools/list") == 2).await;
    let before = tools(&host.catalog(), "one").len();
    host.call_tool("one.grow", json!({})).await.unwrap();
    wait_for_event(&mut events, is_catalog_change).await;
    assert_eq!(tools(&host.catalog(), "one").len(), before + 1);
    test_env.wait_for_journal(|journal| journal.count("tools/list") == 4).await;
    host.shutdown().await;
    assert!(
        !drain_events(&mut events).iter().any(is_catalog_change),
        "a list that is the same is no change"
    );
}

#[tokio::test]
async fn a_start_reads_the_lists_of_a_server_of_the_newer_era_once() {
    let test_env = TestEnv::new();
    let fixture = test_env.fixture("one").with("--era", "modern").switch("--list-changed");
    let host = test_env.start([fixture]).await.unwrap();
    host.call_tool("one.pid", ()).await.unwrap();
    let journal = test_env.journal();
    let methods = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    assert_eq!(methods.map(|list| journal.count(list)), [1; 4]);
    assert_eq!(journal.count("subscriptions/listen"), 1);
    host.shutdown().await;
}

/// Proves: FR8.3
#[tokio::test]
async fn an_updated_resource_is_reported_and_read_again_in_both_eras() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let fixture = test_env.fixture("one").with("--era", era).switch("--touch");
        let host = test_env.start([fixture]).await.unwrap();
        let mut events = host.events();
        host.subscribe_resource(STATIC_URI, None, CallOptions::default()).await.unwrap();
        let method = if era == "modern" { "subscriptions/listen" } else { "resources/subscribe" };
        test_env.wait_for_journal(|journal| journal.count(method) == 1).await;
        read_static(&host).await;
        read_static(&host).await;
        // The modern fixture server permits no caching (`ttlMs` 0).
        let times = if era == "modern" { 2 } else { 1 };
        assert_eq!(test_env.journal().count("resources/read"), times, "{era}: it was not kept");
        host.call_tool("one.touch", json!({"uri": STATIC_URI})).await.unwrap();
        let updated =
            wait_for_event(&mut events, |event| matches!(event, HostEvent::ResourceUpdated { .. }));
        assert!(
            matches!(updated.await, HostEvent::ResourceUpdated { uri, .. } if uri == STATIC_URI)
        );
        read_static(&host).await;
        assert_eq!(test_env.journal().count("resources/read"), times + 1, "{era}: an old copy");
        host.unsubscribe_resource(STATIC_URI, None, CallOptions::default()).await.unwrap();
        if era == "legacy" {
            test_env.wait_for_journal(|journal| journal.count("resources/unsubscribe") == 1).await;
        }
        host.shutdown().await;
    }
}

#[tokio::test]
async fn an_argument_is_completed_by_its_server_and_its_refusal_is_an_answer() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let prompt = CompletionReference::Prompt("one.greet");
    let options = CallOptions::default();
    let completion = host.complete(prompt, "name", "Ad", &Map::new(), options.clone()).await;
    assert_eq!(completion.unwrap_err().class(), ErrorClass::Server, "this one completes nothing");
    let journal = test_env.journal();
    let expected = json!({
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "name", "value": "Ad"},
    });
    assert_eq!(*journal.params("completion/complete")[0], expected);
    let nowhere = CompletionReference::Prompt("one.nothing");
    let unknown = host.complete(nowhere, "name", "", &Map::new(), options).await;
    assert_eq!(unknown.unwrap_err().class(), ErrorClass::Routing);
    host.shutdown().await;
}

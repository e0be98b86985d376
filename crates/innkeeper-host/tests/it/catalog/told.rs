//! Changes that a server tells of under a standing request or a subscription.

use innkeeper_host::{CallOptions, CompletionOf, ErrorClass, Event, Host};
use serde_json::{Map, json};

use super::{is_change, tools};
use crate::setup::{Scene, told, until_told};

const STATIC: &str = "fx://one/static";

async fn read(host: &Host) {
    host.read_resource(STATIC, None, CallOptions::default()).await.unwrap();
}

/// Proves: FR3.6
#[tokio::test]
async fn a_server_of_the_newer_era_is_listened_to_and_does_not_hold_up_the_end() {
    let scene = Scene::new();
    let fx = scene.fx("one").with("--era", "modern").switch("--list-changed");
    let host = scene.start([fx]).await.unwrap();
    let mut events = host.events();
    let journal = scene.journal_until(|journal| journal.count("subscriptions/listen") == 1).await;
    let wanted = &journal.params("subscriptions/listen")[0]["notifications"];
    let lists = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];
    assert!(lists.iter().all(|list| wanted[list] == true), "{wanted}");
    assert_eq!(host.status()["one"].in_flight, 0, "nobody waits for it");
    let before = tools(&host.catalog(), "one").len();
    host.call_tool("one.grow", json!({})).await.unwrap();
    until_told(&mut events, is_change).await;
    assert_eq!(tools(&host.catalog(), "one").len(), before + 1);
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test]
async fn a_server_that_does_not_know_how_to_tell_is_asked_once() {
    let scene = Scene::new();
    let fx = scene.fx("one").with("--era", "modern").switch("--list-changed").switch("--no-listen");
    let host = scene.start([fx]).await.unwrap();
    scene.journal_until(|journal| journal.count("subscriptions/listen") == 1).await;
    host.call_tool("one.pid", ()).await.unwrap();
    assert_eq!(scene.journal().count("subscriptions/listen"), 1);
    host.shutdown().await;
}

/// Proves: FR3.7
#[tokio::test]
async fn lists_of_a_server_that_does_not_tell_are_read_again_when_they_are_too_old() {
    let scene = Scene::new();
    let fx = scene.fx("one").with("--era", "modern").switch("--list-changed").switch("--no-listen");
    let host = scene.start([fx.with("--list-ttl", 10)]).await.unwrap();
    let mut events = host.events();
    // A second is the least, whatever a server says.
    scene.journal_until(|journal| journal.count("tools/list") == 2).await;
    let before = tools(&host.catalog(), "one").len();
    host.call_tool("one.grow", json!({})).await.unwrap();
    until_told(&mut events, is_change).await;
    assert_eq!(tools(&host.catalog(), "one").len(), before + 1);
    scene.journal_until(|journal| journal.count("tools/list") == 4).await;
    host.shutdown().await;
    assert!(!told(&mut events).iter().any(is_change), "a list that is the same is no change");
}

#[tokio::test]
async fn a_start_reads_the_lists_of_a_server_of_the_newer_era_once() {
    let scene = Scene::new();
    let fx = scene.fx("one").with("--era", "modern").switch("--list-changed");
    let host = scene.start([fx]).await.unwrap();
    host.call_tool("one.pid", ()).await.unwrap();
    let journal = scene.journal();
    let asked = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    assert_eq!(asked.map(|list| journal.count(list)), [1; 4]);
    assert_eq!(journal.count("subscriptions/listen"), 1);
    host.shutdown().await;
}

/// Proves: FR8.3
#[tokio::test]
async fn an_updated_resource_is_told_of_and_read_anew_in_both_eras() {
    for era in ["legacy", "modern"] {
        let scene = Scene::new();
        let fx = scene.fx("one").with("--era", era).switch("--touch");
        let host = scene.start([fx]).await.unwrap();
        let mut events = host.events();
        host.subscribe_resource(STATIC, None, CallOptions::default()).await.unwrap();
        let method = if era == "modern" { "subscriptions/listen" } else { "resources/subscribe" };
        scene.journal_until(|journal| journal.count(method) == 1).await;
        read(&host).await;
        read(&host).await;
        // The fixture server of the newer era allows no copy (`ttlMs` 0).
        let asked = if era == "modern" { 2 } else { 1 };
        assert_eq!(scene.journal().count("resources/read"), asked, "{era}: it was not kept");
        host.call_tool("one.touch", json!({"uri": STATIC})).await.unwrap();
        let told = until_told(&mut events, |event| matches!(event, Event::ResourceUpdated { .. }));
        assert!(matches!(told.await, Event::ResourceUpdated { uri, .. } if uri == STATIC));
        read(&host).await;
        assert_eq!(scene.journal().count("resources/read"), asked + 1, "{era}: an old copy");
        host.unsubscribe_resource(STATIC, None, CallOptions::default()).await.unwrap();
        host.shutdown().await;
    }
}

#[tokio::test]
async fn an_argument_is_completed_by_its_server_and_its_refusal_is_an_answer() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let prompt = CompletionOf::Prompt("one.greet");
    let options = CallOptions::default();
    let answer = host.complete(prompt, ("name", "Ad"), &Map::new(), options.clone()).await;
    assert_eq!(answer.unwrap_err().class(), ErrorClass::Server, "this one completes nothing");
    let asked = scene.journal();
    let expected = json!({
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "name", "value": "Ad"},
    });
    assert_eq!(*asked.params("completion/complete")[0], expected);
    let nowhere = CompletionOf::Prompt("one.nothing");
    let unknown = host.complete(nowhere, ("name", ""), &Map::new(), options).await;
    assert_eq!(unknown.unwrap_err().class(), ErrorClass::Routing);
    host.shutdown().await;
}

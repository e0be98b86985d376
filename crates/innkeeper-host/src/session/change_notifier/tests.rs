//! Change notifications of an in-memory server.

use std::time::Duration;

use innkeeper_config::CacheConfig;
use innkeeper_protocol::method;
use innkeeper_testkit::InMemoryServer;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::cache::CacheKey;
use crate::session::{HostContext, OutgoingRequest, SessionContext, SessionLimits};
use crate::tasks::BackgroundTasks;

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Creates a session with a cache that contains these resources and one prompt.
async fn session_with_cache(
    uris: &[&str],
) -> (InMemoryServer, Session, Arc<Cache>, BackgroundTasks) {
    let (peer, reader, writer) = InMemoryServer::new();
    let host = HostContext::default();
    let tasks = host.tasks.clone();
    let owner = SessionContext { server: "fx".into(), host };
    let session = Session::open(owner, reader, writer, SessionLimits::default());
    let policy = CacheConfig { ttl: TEST_TIMEOUT, max_entries: 9, max_bytes: 1 << 20 };
    let cache = Arc::new(Cache::new(policy));
    session.set_cache(cache.clone());
    let prompt = CacheKey::prompt("fx.greet", &serde_json::Map::new());
    for key in uris.iter().copied().map(CacheKey::resource).chain([prompt]) {
        let fetch =
            |_| async { Ok::<Box<RawValue>, ()>(RawValue::from_string("{}".into()).unwrap()) };
        cache.read(&key, false, TEST_TIMEOUT, fetch).await.unwrap();
    }
    (peer, session, cache, tasks)
}

/// Calls a tool whose server sends a notification before the response.
async fn call(peer: &mut InMemoryServer, session: &Session, method: &str, params: Value) {
    let nothing = json!({});
    let deadline = Instant::now() + TEST_TIMEOUT;
    let outgoing = OutgoingRequest::new(session.next_id(), method::TOOLS_CALL, &nothing, deadline);
    let answering = async {
        let received = peer.expect(method::TOOLS_CALL).await;
        peer.notify(method, params).await;
        peer.respond(&received["id"], json!({})).await;
    };
    let (response, ()) = tokio::join!(session.request(outgoing), answering);
    response.unwrap();
}

/// The test does not handle the session's changes, as during a list refresh.
///
/// Proves: FR8.3
#[tokio::test(start_paused = true)]
async fn a_response_that_comes_after_a_change_notification_finds_the_old_copy_gone() {
    let (mut peer, session, cache, _tasks) = session_with_cache(&["fx://a", "fx://b"]).await;
    assert_eq!(cache.size().0, 3);
    let updated = json!({"uri": "fx://a"});
    call(&mut peer, &session, method::RESOURCES_UPDATED, updated).await;
    assert_eq!(cache.size().0, 2, "the one that was updated");
    call(&mut peer, &session, method::TOOLS_LIST_CHANGED, json!({})).await;
    assert_eq!(cache.size().0, 2, "nothing is kept of tools");
    call(&mut peer, &session, method::RESOURCES_LIST_CHANGED, json!({})).await;
    assert_eq!(cache.size().0, 1, "the prompt");
    call(&mut peer, &session, method::PROMPTS_LIST_CHANGED, json!({})).await;
    assert_eq!(cache.size().0, 0);
}

#[tokio::test(start_paused = true)]
async fn all_is_dropped_in_the_moment_in_which_every_list_is_taken_for_changed() {
    let (_peer, session, cache, _tasks) = session_with_cache(&["fx://a"]).await;
    session.assume_changed();
    assert_eq!(cache.size().0, 0);
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_tool_changes_ends_when_each_reported_change_is_handled() {
    let (mut peer, session, _cache, _tasks) = session_with_cache(&[]).await;
    session.tool_changes_handled().await;
    let change = method::TOOLS_LIST_CHANGED;
    call(&mut peer, &session, change, json!({})).await;
    let wait = async |session: &Session| {
        tokio::time::timeout(Duration::from_secs(1), session.tool_changes_handled()).await.is_ok()
    };
    assert!(session.changed().await.tools);
    assert!(!wait(&session).await, "the change is not handled");
    // A second change arrives while the first change is handled.
    call(&mut peer, &session, change, json!({})).await;
    session.mark_tool_changes_handled();
    assert!(!wait(&session).await, "the second change is not handled");
    assert!(session.changed().await.tools);
    session.mark_tool_changes_handled();
    assert!(wait(&session).await);
    call(&mut peer, &session, method::PROMPTS_LIST_CHANGED, json!({})).await;
    assert!(wait(&session).await, "changed prompts are no change of tools");
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_tool_changes_ends_with_the_session() {
    let (mut peer, session, _cache, _tasks) = session_with_cache(&[]).await;
    call(&mut peer, &session, method::TOOLS_LIST_CHANGED, json!({})).await;
    drop(peer);
    tokio::time::timeout(TEST_TIMEOUT, session.tool_changes_handled()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_changed_list_is_reported_as_notified_or_as_expired() {
    let (mut peer, session, _cache, _tasks) = session_with_cache(&[]).await;
    let none = ListChanges::default();
    for (method, list) in [
        (method::TOOLS_LIST_CHANGED, ListChanges { tools: true, ..none }),
        (method::PROMPTS_LIST_CHANGED, ListChanges { prompts: true, ..none }),
        (method::RESOURCES_LIST_CHANGED, ListChanges { resources: true, ..none }),
    ] {
        let notified = ListChanges { notified: true, ..list };
        call(&mut peer, &session, method, json!({})).await;
        assert_eq!(session.changed().await, notified);
        for requested in [list, notified] {
            session.request_refresh(requested);
            assert_eq!(session.changed().await, requested);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn changed_resources_are_recorded_up_to_a_limit_and_then_all_count_as_changed() {
    let notifier = ChangeNotifier::default();
    let all_changed = async || notifier.next().await.resources;
    notifier.mark_updated("a".repeat(8 << 10));
    assert!(!all_changed().await);
    assert_eq!(notifier.take_updated(), ["a".repeat(8 << 10)]);
    notifier.mark_updated("a".repeat((8 << 10) + 1));
    assert!(all_changed().await, "the URI is too long to be recorded");
    assert_eq!(notifier.take_updated().len(), 0);
    (0..1024).for_each(|at| notifier.mark_updated(at.to_string()));
    assert!(!all_changed().await);
    notifier.mark_updated("one more".to_owned());
    assert!(all_changed().await);
    assert_eq!(notifier.take_updated().len(), 1024);
}

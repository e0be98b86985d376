//! Change subscriptions with in-memory servers and a paused clock.

use futures_util::FutureExt;
use innkeeper_protocol::Revision;
use innkeeper_protocol::view::ListCapability;
use innkeeper_testkit::InMemoryServer;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::connection::task_poll::tests::connect;
use crate::session::ListChanges;

const ALL_CHANGED: ListChanges =
    ListChanges { tools: true, prompts: true, resources: true, notified: true };

fn connect_modern() -> (InMemoryServer, Arc<Connection>, BackgroundTasks) {
    connect(Revision::V2026_07_28)
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        tools: Some(ListCapability { list_changed: true }),
        ..ServerCapabilities::default()
    }
}

/// Returns the lists that count as changed so far.
async fn changed(connection: &Connection) -> Option<ListChanges> {
    // Sent messages are processed before the clock advances.
    sleep(Duration::from_millis(1)).await;
    connection.session.changed().now_or_never()
}

async fn next_listen_id(peer: &mut InMemoryServer) -> Value {
    peer.expect(method::SUBSCRIPTIONS_LISTEN).await["id"].clone()
}

async fn acknowledge(peer: &mut InMemoryServer, id: &Value) {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    peer.notify(method::SUBSCRIPTIONS_ACKNOWLEDGED, json!({"_meta": meta})).await;
}

/// Starts a subscription that is acknowledged after a delay; returns the request and the time it
/// took.
async fn start_acknowledged(
    peer: &mut InMemoryServer,
    connection: &Arc<Connection>,
    tasks: &BackgroundTasks,
    after: Duration,
) -> (Value, Duration) {
    let (since, server_capabilities) = (Instant::now(), capabilities());
    let beginning = async {
        start(connection, &server_capabilities, tasks).await;
        since.elapsed()
    };
    let answering = async {
        let id = next_listen_id(peer).await;
        sleep(after).await;
        acknowledge(peer, &id).await;
        id
    };
    let (took, id) = tokio::join!(beginning, answering);
    (id, took)
}

#[tokio::test(start_paused = true)]
async fn lists_wait_until_the_subscription_is_acknowledged_and_are_read_once() {
    let (mut peer, connection, tasks) = connect_modern();
    let after = Duration::from_millis(400);
    let (_, took) = start_acknowledged(&mut peer, &connection, &tasks, after).await;
    assert_eq!(took, after);
    assert_eq!(changed(&connection).await, None);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(changed(&connection).await, None);
}

#[tokio::test(start_paused = true)]
async fn lists_that_were_read_before_the_subscription_is_acknowledged_are_read_again_when_it_is() {
    for (after, expected) in [(3, vec![3]), (7, vec![5, 7])] {
        let (mut peer, connection, tasks) = connect_modern();
        let started = Instant::now();
        let telling = async {
            let mut change_times = Vec::new();
            for _ in &expected {
                assert_eq!(connection.session.changed().await, ALL_CHANGED);
                change_times.push(started.elapsed().as_secs());
            }
            change_times
        };
        let after = Duration::from_secs(after);
        let telling = timeout(Duration::from_secs(60), telling);
        let ((_, took), change_times) =
            tokio::join!(start_acknowledged(&mut peer, &connection, &tasks, after), telling);
        assert_eq!(took, STARTUP_ACK_TIMEOUT);
        assert_eq!(change_times.unwrap(), expected);
        assert_eq!(changed(&connection).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn what_changed_between_subscriptions_is_found_when_the_next_one_is_acknowledged() {
    let (mut peer, connection, tasks) = connect_modern();
    let (first, _) = start_acknowledged(&mut peer, &connection, &tasks, Duration::ZERO).await;
    // The stream ends.
    peer.respond(&first, json!({"resultType": "complete"})).await;
    let second = next_listen_id(&mut peer).await;
    assert_eq!(changed(&connection).await, None, "it is not listened to yet");
    acknowledge(&mut peer, &first).await;
    assert_eq!(changed(&connection).await, None, "that was another one");
    acknowledge(&mut peer, &second).await;
    assert_eq!(changed(&connection).await, Some(ALL_CHANGED));
    // A changed subscription sends a new request.
    connection.freshness.subscriptions.set("fx://a", true);
    peer.expect(method::CANCELLED).await;
    let third = next_listen_id(&mut peer).await;
    assert_eq!(changed(&connection).await, None);
    acknowledge(&mut peer, &third).await;
    assert_eq!(changed(&connection).await, Some(ALL_CHANGED));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_the_server_cancels_is_sent_again() {
    let (mut peer, connection, tasks) = connect_modern();
    let (first, _) = start_acknowledged(&mut peer, &connection, &tasks, Duration::ZERO).await;
    let started = Instant::now();
    peer.notify(method::CANCELLED, json!({ "requestId": first })).await;
    let second = next_listen_id(&mut peer).await;
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_ne!(first, second);
    acknowledge(&mut peer, &second).await;
    assert_eq!(changed(&connection).await, Some(ALL_CHANGED));
}

#[tokio::test(start_paused = true)]
async fn lists_are_refreshed_when_they_expire_with_and_without_change_notifications() {
    let (mut peer, connection, tasks) = connect_modern();
    let server_capabilities = capabilities();
    let refusing = async {
        let id = next_listen_id(&mut peer).await;
        peer.respond_error(&id, -32603, "too many subscriptions").await;
    };
    let started = Instant::now();
    tokio::join!(start(&connection, &server_capabilities, &tasks), refusing);
    assert_eq!(started.elapsed(), Duration::ZERO, "a refusal is not waited for");
    assert_expires(&connection).await;
    let (mut peer, connection, tasks) = connect_modern();
    start_acknowledged(&mut peer, &connection, &tasks, Duration::ZERO).await;
    assert_expires(&connection).await;
    // This server declares no change notifications, so no subscription ends.
    let (_peer, connection, tasks) = connect_modern();
    start(&connection, &ServerCapabilities::default(), &tasks).await;
    assert_expires(&connection).await;
}

/// Panics unless the list of tools expires about every 20 s, the reported time to live.
async fn assert_expires(connection: &Connection) {
    let expired = ListChanges { tools: true, ..ListChanges::default() };
    for _ in 0..3 {
        let read = Instant::now();
        let page = RawValue::from_string(r#"{"ttlMs":20000}"#.to_owned()).unwrap();
        let hints = Some(list_ttls::ReportedHints::from_page(&page));
        connection.freshness.list_ttls.record_refresh([hints, None, None, None]);
        assert_eq!(connection.session.changed().await, expired);
        assert!((20..=22).contains(&read.elapsed().as_secs()), "{:?}", read.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_change_notifications_is_neither_asked_nor_waited_for() {
    let (_peer, connection, tasks) = connect_modern();
    let started = Instant::now();
    start(&connection, &ServerCapabilities::default(), &tasks).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
}

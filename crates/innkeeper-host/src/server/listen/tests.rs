//! Listening to a server in memory, with the clock stopped.

use futures_util::FutureExt;
use innkeeper_protocol::Revision;
use innkeeper_protocol::view::ListChanged;
use innkeeper_testkit::Peer;
use serde_json::{Value, json};

use super::*;
use crate::server::deferred::tests::connect;
use crate::server::session::Change;

const ALL: Change = Change { tools: true, prompts: true, resources: true, told: true };

fn modern() -> (Peer, Arc<Connection>, Tasks) {
    connect(Revision::V2026_07_28)
}

fn declared() -> ServerCapabilities {
    ServerCapabilities {
        tools: Some(ListChanged { list_changed: true }),
        ..ServerCapabilities::default()
    }
}

/// What counts as changed by now.
async fn changed(connection: &Connection) -> Option<Change> {
    // Whatever was said is taken before the clock goes on.
    sleep(Duration::from_millis(1)).await;
    connection.session.changed().now_or_never()
}

async fn asked(peer: &mut Peer) -> Value {
    peer.expect(method::SUBSCRIPTIONS_LISTEN).await["id"].clone()
}

async fn acknowledge(peer: &mut Peer, id: &Value) {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    peer.notify(method::SUBSCRIPTIONS_ACKNOWLEDGED, json!({"_meta": meta})).await;
}

/// Begins to listen, and has it acknowledged after so long; gives the request and how long that took.
async fn begun(
    peer: &mut Peer,
    connection: &Arc<Connection>,
    tasks: &Tasks,
    after: Duration,
) -> (Value, Duration) {
    let (since, declared) = (Instant::now(), declared());
    let beginning = async {
        begin(connection, &declared, tasks).await;
        since.elapsed()
    };
    let answering = async {
        let id = asked(peer).await;
        sleep(after).await;
        acknowledge(peer, &id).await;
        id
    };
    let (took, id) = tokio::join!(beginning, answering);
    (id, took)
}

#[tokio::test(start_paused = true)]
async fn lists_wait_until_the_server_tells_of_changes_and_are_read_once() {
    let (mut peer, connection, tasks) = modern();
    let after = Duration::from_millis(400);
    let (_, took) = begun(&mut peer, &connection, &tasks, after).await;
    assert_eq!(took, after);
    assert_eq!(changed(&connection).await, None);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(changed(&connection).await, None);
}

#[tokio::test(start_paused = true)]
async fn lists_that_were_read_before_the_server_tells_of_changes_are_read_again_when_it_does() {
    for (after, expected) in [(3, vec![3]), (7, vec![5, 7])] {
        let (mut peer, connection, tasks) = modern();
        let began = Instant::now();
        let telling = async {
            let mut told = Vec::new();
            for _ in &expected {
                assert_eq!(connection.session.changed().await, ALL);
                told.push(began.elapsed().as_secs());
            }
            told
        };
        let after = Duration::from_secs(after);
        let telling = timeout(Duration::from_secs(60), telling);
        let ((_, took), told) = tokio::join!(begun(&mut peer, &connection, &tasks, after), telling);
        assert_eq!(took, OPENING);
        assert_eq!(told.unwrap(), expected);
        assert_eq!(changed(&connection).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn what_changed_while_nobody_listened_is_found_when_the_server_tells_of_changes_again() {
    let (mut peer, connection, tasks) = modern();
    let (first, _) = begun(&mut peer, &connection, &tasks, Duration::ZERO).await;
    // The stream ends.
    peer.reply(&first, json!({"resultType": "complete"})).await;
    let second = asked(&mut peer).await;
    assert_eq!(changed(&connection).await, None, "it is not listened to yet");
    acknowledge(&mut peer, &first).await;
    assert_eq!(changed(&connection).await, None, "that was another one");
    acknowledge(&mut peer, &second).await;
    assert_eq!(changed(&connection).await, Some(ALL));
    // Another wish is another request.
    connection.wishes.set("fx://a", true);
    peer.expect(method::CANCELLED).await;
    let third = asked(&mut peer).await;
    assert_eq!(changed(&connection).await, None);
    acknowledge(&mut peer, &third).await;
    assert_eq!(changed(&connection).await, Some(ALL));
}

#[tokio::test(start_paused = true)]
async fn where_a_server_does_not_tell_of_changes_lists_are_looked_at_when_they_are_old() {
    let (mut peer, connection, tasks) = modern();
    let good_for = Some(Duration::from_secs(20));
    let declared = declared();
    let refusing = async {
        let id = asked(&mut peer).await;
        peer.reply_error(&id, -32603, "too many subscriptions").await;
    };
    let began = Instant::now();
    tokio::join!(begin(&connection, &declared, &tasks), refusing);
    assert_eq!(began.elapsed(), Duration::ZERO, "a refusal is not waited for");
    connection.ages.read(ALL, [good_for, None, None]);
    let old = Change { tools: true, ..Change::default() };
    for seconds in [20, 40, 60] {
        assert_eq!(connection.session.changed().await, old);
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
    let (mut peer, connection, tasks) = modern();
    begun(&mut peer, &connection, &tasks, Duration::ZERO).await;
    connection.ages.read(ALL, [good_for; 3]);
    sleep(Duration::from_mins(10)).await;
    assert_eq!(changed(&connection).await, None, "this one would tell");
}

#[tokio::test(start_paused = true)]
async fn a_server_with_nothing_to_tell_is_neither_asked_nor_waited_for() {
    let (_peer, connection, tasks) = modern();
    let began = Instant::now();
    begin(&connection, &ServerCapabilities::default(), &tasks).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

//! A Redis that is away, does not respond, rejects the password, or contains something else.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_gateway::Principal;
use innkeeper_gateway::connections::store::{
    ConnectionStore, Lookup, NextEvents, RedisStore, StoreOptions,
};
use innkeeper_gateway::connections::{
    CapabilityRegistry, ConnectionId, ConnectionOptions, ConnectionServiceBuilder, ErrorCode,
    LifecycleMessage,
};
use innkeeper_testkit::RedisServer;
use redis::aio::MultiplexedConnection;
use serde_json::json;
use tokio::time::{Instant, interval, timeout};

use super::stores::{
    advance, commands, connection, next, next_messages, open, publish, wait_until,
};
use crate::setup::TEST_TIMEOUT;

const PASSWORD: &str = "correct-horse-battery";

async fn connect(server: &RedisServer) -> RedisStore {
    RedisStore::connect(&server.url(), StoreOptions::default()).await.unwrap()
}

async fn create_active(store: &RedisStore) -> ConnectionId {
    let created = connection(None);
    store.create(&created).await.unwrap();
    advance(store, created.id, LifecycleMessage::Initialized).await;
    created.id
}

async fn command(commands: &mut MultiplexedConnection, words: &[&str]) {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word);
    }
    command.query_async::<()>(commands).await.unwrap();
}

#[tokio::test]
async fn a_redis_that_stops_is_an_error_until_redis_is_back() {
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = connect(&server).await;
    let id = create_active(&store).await;
    let mut cursor = open(&store, id, None).await;
    let mut waiting = cursor.clone();
    let stopping = async {
        let waited = timeout(Duration::from_millis(100), store.next_events(&mut cursor)).await;
        assert!(waited.is_err());
        server.stop();
    };
    // The reader does not wait for its next look.
    let ended = timeout(Duration::from_secs(4), store.next_events(&mut waiting));
    let (ended, ()) = tokio::join!(ended, stopping);
    let error = ended.expect("the end of the wait").unwrap_err();
    assert!(error.to_string().contains(&server.address().to_string()), "{error}");
    for _ in 0..3 {
        let error = store.publish(id, "event".into()).await.unwrap_err().to_string();
        assert!(error.starts_with("the store is not available: Redis at"), "{error}");
    }
    assert!(RedisStore::connect(&server.url(), StoreOptions::default()).await.is_err());

    server.start_again();
    publish(&store, id, "event").await;
    let mut cursor = open(&store, id, None).await;
    assert_eq!(next_messages(&store, &mut cursor).await, [(1, "event".into())]);
    // Notices come again.
    let mut commands = commands(&server).await;
    wait_until(async || subscribers(&mut commands).await == 1).await;
}

async fn subscribers(commands: &mut MultiplexedConnection) -> u64 {
    let mut numbers = redis::cmd("PUBSUB");
    numbers.arg("NUMSUB").arg("mcp:connections:changed");
    let (_, number): (String, u64) = numbers.query_async(commands).await.unwrap();
    number
}

#[tokio::test]
async fn the_first_call_after_a_restart_of_redis_succeeds() {
    let mut server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let mut commands = commands(&server).await;
    wait_until(async || subscribers(&mut commands).await == 1).await;
    server.stop();
    server.start_again();
    let mut commands = self::commands(&server).await;
    wait_until(async || subscribers(&mut commands).await == 1).await;
    assert_eq!(store.find(ConnectionId::random()).await.unwrap(), Lookup::Unknown);
}

/// Attack: remote | Redis accepts connections and does not respond | each call fails within two seconds,
/// and other tasks run meanwhile | No unbounded wait
#[tokio::test]
async fn a_redis_that_does_not_respond_blocks_no_other_task() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let id = create_active(&store).await;
    server.pause();
    let mut ticks = 0;
    let ticking = async {
        let mut interval = interval(Duration::from_millis(10));
        loop {
            interval.tick().await;
            ticks += 1;
        }
    };
    let started = Instant::now();
    let calls = async {
        // The second round needs a new connection.
        for _ in 0..2 {
            let (published, touched, active) = tokio::join!(
                store.publish(id, "event".into()),
                store.touch(id, None),
                store.active()
            );
            for error in [published.unwrap_err(), touched.unwrap_err(), active.unwrap_err()] {
                let reason = error.to_string();
                assert!(reason.ends_with("did not respond within 2 s"), "{reason}");
            }
        }
        let connected = RedisStore::connect(&server.url(), StoreOptions::default()).await;
        connected.unwrap_err();
    };
    tokio::select! { () = ticking => {}, () = calls => {} }
    assert!(started.elapsed() < Duration::from_secs(15));
    assert!(ticks > 200, "{ticks}");
    server.resume();
    assert!(matches!(store.touch(id, None).await.unwrap(), Lookup::Found(_)));
}

/// Attack: remote | Redis does not respond, and clients with the id of a connection send `initialize` |
/// each gets its answer within the time of one call | No unbounded wait
#[tokio::test]
async fn initialize_with_an_id_asks_a_redis_that_does_not_respond_once() {
    let server = RedisServer::start(&[]);
    let store = Arc::new(connect(&server).await);
    let id = create_active(&store).await;
    let registry = CapabilityRegistry::with_core_features();
    let service = ConnectionServiceBuilder::new(ConnectionOptions::default(), registry, store);
    let request = json!({ "protocol_version": "1.0",
        "client": { "name": "test", "version": "1" },
        "capabilities": { "core.jsonrpc": true, "core.transport.http": true } });
    let request = serde_json::from_value(request).unwrap();
    server.pause();
    // Without an answer, the clock goes on to the end of the time of a call.
    tokio::time::pause();
    let started = Instant::now();
    let opened = service.build().initialize(request, &Principal::local_user(), Some(id)).await;
    assert_eq!(opened.unwrap_err().code, ErrorCode::TransportError);
    let took = started.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test]
async fn a_reader_without_notices_looks_by_itself() {
    let server = RedisServer::start(&[
        "--user",
        "default",
        "on",
        "nopass",
        "~*",
        "&*",
        "+@all",
        "-subscribe",
    ]);
    let store = connect(&server).await;
    let mut commands = commands(&server).await;
    let id = create_active(&store).await;
    let mut cursor = open(&store, id, None).await;
    let publishing = async {
        tokio::task::yield_now().await;
        publish(&store, id, "event").await;
    };
    let events = async { timeout(TEST_TIMEOUT, store.next_events(&mut cursor)).await };
    let (events, ()) = tokio::join!(events, publishing);
    assert!(matches!(events.expect("an event").unwrap(), NextEvents::Events(_)));
    // The store subscribes as soon as Redis permits the command.
    command(&mut commands, &["ACL", "SETUSER", "default", "+subscribe"]).await;
    wait_until(async || subscribers(&mut commands).await == 1).await;
}

#[tokio::test]
async fn a_broken_subscription_is_made_again() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let mut commands = commands(&server).await;
    let id = create_active(&store).await;
    let mut cursor = open(&store, id, None).await;
    for position in 1..4 {
        wait_until(async || subscribers(&mut commands).await == 1).await;
        let publishing = async {
            tokio::task::yield_now().await;
            command(&mut commands, &["CLIENT", "KILL", "TYPE", "pubsub"]).await;
            publish(&store, id, "event").await;
        };
        // Less than the interval at which a reader looks by itself.
        let reading = timeout(Duration::from_secs(4), next_messages(&store, &mut cursor));
        let (events, ()) = tokio::join!(reading, publishing);
        assert_eq!(events.expect("an event"), [(position, "event".into())]);
    }
}

/// Attack: secrets | Redis rejects the password of the URL | neither the error nor the debug form of a
/// store contains the password | Secrets do not print
#[tokio::test]
async fn no_error_contains_the_password() {
    let server = RedisServer::start(&["--requirepass", PASSWORD]);
    let address = server.address();
    let wrong = format!("redis://:wrong-{PASSWORD}@{address}/0");
    let user = format!("redis://ann:{PASSWORD}@{address}/0");
    let database = format!("redis://:{PASSWORD}@{address}/99");
    let scheme = format!("redisx://:{PASSWORD}@{address}/0");
    let port = format!("redis://:{PASSWORD}@127.0.0.1:99999/0");
    let text = format!("redis://:{PASSWORD}@{address}/x");
    for url in [&wrong, &user, &database, &scheme, &port, &text] {
        let error = RedisStore::connect(url, StoreOptions::default()).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("battery"), "{error}");
    }
    let error = RedisStore::connect(&wrong, StoreOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("authentication failed"), "{error}");
    let error = RedisStore::connect(&server.url(), StoreOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("NOAUTH"), "{error}");
    let error = RedisStore::connect("http://localhost", StoreOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("redis://"), "{error}");

    let right = format!("redis://:{PASSWORD}@{address}/0");
    let store = RedisStore::connect(&right, StoreOptions::default()).await.unwrap();
    assert!(!format!("{store:?}").contains("battery"), "{store:?}");
}

#[tokio::test]
async fn a_redis_without_tls_is_an_error_for_a_url_with_tls() {
    let server = RedisServer::start(&[]);
    let url = server.url().replace("redis://", "rediss://");
    let connecting = RedisStore::connect(&url, StoreOptions::default());
    let error = timeout(TEST_TIMEOUT, connecting).await.expect("a response").unwrap_err();
    assert!(error.to_string().contains("Redis at"), "{error}");
}

/// Attack: data | another program changes the fields of a connection in Redis | each use is an error or
/// a response, and other connections work | Libraries change no global state
#[tokio::test]
async fn fields_that_are_not_valid_are_errors() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let mut commands = commands(&server).await;
    let intact = create_active(&store).await;
    let other = serde_json::to_string(&connection(None)).unwrap();
    for (field, value) in [
        ("connection", "{"),
        ("connection", "[]"),
        ("connection", &other),
        ("state", "ended"),
        ("state", ""),
        ("last_activity", "yesterday"),
        ("last_activity", "9223372036854775807"),
        ("data:page", "{"),
        ("data:page", "\u{0}"),
    ] {
        let id = create_active(&store).await;
        let key = format!("mcp:connection:{id}");
        command(&mut commands, &["HSET", &key, field, value]).await;
        let error = store.find(id).await.unwrap_err().to_string();
        assert!(error.contains("in Redis is not valid"), "{field}: {error}");
        assert!(!error.contains(&id.to_string()), "{error}");
        let _ = store.touch(id, None).await;
        let _ = store.advance(id, LifecycleMessage::Shutdown).await;
    }
    for (field, value) in [("last_position", "x"), ("reader", "1.5"), ("event_bytes", "nan")] {
        let id = create_active(&store).await;
        let key = format!("mcp:connection:{id}");
        command(&mut commands, &["HSET", &key, field, value]).await;
        let _ = store.publish(id, "event".into()).await;
        let _ = store.open_events(id, Some(0)).await;
    }
    let id = create_active(&store).await;
    publish(&store, id, "event").await;
    let events = format!("mcp:connection:{id}:events");
    command(&mut commands, &["SET", &events, "text"]).await;
    let mut cursor = open(&store, id, Some(1)).await;
    cursor.position = 0;
    store.next_events(&mut cursor).await.unwrap_err();
    store.publish(id, "event".into()).await.unwrap_err();
    command(&mut commands, &["DEL", &events]).await;
    assert_eq!(next(&store, &mut cursor).await, NextEvents::Lost);
    command(&mut commands, &["SET", &format!("mcp:connection:{id}"), "text"]).await;
    store.find(id).await.unwrap_err();
    command(&mut commands, &["ZADD", "mcp:connections:active", "+inf", "no id"]).await;
    store.active().await.unwrap_err();
    assert!(matches!(store.touch(intact, None).await.unwrap(), Lookup::Found(_)));
}

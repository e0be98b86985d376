//! What a store in Redis has beside the contract: keys with a time to live, and connections that outlive
//! the process.

use std::time::Duration;

use innkeeper_gateway::connections::store::{ConnectionStore, Lookup, RedisStore, StoreOptions};
use innkeeper_gateway::connections::{ConnectionLifecycleState, LifecycleMessage};
use innkeeper_testkit::RedisServer;
use redis::aio::MultiplexedConnection;

use super::stores::{
    advance, advance_to, commands, connection, next_messages, open, publish, wait_until,
};

async fn connect(server: &RedisServer, options: StoreOptions) -> RedisStore {
    RedisStore::connect(&server.url(), options).await.unwrap()
}

/// Returns the time to live of a key in seconds.
async fn seconds_to_live(commands: &mut MultiplexedConnection, key: &str) -> i64 {
    let milliseconds: i64 = redis::cmd("PTTL").arg(key).query_async(commands).await.unwrap();
    // A test can take a few seconds.
    (milliseconds + 9_999) / 10_000 * 10
}

/// Proves: B9, B10, B16
#[tokio::test]
async fn the_keys_of_a_connection_live_as_long_as_the_connection() {
    let server = RedisServer::start(&[]);
    let options = StoreOptions { expiry: Duration::from_secs(1_200), ..StoreOptions::default() };
    let store = connect(&server, options).await;
    let mut commands = commands(&server).await;
    let created = connection(Some("ann"));
    let id = created.id;
    let key = format!("mcp:connection:{id}");
    store.create(&created).await.unwrap();
    assert_eq!(seconds_to_live(&mut commands, &key).await, 1_200);
    advance(&store, id, LifecycleMessage::Initialized).await;
    publish(&store, id, "event").await;

    let shorten = redis::cmd("EXPIRE").arg(&key).arg(100).query_async::<()>(&mut commands).await;
    shorten.unwrap();
    store.find(id).await.unwrap();
    publish(&store, id, "event").await;
    let events = format!("{key}:events");
    assert_eq!(seconds_to_live(&mut commands, &key).await, 100);
    assert_eq!(seconds_to_live(&mut commands, &events).await, 100);
    store.touch(id, Some("ann")).await.unwrap();
    assert_eq!(seconds_to_live(&mut commands, &key).await, 1_200);
    assert_eq!(seconds_to_live(&mut commands, &events).await, 1_200);

    advance(&store, id, LifecycleMessage::Shutdown).await;
    advance(&store, id, LifecycleMessage::Exit).await;
    assert_eq!(seconds_to_live(&mut commands, &key).await, 30);
    assert_eq!(seconds_to_live(&mut commands, &events).await, 30);
    // Nothing stays in Redis for ever.
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut commands).await.unwrap();
    assert!(keys.len() >= 5, "{keys:?}");
    for key in keys {
        assert!(key.starts_with("mcp:connection"), "{key}");
        assert!((1..=5_000).contains(&seconds_to_live(&mut commands, &key).await), "{key}");
    }
}

/// Proves: B9, B-b4
#[tokio::test]
async fn connections_and_events_outlive_the_process() {
    let server = RedisServer::start(&[]);
    let store = connect(&server, StoreOptions::default()).await;
    let created = connection(Some("ann"));
    let id = created.id;
    store.create(&created).await.unwrap();
    let active = advance(&store, id, LifecycleMessage::Initialized).await;
    publish(&store, id, "event").await;
    drop(store);

    let store = connect(&server, StoreOptions::default()).await;
    assert_eq!(store.find(id).await.unwrap(), Lookup::Found(active));
    assert_eq!(store.active().await.unwrap(), [id]);
    let mut cursor = open(&store, id, None).await;
    assert_eq!(next_messages(&store, &mut cursor).await, [(1, "event".into())]);
}

#[tokio::test]
async fn connections_outlive_a_redis_with_a_log() {
    let mut server = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = connect(&server, StoreOptions::default()).await;
    let created = connection(Some("ann"));
    store.create(&created).await.unwrap();
    advance_to(&store, created.id, ConnectionLifecycleState::Active).await;
    publish(&store, created.id, "event").await;
    let before = store.find(created.id).await.unwrap();
    server.stop();
    server.start_again();
    wait_until(async || store.find(created.id).await.is_ok()).await;
    assert_eq!(store.find(created.id).await.unwrap(), before);
    // The scripts are gone with the server, and come back.
    publish(&store, created.id, "later").await;
    let mut cursor = open(&store, created.id, None).await;
    let events = next_messages(&store, &mut cursor).await;
    assert_eq!(events, [(1, "event".into()), (2, "later".into())]);
    let key = format!("mcp:connection:{}", created.id);
    let mut commands = commands(&server).await;
    assert_eq!(seconds_to_live(&mut commands, &key).await, 1_800);
}

#[tokio::test]
async fn a_dropped_store_leaves_no_connection_to_redis() {
    let server = RedisServer::start(&[]);
    let mut commands = commands(&server).await;
    let clients = async |commands: &mut MultiplexedConnection| {
        let list: String = redis::cmd("CLIENT").arg("LIST").query_async(commands).await.unwrap();
        list.lines().count()
    };
    let store = connect(&server, StoreOptions::default()).await;
    wait_until(async || clients(&mut commands).await == 3).await;
    drop(store);
    wait_until(async || clients(&mut commands).await == 1).await;
}

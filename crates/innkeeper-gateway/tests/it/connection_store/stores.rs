//! Each store with two handles, as two replicas of a gateway have them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use innkeeper_gateway::connections::store::{
    ConnectionStore, Created, EventCursor, FileStore, Lookup, MemoryStore, NextEvents,
    OpenedEvents, RedisStore, StoreOptions,
};
use innkeeper_gateway::connections::{
    ConnectionId, ConnectionLifecycleState, ConnectionState, LifecycleMessage,
};
use innkeeper_testkit::RedisServer;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use crate::setup::TEST_TIMEOUT;

/// Takes time from every expiry that Redis knows: Redis has no clock that a test can move.
const PASS_TIME: &str = "
    for _, key in ipairs(redis.call('KEYS', '*')) do
        if redis.call('TYPE', key).ok == 'zset' then
            for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
                redis.call('ZINCRBY', key, -ARGV[1], member)
            end
        end
        redis.call('PEXPIRE', key, redis.call('PTTL', key) - ARGV[1])
    end";

/// Two handles of one store.
pub(super) struct Stores {
    pub(super) first: Arc<dyn ConnectionStore>,
    pub(super) second: Arc<dyn ConnectionStore>,
    pub(super) options: StoreOptions,
    server: Option<RedisServer>,
    /// Removed with the stores.
    _directory: Option<TempDir>,
}

/// Runs a test over the stores of one process with a paused clock, and over Redis.
#[expect(clippy::print_stdout, reason = "the output of a failed test names the store")]
pub(super) async fn over_each(options: StoreOptions, test: impl AsyncFn(&Stores)) {
    println!("memory:");
    tokio::time::pause();
    test(&Stores::memory(options)).await;
    println!("files:");
    test(&Stores::files(options).await).await;
    tokio::time::resume();
    println!("Redis:");
    test(&Stores::redis(options).await).await;
}

impl Stores {
    pub(super) fn memory(options: StoreOptions) -> Self {
        let store = Arc::new(MemoryStore::new(options));
        Self { first: store.clone(), second: store, options, server: None, _directory: None }
    }

    pub(super) async fn files(options: StoreOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("connections");
        let store = Arc::new(FileStore::open(path, options).await.unwrap());
        let _directory = Some(directory);
        Self { first: store.clone(), second: store, options, server: None, _directory }
    }

    pub(super) async fn redis(options: StoreOptions) -> Self {
        let server = RedisServer::start(&[]);
        let connect = async || RedisStore::connect(&server.url(), options).await.unwrap();
        let (first, second) = (Arc::new(connect().await), Arc::new(connect().await));
        Self { first, second, options, server: Some(server), _directory: None }
    }

    /// Lets time pass for everything in the store.
    pub(super) async fn pass(&self, time: Duration) {
        match &self.server {
            None => tokio::time::advance(time).await,
            Some(server) => {
                let script = ::redis::Script::new(PASS_TIME);
                let milliseconds = u64::try_from(time.as_millis()).unwrap();
                let mut commands = commands(server).await;
                let () = script.arg(milliseconds).invoke_async(&mut commands).await.unwrap();
            }
        }
    }

    /// Creates a connection without a user.
    pub(super) async fn create(&self) -> ConnectionId {
        let connection = connection(None);
        assert_eq!(self.first.create(&connection).await.unwrap(), Created::Added);
        connection.id
    }

    /// Creates an active connection.
    pub(super) async fn create_active(&self) -> ConnectionId {
        let id = self.create().await;
        advance(&*self.first, id, LifecycleMessage::Initialized).await;
        id
    }
}

/// Returns a connection before its creation.
pub(super) fn connection(user: Option<&str>) -> ConnectionState {
    let value = json!({
        "id": ConnectionId::random(),
        "client_info": { "name": "test", "version": "1.0", "additional_info": { "os": "any" } },
        "client_capabilities": { "jobs": true, "tools": { "version": "1.2.0" } },
        "state": "initializing",
        "user_id": user,
        "session_data": { "page": 3, "": [null, "é\n"] },
        "created_at": "2026-11-26T03:00:00.123456789Z",
        "last_activity": "2026-11-26T03:00:01.000000001Z",
    });
    serde_json::from_value(value).unwrap()
}

/// Moves a connection, which must succeed.
pub(super) async fn advance(
    store: &dyn ConnectionStore,
    id: ConnectionId,
    message: LifecycleMessage,
) -> ConnectionState {
    let Lookup::Found(Ok(moved)) = store.advance(id, message).await.unwrap() else {
        panic!("`{message}` is not permitted");
    };
    moved
}

/// Moves a new connection to a state.
pub(super) async fn advance_to(
    store: &dyn ConnectionStore,
    id: ConnectionId,
    state: ConnectionLifecycleState,
) {
    use LifecycleMessage::{Exit, Initialized, Shutdown};
    let messages: &[LifecycleMessage] = match state {
        ConnectionLifecycleState::Uninitialized | ConnectionLifecycleState::Initializing => &[],
        ConnectionLifecycleState::Active => &[Initialized],
        ConnectionLifecycleState::Terminating => &[Initialized, Shutdown],
        ConnectionLifecycleState::Terminated => &[Initialized, Shutdown, Exit],
    };
    for message in messages {
        advance(store, id, *message).await;
    }
}

/// Publishes an event to an active connection.
pub(super) async fn publish(
    store: &dyn ConnectionStore,
    id: ConnectionId,
    message: impl Into<Bytes>,
) {
    assert!(store.publish(id, message.into()).await.unwrap());
}

/// Starts a reader.
pub(super) async fn open(
    store: &dyn ConnectionStore,
    id: ConnectionId,
    after: Option<u64>,
) -> EventCursor {
    match store.open_events(id, after).await.unwrap() {
        OpenedEvents::Opened(cursor) => cursor,
        other => panic!("{other:?}"),
    }
}

/// Returns the next events in the time of a test.
pub(super) async fn next(store: &dyn ConnectionStore, cursor: &mut EventCursor) -> NextEvents {
    timeout(TEST_TIMEOUT, store.next_events(cursor)).await.expect("events in time").unwrap()
}

/// Returns the positions and messages of the next events.
pub(super) async fn next_messages(
    store: &dyn ConnectionStore,
    cursor: &mut EventCursor,
) -> Vec<(u64, Bytes)> {
    match next(store, cursor).await {
        NextEvents::Events(events) => {
            events.into_iter().map(|event| (event.position, event.message)).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Returns a connection to Redis beside those of the stores.
pub(super) async fn commands(server: &RedisServer) -> ::redis::aio::MultiplexedConnection {
    let client = ::redis::Client::open(server.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// Waits until a condition holds.
pub(super) async fn wait_until(mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !holds().await {
        assert!(Instant::now() < deadline, "the condition does not hold in time");
        sleep(Duration::from_millis(5)).await;
    }
}

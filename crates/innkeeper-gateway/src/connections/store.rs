//! Where connections are kept, with the events that their clients have not read.

mod file;
mod memory;
mod redis;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::lifecycle::{InvalidTransition, LifecycleMessage};
use super::state::{ConnectionId, ConnectionState};

use crate::principal::Principal;
use crate::store_error::StoreFuture;

pub use self::file::FileStore;
pub use self::memory::MemoryStore;
pub use self::redis::RedisStore;

/// Time for which a store keeps a connection after `exit`.
pub(crate) const TERMINATED_TIME: Duration = Duration::from_secs(30);

/// Time for which a store knows that a connection has expired.
pub(crate) const EXPIRED_TIME: Duration = Duration::from_secs(60 * 60);

/// Maximum number of events of one connection in a store. The oldest events make room.
pub(crate) const MAX_EVENTS: usize = 256;

/// Maximum size in bytes of the events of one connection in a store, apart from the newest one.
pub(crate) const MAX_EVENT_BYTES: usize = 1 << 20;

/// Maximum expiry: a longer one is no time that a clock can add.
const MAX_EXPIRY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// Time after which an unused connection expires, at most 100 years. Default: 1,800 s.
    pub expiry: Duration,
    /// Maximum number of connections. A user can have half of them, unless all connections belong to
    /// the local user. Default: 100,000.
    pub max_connections: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { expiry: Duration::from_secs(1_800), max_connections: 100_000 }
    }
}

impl StoreOptions {
    fn expiry(&self) -> Duration {
        self.expiry.min(MAX_EXPIRY)
    }

    /// Returns the maximum number of connections of one user.
    fn user_connections(&self) -> usize {
        self.max_connections.div_ceil(2)
    }
}

/// Returns the user of a connection whose number is limited apart from all others.
fn limited_user(connection: &ConnectionState) -> Option<&str> {
    let local = Principal::local_user();
    connection.user_id.as_deref().filter(|user| **user != **local.id())
}

/// Returns whole milliseconds.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a store added a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// The connection is in the store.
    Added,
    /// A connection with the id is in the store, or was.
    AlreadyExists,
    /// The user has its share of the connections.
    UserLimit,
    /// The store has its maximum of connections.
    TotalLimit,
}

/// What a store knows of an id.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup<T> {
    /// The connection exists.
    Found(T),
    /// The connection has expired, or ended some time ago.
    Expired,
    /// No connection had the id within the last hour, as far as the store has room to know.
    Unknown,
}

/// An event for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The position among the events of the connection, from 1.
    pub position: u64,
    /// The message.
    pub message: Bytes,
}

/// A reader of the events of a connection. A connection has one reader: a new one ends the previous
/// one, also on another replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCursor {
    /// The connection.
    pub id: ConnectionId,
    /// The number of the reader.
    pub reader: u64,
    /// The position of the last event that the reader has.
    pub position: u64,
}

/// Why events cannot be read from a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenedEvents<T> {
    /// The reader can start.
    Opened(T),
    /// The events after the position are not in the store any more, or the position does not exist.
    Lost,
    /// The connection does not exist or is not active.
    NotActive,
}

/// The next events for a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextEvents {
    /// At least one event.
    Events(Vec<StoredEvent>),
    /// The reader was so slow that events were removed.
    Lost,
    /// Another reader took over, or the connection is not active any more.
    Ended,
}

/// Keeps connections. All replicas of a gateway use one store.
///
/// Each method is atomic: of two replicas that move a connection at the same time, one succeeds. A
/// connection that expired or ended does not become usable again. Only [`Self::touch`] and
/// [`Self::advance`] renew an expiry. Dropping a future, and an error, can leave the change made or not
/// made; only [`Self::next_events`] takes no event then.
pub trait ConnectionStore: fmt::Debug + Send + Sync + 'static {
    /// Adds a connection in the state `initializing`.
    fn create<'a>(&'a self, connection: &'a ConnectionState) -> StoreFuture<'a, Created>;

    /// Returns a connection. The expiry stays as it is.
    fn find(&self, id: ConnectionId) -> StoreFuture<'_, Lookup<ConnectionState>>;

    /// Returns a connection of a user after renewing its expiry and the time of its last use. A
    /// terminated connection is not renewed, and the connection of another user is unknown and
    /// stays as it is.
    fn touch<'a>(
        &'a self,
        id: ConnectionId,
        user: Option<&'a str>,
    ) -> StoreFuture<'a, Lookup<ConnectionState>>;

    /// Moves a connection to its next state and renews its expiry. Returns the connection after the
    /// move; an invalid message changes nothing.
    fn advance(
        &self,
        id: ConnectionId,
        message: LifecycleMessage,
    ) -> StoreFuture<'_, Lookup<Result<ConnectionState, InvalidTransition>>>;

    /// Sets a member of the data of the application; `None` removes the member. Returns whether the
    /// connection exists and has not ended.
    fn set_session_data<'a>(
        &'a self,
        id: ConnectionId,
        key: &'a str,
        value: Option<Value>,
    ) -> StoreFuture<'a, bool>;

    /// Returns the ids of the active connections.
    fn active(&self) -> StoreFuture<'_, Vec<ConnectionId>>;

    /// Adds an event for the client of a connection. Returns whether the connection is active.
    fn publish(&self, id: ConnectionId, message: Bytes) -> StoreFuture<'_, bool>;

    /// Starts a reader after a position; `None` is the newest event that a reader took, or the last
    /// one that the store removed.
    fn open_events(
        &self,
        id: ConnectionId,
        after: Option<u64>,
    ) -> StoreFuture<'_, OpenedEvents<EventCursor>>;

    /// Waits for events after the position of a reader, and moves the reader behind them. The call
    /// says that the reader took all events up to its position. The wait ends with the connection.
    fn next_events<'a>(&'a self, cursor: &'a mut EventCursor) -> StoreFuture<'a, NextEvents>;
}

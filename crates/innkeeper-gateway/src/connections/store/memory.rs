//! Connections in the memory of the process.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::{
    ConnectionStore, Created, EXPIRED_TIME, EventCursor, Lookup, MAX_EVENT_BYTES, MAX_EVENTS,
    NextEvents, OpenedEvents, StoreFuture, StoreOptions, StoredEvent, TERMINATED_TIME,
    limited_user,
};
use crate::connections::lifecycle::{
    ConnectionLifecycleState, InvalidTransition, LifecycleMessage,
};
use crate::connections::state::{ConnectionId, ConnectionState};

/// Keeps connections in the memory of the process: they end with the process. The store knows as many
/// ids of connections that expired as it can have connections.
#[derive(Debug)]
pub struct MemoryStore {
    options: StoreOptions,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<ConnectionId, Entry>,
    /// The number of unexpired connections of each user.
    by_user: HashMap<String, usize>,
    /// The unexpired connections, the one that expires next first.
    by_expiry: BTreeSet<(Instant, ConnectionId)>,
    /// The ids of expired connections with the time until which they are known, in order.
    expired: VecDeque<(Instant, ConnectionId)>,
    /// The ids that the store does not know any more, for a store that has them in files.
    forgotten: Option<Vec<ConnectionId>>,
}

#[derive(Debug)]
enum Entry {
    Live(Box<LiveConnection>),
    Expired,
}

#[derive(Debug)]
struct LiveConnection {
    connection: ConnectionState,
    expires: Instant,
    events: VecDeque<StoredEvent>,
    event_bytes: usize,
    last_position: u64,
    read_position: u64,
    reader: u64,
    changed: Arc<Notify>,
}

impl MemoryStore {
    /// Creates a store without connections.
    pub fn new(options: StoreOptions) -> Self {
        Self { options, entries: Mutex::default() }
    }

    /// Returns the entries after the removal of what has expired.
    fn entries(&self) -> MutexGuard<'_, Entries> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove_expired(self.options.max_connections);
        entries
    }

    /// Uses a connection without renewing it.
    fn with_live<T>(
        &self,
        id: ConnectionId,
        use_connection: impl FnOnce(&mut LiveConnection) -> T,
    ) -> Lookup<T> {
        self.entries().look_up(id, use_connection)
    }

    pub(super) fn create_now(&self, connection: &ConnectionState) -> Created {
        let mut entries = self.entries();
        if entries.by_id.contains_key(&connection.id) {
            return Created::AlreadyExists;
        }
        if entries.by_expiry.len() >= self.options.max_connections {
            return Created::TotalLimit;
        }
        if let Some(user) = limited_user(connection) {
            let own = entries.by_user.entry(user.to_owned()).or_default();
            if *own >= self.options.user_connections() {
                return Created::UserLimit;
            }
            *own += 1;
        }
        let live = LiveConnection {
            connection: connection.clone(),
            expires: Instant::now() + self.options.expiry(),
            events: VecDeque::new(),
            event_bytes: 0,
            last_position: 0,
            read_position: 0,
            reader: 0,
            changed: Arc::new(Notify::new()),
        };
        entries.insert(live);
        Created::Added
    }

    pub(super) fn touch_now(
        &self,
        id: ConnectionId,
        user: Option<&str>,
    ) -> Lookup<ConnectionState> {
        let mut entries = self.entries();
        let found = entries.look_up(id, |live| live.connection.clone());
        match found {
            Lookup::Found(connection) if connection.user_id.as_deref() != user => Lookup::Unknown,
            Lookup::Found(connection)
                if connection.state != ConnectionLifecycleState::Terminated =>
            {
                entries.renew(id, &self.options);
                entries.look_up(id, |live| live.connection.clone())
            }
            found => found,
        }
    }

    pub(super) fn advance_now(
        &self,
        id: ConnectionId,
        message: LifecycleMessage,
    ) -> Lookup<Result<ConnectionState, InvalidTransition>> {
        let mut entries = self.entries();
        let moved = entries.look_up(id, |live| {
            live.connection.state = live.connection.state.after(message)?;
            live.changed.notify_waiters();
            Ok(())
        });
        match moved {
            Lookup::Found(Ok(())) => {
                entries.renew(id, &self.options);
                entries.look_up(id, |live| Ok(live.connection.clone()))
            }
            Lookup::Found(Err(invalid)) => Lookup::Found(Err(invalid)),
            Lookup::Expired => Lookup::Expired,
            Lookup::Unknown => Lookup::Unknown,
        }
    }

    pub(super) fn set_now(&self, id: ConnectionId, key: &str, value: Option<Value>) -> bool {
        let set = self.with_live(id, |live| {
            if live.connection.state == ConnectionLifecycleState::Terminated {
                return false;
            }
            let data = &mut live.connection.session_data;
            match value {
                Some(value) => drop(data.insert(key.to_owned(), value)),
                None => drop(data.shift_remove(key)),
            }
            true
        });
        set == Lookup::Found(true)
    }

    pub(super) fn publish_now(&self, id: ConnectionId, message: Bytes) -> bool {
        let published = self.with_live(id, |live| live.is_active() && live.push(message));
        published == Lookup::Found(true)
    }

    fn open_now(&self, id: ConnectionId, after: Option<u64>) -> OpenedEvents<EventCursor> {
        let opened = self.with_live(id, |live| live.open(id, after));
        match opened {
            Lookup::Found(opened) => opened,
            Lookup::Expired | Lookup::Unknown => OpenedEvents::NotActive,
        }
    }
}

/// A connection with its events, as another process continues it.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConnectionRecord {
    pub(super) connection: ConnectionState,
    pub(super) expires: DateTime<Utc>,
    /// The positions and messages of the events, in Base64.
    events: Vec<(u64, String)>,
    last_position: u64,
    read_position: u64,
}

/// What a store with files needs of the memory.
impl MemoryStore {
    /// Creates a store that remembers which ids it forgot.
    pub(super) fn with_forgotten(options: StoreOptions) -> Self {
        let store = Self::new(options);
        store.entries().forgotten = Some(Vec::new());
        store
    }

    /// Returns the ids that the store forgot since the last call.
    pub(super) fn take_forgotten(&self) -> Vec<ConnectionId> {
        self.entries().forgotten.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn record(&self, id: ConnectionId) -> Lookup<ConnectionRecord> {
        self.with_live(id, |live| ConnectionRecord {
            connection: live.connection.clone(),
            expires: Utc::now() + live.expires.duration_since(Instant::now()),
            events: live.events.iter().map(encode_event).collect(),
            last_position: live.last_position,
            read_position: live.read_position,
        })
    }

    /// Adds a connection, however many there are. One that has expired stays known as such.
    ///
    /// # Errors
    ///
    /// A message is not Base64.
    pub(super) fn restore(&self, record: ConnectionRecord) -> Result<(), base64::DecodeError> {
        let events =
            record.events.into_iter().map(|(position, message)| decode_event(position, &message));
        let events: VecDeque<_> = events.collect::<Result<_, _>>()?;
        let left = (record.expires - Utc::now()).to_std().unwrap_or_default();
        let live = LiveConnection {
            connection: record.connection,
            // A clock that was set back does not make a connection live longer.
            expires: Instant::now() + left.min(self.options.expiry()),
            event_bytes: events.iter().map(|event| event.message.len()).sum(),
            events,
            last_position: record.last_position,
            read_position: record.read_position,
            reader: 0,
            changed: Arc::new(Notify::new()),
        };
        let mut entries = self.entries();
        if let Some(user) = limited_user(&live.connection) {
            *entries.by_user.entry(user.to_owned()).or_default() += 1;
        }
        entries.insert(live);
        Ok(())
    }
}

fn encode_event(event: &StoredEvent) -> (u64, String) {
    (event.position, BASE64_STANDARD.encode(&event.message))
}

fn decode_event(position: u64, message: &str) -> Result<StoredEvent, base64::DecodeError> {
    Ok(StoredEvent { position, message: BASE64_STANDARD.decode(message)?.into() })
}

impl Entries {
    fn insert(&mut self, live: LiveConnection) {
        let id = live.connection.id;
        self.by_expiry.insert((live.expires, id));
        self.by_id.insert(id, Entry::Live(Box::new(live)));
    }

    fn look_up<T>(
        &mut self,
        id: ConnectionId,
        use_connection: impl FnOnce(&mut LiveConnection) -> T,
    ) -> Lookup<T> {
        match self.by_id.get_mut(&id) {
            Some(Entry::Live(live)) => Lookup::Found(use_connection(live)),
            Some(Entry::Expired) => Lookup::Expired,
            None => Lookup::Unknown,
        }
    }

    /// Renews the expiry and the time of the last use.
    fn renew(&mut self, id: ConnectionId, options: &StoreOptions) {
        let Some(Entry::Live(live)) = self.by_id.get_mut(&id) else { return };
        self.by_expiry.remove(&(live.expires, id));
        let time = match live.connection.state {
            ConnectionLifecycleState::Terminated => TERMINATED_TIME.min(options.expiry()),
            _ => options.expiry(),
        };
        live.expires = Instant::now() + time;
        live.connection.last_activity = Utc::now();
        self.by_expiry.insert((live.expires, id));
    }

    /// Replaces connections that have expired by marks, and removes old marks.
    fn remove_expired(&mut self, max_marks: usize) {
        let now = Instant::now();
        while self.by_expiry.first().is_some_and(|(expires, _)| *expires <= now) {
            let Some((expires, id)) = self.by_expiry.pop_first() else { break };
            self.expired.push_back((expires + EXPIRED_TIME, id));
            if let Some(Entry::Live(live)) = self.by_id.insert(id, Entry::Expired) {
                live.changed.notify_waiters();
                self.release(limited_user(&live.connection));
            }
        }
        while self.expired.len() > max_marks
            || self.expired.front().is_some_and(|(until, _)| *until <= now)
        {
            let Some((_, id)) = self.expired.pop_front() else { break };
            self.by_id.remove(&id);
            if let Some(forgotten) = &mut self.forgotten {
                forgotten.push(id);
            }
        }
    }

    fn release(&mut self, user: Option<&str>) {
        let Some(user) = user else { return };
        let Some(own) = self.by_user.get_mut(user) else { return };
        *own -= 1;
        if *own == 0 {
            self.by_user.remove(user);
        }
    }
}

impl LiveConnection {
    fn is_active(&self) -> bool {
        self.connection.state == ConnectionLifecycleState::Active
    }

    fn push(&mut self, message: Bytes) -> bool {
        self.last_position += 1;
        self.event_bytes += message.len();
        self.events.push_back(StoredEvent { position: self.last_position, message });
        let newest = self.events.back().map_or(0, |event| event.message.len());
        while self.events.len() > MAX_EVENTS
            || (self.events.len() > 1 && self.event_bytes - newest > MAX_EVENT_BYTES)
        {
            let Some(oldest) = self.events.pop_front() else { break };
            self.event_bytes -= oldest.message.len();
        }
        self.changed.notify_waiters();
        true
    }

    /// Returns the position of the oldest event, or of the next one.
    fn first_position(&self) -> u64 {
        self.events.front().map_or(self.last_position + 1, |event| event.position)
    }

    fn open(&mut self, id: ConnectionId, after: Option<u64>) -> OpenedEvents<EventCursor> {
        if !self.is_active() {
            return OpenedEvents::NotActive;
        }
        let oldest = self.first_position() - 1;
        let position = after.unwrap_or_else(|| self.read_position.max(oldest));
        if position > self.last_position || position < oldest {
            return OpenedEvents::Lost;
        }
        self.reader += 1;
        self.changed.notify_waiters();
        OpenedEvents::Opened(EventCursor { id, reader: self.reader, position })
    }

    /// Returns what a reader gets now; `None` if it must wait.
    fn next(&mut self, cursor: &mut EventCursor) -> Option<NextEvents> {
        if !self.is_active() || self.reader != cursor.reader {
            return Some(NextEvents::Ended);
        }
        self.read_position = self.read_position.max(cursor.position.min(self.last_position));
        if cursor.position >= self.last_position {
            return None;
        }
        if cursor.position + 1 < self.first_position() {
            return Some(NextEvents::Lost);
        }
        let events: Vec<_> =
            self.events.iter().filter(|event| event.position > cursor.position).cloned().collect();
        cursor.position = self.last_position;
        Some(NextEvents::Events(events))
    }
}

/// Returns a response that is there at once.
fn ready<'a, T: Send + 'a>(value: T) -> StoreFuture<'a, T> {
    Box::pin(async move { Ok(value) })
}

impl ConnectionStore for MemoryStore {
    fn create<'a>(&'a self, connection: &'a ConnectionState) -> StoreFuture<'a, Created> {
        ready(self.create_now(connection))
    }

    fn find(&self, id: ConnectionId) -> StoreFuture<'_, Lookup<ConnectionState>> {
        ready(self.with_live(id, |live| live.connection.clone()))
    }

    fn touch<'a>(
        &'a self,
        id: ConnectionId,
        user: Option<&'a str>,
    ) -> StoreFuture<'a, Lookup<ConnectionState>> {
        ready(self.touch_now(id, user))
    }

    fn advance(
        &self,
        id: ConnectionId,
        message: LifecycleMessage,
    ) -> StoreFuture<'_, Lookup<Result<ConnectionState, InvalidTransition>>> {
        ready(self.advance_now(id, message))
    }

    fn set_session_data<'a>(
        &'a self,
        id: ConnectionId,
        key: &'a str,
        value: Option<Value>,
    ) -> StoreFuture<'a, bool> {
        ready(self.set_now(id, key, value))
    }

    fn active(&self) -> StoreFuture<'_, Vec<ConnectionId>> {
        let entries = self.entries();
        let active = entries.by_id.iter().filter_map(|(id, entry)| match entry {
            Entry::Live(live) if live.is_active() => Some(*id),
            Entry::Live(_) | Entry::Expired => None,
        });
        ready(active.collect())
    }

    fn publish(&self, id: ConnectionId, message: Bytes) -> StoreFuture<'_, bool> {
        ready(self.publish_now(id, message))
    }

    fn open_events(
        &self,
        id: ConnectionId,
        after: Option<u64>,
    ) -> StoreFuture<'_, OpenedEvents<EventCursor>> {
        ready(self.open_now(id, after))
    }

    fn next_events<'a>(&'a self, cursor: &'a mut EventCursor) -> StoreFuture<'a, NextEvents> {
        Box::pin(async move {
            loop {
                let Lookup::Found((changed, expires)) =
                    self.with_live(cursor.id, |live| (live.changed.clone(), live.expires))
                else {
                    return Ok(NextEvents::Ended);
                };
                let changed = changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                match self.with_live(cursor.id, |live| live.next(cursor)) {
                    Lookup::Found(Some(next)) => return Ok(next),
                    Lookup::Found(None) => drop(timeout_at(expires, changed).await),
                    Lookup::Expired | Lookup::Unknown => return Ok(NextEvents::Ended),
                }
            }
        })
    }
}

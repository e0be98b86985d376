//! Connections in the memory of the process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use chrono::Utc;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{
    ConnectionStore, Created, EXPIRED_TIME, EventCursor, Lookup, MAX_EVENT_BYTES, MAX_EVENTS,
    NextEvents, OpenedEvents, StoreFuture, StoreOptions, StoredEvent, TERMINATED_TIME,
};
use crate::connections::lifecycle::{
    ConnectionLifecycleState, InvalidTransition, LifecycleMessage,
};
use crate::connections::state::{ConnectionId, ConnectionState};
use crate::principal::Principal;

/// Number of changes between two removals of expired connections.
const CHANGES_BETWEEN_REMOVALS: usize = 1_024;

/// Keeps connections in the memory of the process: they end with the process.
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
    live: usize,
    changes: usize,
}

#[derive(Debug)]
enum Entry {
    Live(Box<LiveConnection>),
    /// The connection has expired; the id is known until this time.
    Expired(Instant),
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

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a connection without renewing it.
    fn with_live<T>(
        &self,
        id: ConnectionId,
        use_connection: impl FnOnce(&mut LiveConnection, &StoreOptions) -> T,
    ) -> Lookup<T> {
        let mut entries = self.entries();
        entries.expire(id);
        match entries.by_id.get_mut(&id) {
            Some(Entry::Live(live)) => Lookup::Found(use_connection(live, &self.options)),
            Some(Entry::Expired(_)) => Lookup::Expired,
            None => Lookup::Unknown,
        }
    }

    fn create_now(&self, connection: &ConnectionState) -> Created {
        let mut entries = self.entries();
        entries.changes += 1;
        if entries.changes >= CHANGES_BETWEEN_REMOVALS
            || entries.live >= self.options.max_connections
        {
            entries.remove_expired();
        }
        if entries.by_id.contains_key(&connection.id) {
            return Created::AlreadyExists;
        }
        if entries.live >= self.options.max_connections {
            return Created::TotalLimit;
        }
        if let Some(user) = limited_user(connection) {
            let own = entries.by_user.entry(user.to_owned()).or_default();
            if *own >= self.options.max_connections.div_ceil(2) {
                return Created::UserLimit;
            }
            *own += 1;
        }
        entries.live += 1;
        let live = LiveConnection {
            connection: connection.clone(),
            expires: Instant::now() + self.options.expiry,
            events: VecDeque::new(),
            event_bytes: 0,
            last_position: 0,
            read_position: 0,
            reader: 0,
            changed: Arc::new(Notify::new()),
        };
        entries.by_id.insert(connection.id, Entry::Live(Box::new(live)));
        Created::Added
    }

    fn advance_now(
        &self,
        id: ConnectionId,
        message: LifecycleMessage,
    ) -> Lookup<Result<ConnectionState, InvalidTransition>> {
        self.with_live(id, |live, options| {
            live.connection.state = live.connection.state.after(message)?;
            live.renew(options);
            live.changed.notify_waiters();
            Ok(live.connection.clone())
        })
    }

    fn publish_now(&self, id: ConnectionId, message: Bytes) -> bool {
        let published = self.with_live(id, |live, _| live.is_active() && live.push(message));
        published == Lookup::Found(true)
    }

    fn open_now(&self, id: ConnectionId, after: Option<u64>) -> OpenedEvents<EventCursor> {
        let opened = self.with_live(id, |live, _| live.open(id, after));
        match opened {
            Lookup::Found(opened) => opened,
            Lookup::Expired | Lookup::Unknown => OpenedEvents::NotActive,
        }
    }
}

/// Returns the user of a connection whose number is limited apart from all others.
fn limited_user(connection: &ConnectionState) -> Option<&str> {
    let local = Principal::local_user();
    connection.user_id.as_deref().filter(|user| **user != **local.id())
}

impl Entries {
    /// Replaces a connection that has expired by a mark.
    fn expire(&mut self, id: ConnectionId) {
        let now = Instant::now();
        match self.by_id.get_mut(&id) {
            Some(Entry::Live(live)) if live.expires <= now => {
                let known_until = live.expires + EXPIRED_TIME;
                let user = limited_user(&live.connection).map(ToOwned::to_owned);
                live.changed.notify_waiters();
                self.live = self.live.saturating_sub(1);
                self.release(user.as_deref());
                if known_until > now {
                    self.by_id.insert(id, Entry::Expired(known_until));
                } else {
                    self.by_id.remove(&id);
                }
            }
            Some(Entry::Expired(known_until)) if *known_until <= now => {
                self.by_id.remove(&id);
            }
            Some(_) | None => {}
        }
    }

    fn release(&mut self, user: Option<&str>) {
        let Some(user) = user else { return };
        let Some(own) = self.by_user.get_mut(user) else { return };
        *own = own.saturating_sub(1);
        if *own == 0 {
            self.by_user.remove(user);
        }
    }

    fn remove_expired(&mut self) {
        self.changes = 0;
        let ids: Vec<_> = self.by_id.keys().copied().collect();
        for id in ids {
            self.expire(id);
        }
    }
}

impl LiveConnection {
    fn is_active(&self) -> bool {
        self.connection.state == ConnectionLifecycleState::Active
    }

    fn renew(&mut self, options: &StoreOptions) {
        let time = match self.connection.state {
            ConnectionLifecycleState::Terminated => TERMINATED_TIME.min(options.expiry),
            _ => options.expiry,
        };
        self.expires = Instant::now() + time;
        self.connection.last_activity = Utc::now();
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
        if cursor.position >= self.last_position {
            return None;
        }
        if cursor.position + 1 < self.first_position() {
            return Some(NextEvents::Lost);
        }
        let after = |event: &&StoredEvent| event.position > cursor.position;
        let events: Vec<_> = self.events.iter().filter(after).cloned().collect();
        cursor.position = self.last_position;
        self.read_position = self.read_position.max(self.last_position);
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
        ready(self.with_live(id, |live, _| live.connection.clone()))
    }

    fn touch(&self, id: ConnectionId) -> StoreFuture<'_, Lookup<ConnectionState>> {
        ready(self.with_live(id, |live, options| {
            if live.connection.state != ConnectionLifecycleState::Terminated {
                live.renew(options);
            }
            live.connection.clone()
        }))
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
        let set = self.with_live(id, |live, _| {
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
        ready(set == Lookup::Found(true))
    }

    fn active(&self) -> StoreFuture<'_, Vec<ConnectionId>> {
        let now = Instant::now();
        let entries = self.entries();
        let active = entries.by_id.iter().filter_map(|(id, entry)| match entry {
            Entry::Live(live) if live.is_active() && live.expires > now => Some(*id),
            Entry::Live(_) | Entry::Expired(_) => None,
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
                let Lookup::Found(changed) =
                    self.with_live(cursor.id, |live, _| live.changed.clone())
                else {
                    return Ok(NextEvents::Ended);
                };
                let changed = changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                match self.with_live(cursor.id, |live, _| live.next(cursor)) {
                    Lookup::Found(Some(next)) => return Ok(next),
                    Lookup::Found(None) => changed.await,
                    Lookup::Expired | Lookup::Unknown => return Ok(NextEvents::Ended),
                }
            }
        })
    }
}

//! Connections in a Redis that all replicas of a gateway use.

mod keys;
mod notices;
mod record;
mod scripts;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redis::Script;
use serde_json::Value;

use super::{
    ConnectionStore, Created, EventCursor, Lookup, MAX_EVENT_BYTES, MAX_EVENTS, NextEvents,
    OpenedEvents, StoreOptions, StoredEvent,
};
use crate::connections::lifecycle::{
    ConnectionLifecycleState, InvalidTransition, LifecycleMessage,
};
use crate::connections::state::{ConnectionId, ConnectionState};
use crate::redis_client::{RedisClient, Reply};
use crate::store_error::{StoreError, StoreFuture};
use crate::tasks::OwnedTask;

use self::notices::Waiters;
use self::scripts::Call;

/// Maximum time until a waiting reader looks for events without a notice: a lost notice delays an
/// event by this time.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Keeps connections in Redis. The connections outlive the process.
///
/// Each method is one script in Redis.
pub struct RedisStore {
    options: StoreOptions,
    client: Arc<RedisClient>,
    waiters: Arc<Waiters>,
    _notices: OwnedTask,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("options", &self.options)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Connects to `redis://[USER:PASSWORD@]HOST:PORT/DATABASE`, or with TLS to `rediss://…`.
    ///
    /// # Errors
    ///
    /// The URL is not valid, or Redis does not respond, or rejects the password or a script.
    pub async fn connect(url: &str, options: StoreOptions) -> Result<Self, StoreError> {
        Self::with_client(Arc::new(RedisClient::new(url)?), options).await
    }

    /// Works like [`Self::connect`], over a client that other stores share.
    ///
    /// # Errors
    ///
    /// Redis does not respond, or rejects the password or a script.
    pub async fn with_client(
        client: Arc<RedisClient>,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        let unknown = scripts::call(&scripts::FIND, ConnectionId::random(), options.expiry());
        client.run(&unknown).await?;
        let waiters = Arc::new(Waiters::default());
        let notices = OwnedTask::spawn(notices::deliver(client.clone(), waiters.clone()));
        Ok(Self { options, client, waiters, _notices: notices })
    }

    fn call<'a>(&self, script: &'a Script, id: ConnectionId) -> Call<'a> {
        scripts::call(script, id, self.options.expiry())
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, StoreError> {
        self.client.run(&call).await
    }

    async fn create_connection(&self, connection: &ConnectionState) -> Result<Created, StoreError> {
        let mut call = self.call(&scripts::CREATE, connection.id);
        call.arg(self.options.max_connections).arg(self.options.user_connections());
        call.arg(super::limited_user(connection).map_or_else(String::new, keys::user_set));
        call.arg(connection.state.as_str()).arg(record::document(connection)?);
        call.arg(record::user_text(connection.user_id.as_deref()));
        for (key, value) in &connection.session_data {
            call.arg(keys::data_field(key)).arg(value.to_string());
        }
        let reply = self.run(call).await?;
        match reply.name() {
            "added" => Ok(Created::Added),
            "exists" => Ok(Created::AlreadyExists),
            "user_limit" => Ok(Created::UserLimit),
            "total_limit" => Ok(Created::TotalLimit),
            _ => Err(reply.unexpected()),
        }
    }

    async fn look_up(&self, call: Call<'_>, id: ConnectionId) -> LookupResult<ConnectionState> {
        let reply = self.run(call).await?;
        match reply.name() {
            "found" => record::parse(id, reply.items()).map(Lookup::Found),
            _ => missing(&reply),
        }
    }

    async fn advance_connection(
        &self,
        id: ConnectionId,
        message: LifecycleMessage,
    ) -> LookupResult<Result<ConnectionState, InvalidTransition>> {
        let mut call = self.call(&scripts::ADVANCE, id);
        for state in ConnectionLifecycleState::ALL {
            if let Ok(after) = state.after(message) {
                call.arg(state.as_str()).arg(after.as_str());
            }
        }
        let reply = self.run(call).await?;
        match reply.name() {
            "found" => record::parse(id, reply.items()).map(|found| Lookup::Found(Ok(found))),
            "invalid" => {
                let state = record::parse_state(id, reply.items().first())?;
                Ok(Lookup::Found(Err(InvalidTransition { state, message })))
            }
            _ => missing(&reply),
        }
    }

    async fn list_active(&self) -> Result<Vec<ConnectionId>, StoreError> {
        let reply = self.run(self.call(&scripts::ACTIVE, ConnectionId::random())).await?;
        let ids = reply.items().iter().map(|id| std::str::from_utf8(id).ok()?.parse().ok());
        ids.collect::<Option<_>>().ok_or_else(|| reply.unexpected())
    }

    /// Runs a script that responds with a truth value.
    async fn holds(&self, call: Call<'_>) -> Result<bool, StoreError> {
        let reply = self.run(call).await?;
        match reply.name() {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(reply.unexpected()),
        }
    }

    async fn start_reader(
        &self,
        id: ConnectionId,
        after: Option<u64>,
    ) -> Result<OpenedEvents<EventCursor>, StoreError> {
        let mut call = self.call(&scripts::OPEN_EVENTS, id);
        if let Some(after) = after {
            call.arg(after);
        }
        let reply = self.run(call).await?;
        match reply.name() {
            "opened" => {
                let reader = reply.number(0)?;
                let position = reply.number(1)?;
                Ok(OpenedEvents::Opened(EventCursor { id, reader, position }))
            }
            "lost" => Ok(OpenedEvents::Lost),
            "not_active" => Ok(OpenedEvents::NotActive),
            _ => Err(reply.unexpected()),
        }
    }

    async fn wait_for_events(&self, cursor: &mut EventCursor) -> Result<NextEvents, StoreError> {
        let waiter = self.waiters.register(cursor.id);
        loop {
            let notice = waiter.notice();
            tokio::pin!(notice);
            // A notice from now on ends the wait below.
            notice.as_mut().enable();
            let mut call = self.call(&scripts::NEXT_EVENTS, cursor.id);
            call.arg(cursor.reader).arg(cursor.position);
            let reply = self.run(call).await?;
            match reply.name() {
                "events" => {
                    let events = parse_events(&reply)?;
                    cursor.position = events.last().map_or(cursor.position, |last| last.position);
                    return Ok(NextEvents::Events(events));
                }
                "lost" => return Ok(NextEvents::Lost),
                "ended" => return Ok(NextEvents::Ended),
                "none" => {
                    // Redis rounds the time to live.
                    let expiry = Duration::from_millis(reply.number(0)?.saturating_add(1));
                    let _ = tokio::time::timeout(expiry.min(POLL_INTERVAL), notice).await;
                }
                _ => return Err(reply.unexpected()),
            }
        }
    }
}

/// Returns what a reply says about an id without a connection.
fn missing<T>(reply: &Reply) -> LookupResult<T> {
    match reply.name() {
        "expired" => Ok(Lookup::Expired),
        "unknown" => Ok(Lookup::Unknown),
        _ => Err(reply.unexpected()),
    }
}

type LookupResult<T> = Result<Lookup<T>, StoreError>;

fn parse_events(reply: &Reply) -> Result<Vec<StoredEvent>, StoreError> {
    let mut events = Vec::with_capacity(reply.items().len() / 2);
    for (index, item) in reply.items().iter().enumerate().skip(1).step_by(2) {
        let position = reply.number(index - 1)?;
        events.push(StoredEvent { position, message: item.clone() });
    }
    if events.is_empty() { Err(reply.unexpected()) } else { Ok(events) }
}

impl ConnectionStore for RedisStore {
    fn create<'a>(&'a self, connection: &'a ConnectionState) -> StoreFuture<'a, Created> {
        Box::pin(self.create_connection(connection))
    }

    fn find(&self, id: ConnectionId) -> StoreFuture<'_, Lookup<ConnectionState>> {
        Box::pin(self.look_up(self.call(&scripts::FIND, id), id))
    }

    fn touch<'a>(
        &'a self,
        id: ConnectionId,
        user: Option<&'a str>,
    ) -> StoreFuture<'a, Lookup<ConnectionState>> {
        let mut call = self.call(&scripts::TOUCH, id);
        call.arg(record::user_text(user));
        Box::pin(self.look_up(call, id))
    }

    fn advance(
        &self,
        id: ConnectionId,
        message: LifecycleMessage,
    ) -> StoreFuture<'_, Lookup<Result<ConnectionState, InvalidTransition>>> {
        Box::pin(self.advance_connection(id, message))
    }

    fn set_session_data<'a>(
        &'a self,
        id: ConnectionId,
        key: &'a str,
        value: Option<Value>,
    ) -> StoreFuture<'a, bool> {
        let mut call = self.call(&scripts::SET_DATA, id);
        call.arg(keys::data_field(key));
        if let Some(value) = value {
            call.arg(value.to_string());
        }
        Box::pin(self.holds(call))
    }

    fn active(&self) -> StoreFuture<'_, Vec<ConnectionId>> {
        Box::pin(self.list_active())
    }

    fn publish(&self, id: ConnectionId, message: Bytes) -> StoreFuture<'_, bool> {
        let mut call = self.call(&scripts::PUBLISH, id);
        call.arg(MAX_EVENTS).arg(MAX_EVENT_BYTES).arg(&message[..]);
        Box::pin(self.holds(call))
    }

    fn open_events(
        &self,
        id: ConnectionId,
        after: Option<u64>,
    ) -> StoreFuture<'_, OpenedEvents<EventCursor>> {
        Box::pin(self.start_reader(id, after))
    }

    fn next_events<'a>(&'a self, cursor: &'a mut EventCursor) -> StoreFuture<'a, NextEvents> {
        Box::pin(self.wait_for_events(cursor))
    }
}

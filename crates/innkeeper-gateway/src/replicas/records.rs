//! What a replica leaves in Redis for the next owner of a key: sessions, calls that were sent, and the
//! messages of event streams.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use redis::{Script, ScriptInvocation};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::lease::LEASE_PREFIX;
use super::lease::milliseconds;
use super::ownership::no_lease;
use super::scripts;
use super::{OwnedKey, Ownership, Replicas};
use crate::redis_client::Reply;
use crate::store_error::StoreError;

/// Maximum number of records that wait for their removal. A record that is not removed expires.
const MAX_ENDED: usize = 8_192;

/// Maximum number of records of calls that another replica passed on, which wait for their removal for
/// about a minute: some thousand calls a second.
const MAX_BROKEN: usize = 1 << 18;

/// Time in which ended calls gather for one script.
const REMOVAL_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum number of records that one script removes.
const MAX_REMOVED: usize = 256;

/// The number of the stream for messages that belong to no request.
const GENERAL_STREAM: u64 = 0;

/// Time for which another replica can resume the stream of a request.
const RESUMPTION_TIME: Duration = Duration::from_secs(10 * 60);

/// A session as its next owner needs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    pub(crate) principal: String,
    /// What the endpoint is called among replicas.
    pub(crate) endpoint: String,
    pub(crate) revision: String,
    pub(crate) capabilities: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log_level: Option<String>,
    /// Whether the session has a state that no other replica has: servers of its own, or
    /// subscriptions.
    pub(crate) has_state: bool,
    /// The remote sessions that are all of this state, sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remote_sessions: Option<String>,
}

/// A call that was sent to its server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CallRecord {
    pub(crate) session: Option<Box<str>>,
    /// The number of the stream for the response.
    pub(crate) stream: u64,
    pub(crate) request: Box<RawValue>,
    /// The name that the client called.
    pub(crate) item: String,
}

/// Why a call is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordRejection {
    /// Another replica can own the key.
    Lost,
    /// A call with this id was sent before.
    Duplicate,
    /// Redis did not respond: the call may be recorded.
    Unavailable(String),
}

/// What an entry of the log of a stream says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Message,
    /// A message that is too long for the log.
    Omitted,
    /// The stream has no more messages.
    Closed,
}

impl EntryKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Message => "m",
            Self::Omitted => "o",
            Self::Closed => "c",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    /// The position of the message; of the last message for [`EntryKind::Closed`].
    pub(crate) position: u64,
    pub(crate) kind: EntryKind,
    pub(crate) message: Bytes,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct StreamLog {
    /// The ids of the requests whose responses belong to the stream, as JSON.
    pub(crate) requests: Vec<Box<RawValue>>,
    pub(crate) entries: Vec<LogEntry>,
}

/// The id of a call with the key of its session or principal.
type CallName = (OwnedKey, String);

#[derive(Debug)]
pub(super) struct EndedCalls {
    sender: mpsc::Sender<CallName>,
    receiver: Mutex<Option<mpsc::Receiver<CallName>>>,
    /// The calls that another replica may pass on again, each with the time after which it does not.
    broken: mpsc::Sender<(Instant, CallName)>,
    broken_receiver: Mutex<Option<mpsc::Receiver<(Instant, CallName)>>>,
}

impl Default for EndedCalls {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_ENDED);
        let (broken, broken_receiver) = mpsc::channel(MAX_BROKEN);
        let receiver = Mutex::new(Some(receiver));
        let broken_receiver = Mutex::new(Some(broken_receiver));
        Self { sender, receiver, broken, broken_receiver }
    }
}

fn session_name(id: &str) -> String {
    format!("mcp:session:{id}")
}

fn requests_name(session: &str, stream: u64) -> String {
    format!("mcp:session:{session}:stream:{stream}:requests")
}

fn log_name(session: &str, stream: u64) -> String {
    format!("mcp:session:{session}:stream:{stream}")
}

/// Returns the names of what belongs to a session for its whole time.
pub(crate) fn session_names(id: &str) -> Vec<String> {
    vec![session_name(id), log_name(id, GENERAL_STREAM)]
}

impl Replicas {
    /// Starts a call of a script with the owner of a key and the arguments that prove the ownership.
    fn fenced<'a>(&self, script: &'a Script, ownership: &Ownership) -> ScriptInvocation<'a> {
        let mut call = script.prepare_invoke();
        call.key(ownership.key.owner()).arg(&self.0.id).arg(ownership.fence);
        call
    }

    async fn run(&self, call: &ScriptInvocation<'_>) -> Result<Reply, StoreError> {
        self.0.redis.run(call).await
    }

    /// Stores the record of a session. Returns whether this replica still owns its key.
    ///
    /// # Errors
    ///
    /// Redis does not respond.
    pub(crate) async fn store_session(
        &self,
        ownership: &Ownership,
        id: &str,
        record: &SessionRecord,
    ) -> Result<bool, StoreError> {
        let text = serde_json::to_string(record)
            .map_err(|error| StoreError { reason: error.to_string() })?;
        let mut call = self.fenced(&scripts::STORE_SESSION, ownership);
        call.key(session_name(id)).arg(text).arg(milliseconds(self.0.options.idle));
        let reply = self.run(&call).await?;
        match reply.name() {
            "stored" => Ok(true),
            "not_owner" => {
                self.lose(ownership);
                Ok(false)
            }
            _ => Err(reply.unexpected()),
        }
    }

    /// Returns the record of a session.
    ///
    /// # Errors
    ///
    /// Redis does not respond, or the record is not usable.
    pub(crate) async fn find_session(&self, id: &str) -> Result<Option<SessionRecord>, StoreError> {
        let mut call = scripts::FIND_VALUE.prepare_invoke();
        call.key(session_name(id));
        let reply = self.run(&call).await?;
        match (reply.name(), reply.items().first()) {
            ("found", Some(record)) => serde_json::from_slice(record)
                .map(Some)
                .map_err(|error| StoreError { reason: format!("session `{id}`: {error}") }),
            ("unknown", _) => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }

    /// Records a call that is about to be sent.
    pub(crate) async fn record_call(
        &self,
        ownership: &Ownership,
        id: &str,
        record: &CallRecord,
    ) -> Result<(), RecordRejection> {
        let unavailable = |error: StoreError| RecordRejection::Unavailable(error.to_string());
        let text = serde_json::to_string(record)
            .map_err(|error| RecordRejection::Unavailable(error.to_string()))?;
        let mut call = scripts::RECORD_CALL.prepare_invoke();
        call.key(ownership.key.owner()).key(format!("{LEASE_PREFIX}{}", self.0.id));
        call.key(ownership.key.calls());
        call.arg(&self.0.id).arg(ownership.fence).arg(id).arg(text);
        call.arg(milliseconds(self.0.options.idle));
        let reply = self.run(&call).await.map_err(unavailable)?;
        match reply.name() {
            "recorded" => Ok(()),
            "duplicate" => Err(RecordRejection::Duplicate),
            "no_lease" => Err(unavailable(no_lease())),
            "not_owner" => {
                self.lose(ownership);
                Err(RecordRejection::Lost)
            }
            _ => Err(unavailable(reply.unexpected())),
        }
    }

    /// Removes the record of a call that has ended, soon.
    pub(crate) fn forget_call(&self, key: &OwnedKey, id: String) {
        // Without a place, the record expires.
        let _ = self.0.ended.sender.try_send((key.clone(), id));
    }

    /// Removes the record of a call whose response may not have reached the replica that passed the
    /// call on, when that replica passes the call on no more.
    pub(crate) fn forget_broken_call(&self, key: &OwnedKey, id: String) {
        // The first replica began before, and its last attempt takes less than once more this time.
        let at = Instant::now() + 2 * self.owner_time();
        // Without a place, the record expires.
        let _ = self.0.ended.broken.try_send((at, (key.clone(), id)));
    }

    /// Removes the records of calls that no replica passes on again, until the future is dropped.
    pub(super) async fn remove_broken_calls(self) {
        let ended = &self.0.ended;
        let receiver = ended.broken_receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut receiver) = receiver else { return };
        // All wait for the same time: the first one is due first.
        while let Some((at, (key, id))) = receiver.recv().await {
            sleep_until(at).await;
            self.forget_call(&key, id);
        }
    }

    /// Removes the records of calls that have ended, until the future is dropped.
    pub(super) async fn remove_ended_calls(self) {
        let receiver = self.0.ended.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut receiver) = receiver else { return };
        let mut ended = Vec::with_capacity(MAX_REMOVED);
        while receiver.recv_many(&mut ended, MAX_REMOVED).await > 0 {
            let mut call = scripts::FORGET_CALLS.prepare_invoke();
            for (key, id) in ended.drain(..) {
                call.key(key.calls()).arg(id);
            }
            // A record that stays expires.
            if let Err(error) = self.run(&call).await {
                tracing::debug!(%error, "records of calls not removed");
            }
            if receiver.len() < MAX_REMOVED {
                // One script for many calls.
                sleep(REMOVAL_INTERVAL).await;
            }
        }
    }

    /// Returns the records of the calls of a key, by their ids.
    ///
    /// # Errors
    ///
    /// Redis does not respond, or a record is not usable.
    pub(crate) async fn calls(
        &self,
        key: &OwnedKey,
    ) -> Result<Vec<(String, CallRecord)>, StoreError> {
        let mut call = scripts::FIND.prepare_invoke();
        call.key(key.calls());
        let reply = self.run(&call).await?;
        let mut calls = Vec::with_capacity(reply.items().len() / 2);
        for pair in reply.items().chunks_exact(2) {
            let [id, record] = pair else { continue };
            let record = serde_json::from_slice(record)
                .map_err(|error| StoreError { reason: format!("record of a call: {error}") })?;
            calls.push((String::from_utf8_lossy(id).into_owned(), record));
        }
        Ok(calls)
    }

    /// Adds entries to the log of a stream, and removes the entries before a position. `requests` are
    /// the ids of the requests of a new stream. Returns whether this replica still owns the key.
    ///
    /// # Errors
    ///
    /// Redis does not respond.
    pub(crate) async fn append(
        &self,
        ownership: &Ownership,
        session: &str,
        stream: u64,
        requests: Option<&str>,
        oldest: u64,
        entries: &[LogEntry],
    ) -> Result<bool, StoreError> {
        let mut call = self.fenced(&scripts::APPEND, ownership);
        call.key(log_name(session, stream)).key(requests_name(session, stream));
        let idle = self.0.options.idle;
        let time = if stream == GENERAL_STREAM { idle } else { idle.min(RESUMPTION_TIME) };
        call.arg(milliseconds(time)).arg(requests.unwrap_or_default()).arg(format!("{oldest}-0"));
        for LogEntry { position, kind, message } in entries {
            let sequence = u8::from(*kind == EntryKind::Closed);
            call.arg(format!("{position}-{sequence}")).arg(kind.as_str());
            match kind {
                EntryKind::Message => call.arg(&message[..]),
                EntryKind::Omitted | EntryKind::Closed => call.arg(""),
            };
        }
        let reply = self.run(&call).await?;
        match reply.name() {
            "added" => Ok(true),
            "not_owner" => {
                self.lose(ownership);
                Ok(false)
            }
            _ => Err(reply.unexpected()),
        }
    }

    /// Returns the log of a stream, empty if there is none.
    ///
    /// # Errors
    ///
    /// Redis does not respond, or the log is not usable.
    pub(crate) async fn read_log(
        &self,
        session: &str,
        stream: u64,
    ) -> Result<StreamLog, StoreError> {
        let mut call = scripts::READ_LOG.prepare_invoke();
        call.key(log_name(session, stream)).key(requests_name(session, stream));
        let reply = self.run(&call).await?;
        let (requests, entries) = reply.items().split_first().ok_or_else(|| reply.unexpected())?;
        let requests = match requests.is_empty() {
            true => Vec::new(),
            false => serde_json::from_slice(requests).map_err(|_| reply.unexpected())?,
        };
        let entries = entries.chunks_exact(3).map(|entry| {
            let [id, kind, message] = entry else { return None };
            let position = std::str::from_utf8(id).ok()?.split_once('-')?.0.parse().ok()?;
            let kind = match &kind[..] {
                b"m" => EntryKind::Message,
                b"o" => EntryKind::Omitted,
                b"c" => EntryKind::Closed,
                _ => return None,
            };
            Some(LogEntry { position, kind, message: message.clone() })
        });
        let entries = entries.collect::<Option<_>>().ok_or_else(|| reply.unexpected())?;
        Ok(StreamLog { requests, entries })
    }
}

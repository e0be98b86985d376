//! Limits the memory of finished event streams, which stay for resumption.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::event_stream::EventStream;
use crate::principal::Principal;
use crate::quota::{Quota, QuotaExceeded};

/// Maximum number of bytes of all finished streams together.
const MAX_FINISHED_BYTES: usize = 256 << 20;

/// Estimated number of bytes of a stream without its messages.
const STREAM_OVERHEAD_BYTES: usize = 512;

/// The finished streams of all sessions, by principal, the oldest first.
#[derive(Debug)]
pub(crate) struct FinishedStreams {
    quota: Arc<Quota>,
    queues: Mutex<Queues>,
}

/// Minimum length of a queue before the removal of ended streams.
const MIN_REMOVAL_LENGTH: usize = 64;

#[derive(Debug, Default)]
struct Queues {
    next: u64,
    by_principal: HashMap<Principal, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    streams: VecDeque<FinishedStream>,
    /// Number of streams after the last removal of ended streams.
    kept: usize,
}

impl Queue {
    /// Adds a stream. If the queue doubled, forgets the streams that have no owner any more, so that
    /// a busy client does not fill the queue with them.
    fn push(&mut self, finished: FinishedStream) {
        self.streams.push_back(finished);
        if self.streams.len() > 2 * self.kept.max(MIN_REMOVAL_LENGTH) {
            self.remove_ended();
        }
    }

    /// Forgets the streams of sessions that have ended or have newer streams.
    fn remove_ended(&mut self) {
        self.streams.retain(|finished| finished.stream.strong_count() > 0);
        self.kept = self.streams.len();
    }
}

#[derive(Debug)]
struct FinishedStream {
    number: u64,
    /// Its session owns the stream.
    stream: Weak<EventStream>,
}

impl FinishedStream {
    /// Whether no reader needs the messages, other than a client that lost its connection.
    fn is_read(&self) -> bool {
        self.stream.upgrade().is_none_or(|stream| stream.is_read())
    }
}

impl FinishedStreams {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_maximum(MAX_FINISHED_BYTES)
    }

    fn with_maximum(bytes: usize) -> Arc<Self> {
        Arc::new(Self { quota: Quota::new(bytes), queues: Mutex::default() })
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a closed stream. Removes the messages of the oldest streams that exceed the share of the
    /// principal or the maximum, first those that a reader took completely.
    pub(crate) fn add(&self, principal: &Principal, stream: &Arc<EventStream>) {
        let bytes = stream.logged_bytes() + STREAM_OVERHEAD_BYTES;
        let mut queues = self.queues();
        let memory = loop {
            match self.quota.reserve(principal, bytes) {
                Ok(memory) => break memory,
                Err(QuotaExceeded::Own) if queues.remove_oldest_of(principal) => {}
                Err(QuotaExceeded::Total) if queues.remove_oldest() => {}
                // No other stream is left, and the reader of this one needs its messages.
                Err(QuotaExceeded::Own | QuotaExceeded::Total) => return,
            }
        };
        stream.keep_memory(memory);
        let number = queues.next;
        queues.next += 1;
        let finished = FinishedStream { number, stream: Arc::downgrade(stream) };
        match queues.by_principal.get_mut(principal) {
            Some(queue) => queue.push(finished),
            None => queues.by_principal.entry(principal.clone()).or_default().push(finished),
        }
    }

    /// Returns the memory of all finished streams in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.quota.total()
    }

    /// Forgets the streams of sessions that have ended.
    pub(crate) fn remove_ended(&self) {
        self.queues().by_principal.retain(|_, queue| {
            queue.remove_ended();
            !queue.streams.is_empty()
        });
    }
}

impl Queues {
    fn remove_oldest_of(&mut self, principal: &Principal) -> bool {
        let Some(queue) = self.by_principal.get_mut(principal) else { return false };
        let streams = &mut queue.streams;
        let oldest = streams.iter().position(FinishedStream::is_read).unwrap_or_default();
        let Some(removed) = streams.remove(oldest) else { return false };
        if let Some(stream) = removed.stream.upgrade() {
            stream.discard();
        }
        true
    }

    fn remove_oldest(&mut self) -> bool {
        let queues = self.by_principal.iter();
        let oldest =
            queues.filter_map(|(principal, queue)| Some((queue.streams.front()?, principal)));
        let oldest = oldest.min_by_key(|(finished, _)| finished.number);
        let Some(principal) = oldest.map(|(_, principal)| principal.clone()) else { return false };
        self.remove_oldest_of(&principal)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const MESSAGE_BYTES: usize = 1_000;

    /// The size of each stream of these tests.
    const STREAM_BYTES: usize = MESSAGE_BYTES + STREAM_OVERHEAD_BYTES;

    async fn add(streams: &FinishedStreams, principal: &Principal, read: bool) -> Arc<EventStream> {
        let stream = Arc::new(EventStream::new(1));
        stream.push(Bytes::from(vec![b'x'; MESSAGE_BYTES]));
        stream.close();
        if read {
            stream.read_after(0).unwrap().next().await.unwrap();
        }
        streams.add(principal, &stream);
        stream
    }

    fn can_resume(stream: &Arc<EventStream>) -> bool {
        stream.read_after(0).is_some()
    }

    #[tokio::test]
    async fn the_oldest_streams_make_room_first_those_that_are_read() {
        let streams = FinishedStreams::with_maximum(3 * STREAM_BYTES);
        let user = Principal::local_user();
        let unread = add(&streams, &user, false).await;
        let first = add(&streams, &user, true).await;
        let second = add(&streams, &user, true).await;
        assert!(can_resume(&unread) && can_resume(&first) && can_resume(&second), "at the limit");
        let third = add(&streams, &user, false).await;
        assert!(!can_resume(&first), "one past the limit");
        assert!(can_resume(&unread) && can_resume(&second) && can_resume(&third));
        let fourth = add(&streams, &user, false).await;
        let fifth = add(&streams, &user, false).await;
        assert!(!can_resume(&second) && !can_resume(&unread), "the oldest if none is read");
        assert!(can_resume(&third) && can_resume(&fourth) && can_resume(&fifth));
    }

    /// Attack: remote | a client finishes streams without end and reads none | only its own older
    /// streams cannot be resumed any more, and the memory of all streams has a limit | Isolation
    #[tokio::test]
    async fn a_client_takes_the_place_of_its_own_streams_only() {
        let streams = FinishedStreams::with_maximum(4 * STREAM_BYTES);
        let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
        let kept = add(&streams, &ben, true).await;
        let mut all = Vec::new();
        for _ in 0..10 {
            all.push(add(&streams, &ann, false).await);
        }
        assert_eq!(all.iter().filter(|stream| can_resume(stream)).count(), 2, "her half");
        assert!(can_resume(&kept));
        add(&streams, &ben, false).await;
        assert!(can_resume(&kept), "his half");
        drop((all, kept));
        streams.remove_ended();
        assert!(streams.queues().by_principal.is_empty(), "nothing stays of ended sessions");
        assert_eq!(streams.bytes(), 0, "the memory is free");
    }

    #[tokio::test]
    async fn streams_that_nobody_can_resume_are_forgotten() {
        let streams = FinishedStreams::new();
        let user = Principal::local_user();
        let kept = add(&streams, &user, true).await;
        for _ in 0..10 * MIN_REMOVAL_LENGTH {
            add(&streams, &user, true).await;
        }
        let queued = streams.queues().by_principal[&user].streams.len();
        assert!(queued <= 2 * MIN_REMOVAL_LENGTH, "{queued} of ended streams");
        assert!(can_resume(&kept));
    }

    #[tokio::test]
    async fn a_stream_above_the_limit_can_be_read() {
        let streams = FinishedStreams::with_maximum(STREAM_BYTES - 1);
        let large = add(&streams, &Principal::local_user(), false).await;
        assert!(can_resume(&large));
    }
}

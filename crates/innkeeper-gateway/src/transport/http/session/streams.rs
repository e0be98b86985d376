//! The event streams of one session.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::GENERAL_STREAM;
use crate::event_stream::EventStream;

/// Maximum number of streams of one session that can be resumed.
pub(in crate::transport::http) const MAX_RESUMABLE_STREAMS: usize = 64;

/// Takes the streams with messages to store for other replicas.
pub(super) type StreamQueue = mpsc::UnboundedSender<Arc<EventStream>>;

#[derive(Debug)]
pub(in crate::transport::http) struct SessionStreams {
    /// The stream for messages that belong to no request.
    pub(in crate::transport::http) general: Arc<EventStream>,
    /// The streams that can be resumed, the oldest first.
    resumable: Mutex<VecDeque<Arc<EventStream>>>,
    next: AtomicU64,
}

impl SessionStreams {
    /// Numbers the streams of requests from the number after `first`.
    pub(super) fn new(general: EventStream, first: u64) -> Self {
        let next = AtomicU64::new(first + 1);
        Self { general: Arc::new(general), resumable: Mutex::default(), next }
    }

    fn resumable(&self) -> MutexGuard<'_, VecDeque<Arc<EventStream>>> {
        self.resumable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::transport::http) fn create(&self) -> Arc<EventStream> {
        Arc::new(EventStream::new(self.next.fetch_add(1, Ordering::Relaxed)))
    }

    pub(super) fn remember(&self, stream: &Arc<EventStream>) {
        let mut streams = self.resumable();
        if streams.len() >= MAX_RESUMABLE_STREAMS {
            // The oldest finished stream, else the oldest one.
            let finished = streams.iter().position(|stream| stream.is_closed());
            streams.remove(finished.unwrap_or_default());
        }
        streams.push_back(stream.clone());
    }

    pub(in crate::transport::http) fn find(&self, number: u64) -> Option<Arc<EventStream>> {
        if number == GENERAL_STREAM {
            return Some(self.general.clone());
        }
        self.resumable().iter().find(|stream| stream.number == number).cloned()
    }
}

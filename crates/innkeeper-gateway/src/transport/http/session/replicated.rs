//! The state of a session that only replicas need.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::streams::StreamQueue;
use crate::replicas::Ownership;

/// A session that this replica owns, or owned.
#[derive(Debug)]
pub(in crate::transport::http) struct ReplicatedSession {
    pub(in crate::transport::http) ownership: Arc<Ownership>,
    pub(super) queue: StreamQueue,
    /// When Redis was last told to keep the session.
    kept: Mutex<Instant>,
    /// Held while the record of the session is stored, so that no older record replaces a newer one.
    pub(in crate::transport::http) storing: tokio::sync::Mutex<()>,
}

impl ReplicatedSession {
    pub(super) fn new(ownership: Arc<Ownership>, queue: StreamQueue) -> Self {
        let kept = Mutex::new(Instant::now());
        Self { ownership, queue, kept, storing: tokio::sync::Mutex::default() }
    }

    /// Returns whether Redis must be told to keep the session, and counts as told.
    pub(super) fn needs_keeping(&self, interval: Duration) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = kept.elapsed() >= interval;
        if is_due {
            *kept = Instant::now();
        }
        is_due
    }
}

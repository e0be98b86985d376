//! The way into a session for transports that receive single messages.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::Revision;
use tokio::time::sleep;

use super::{Fault, Shared};
use crate::error::Lost;

/// How often it is looked whether a request is still waited for.
const LOOK: Duration = Duration::from_secs(30);

/// Where a transport gives what it receives. The session ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Inlet(Arc<Shared>);

impl Inlet {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// The server, for log lines.
    pub(crate) fn server(&self) -> &str {
        &self.0.server
    }

    /// The revision that was agreed on, once one was.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.0.revision.get().copied()
    }

    /// The most bytes one message may have.
    pub(crate) fn limit(&self) -> usize {
        self.0.limits.line
    }

    /// Takes one message; waits, bounded, while results pile up that nobody takes, and where too
    /// much comes that nobody asked for.
    pub(crate) async fn message(&self, text: &[u8]) {
        Shared::message(&self.0, text);
        self.0.settle().await;
    }

    /// Counts bytes that came and are no message, and waits where there are too many of them.
    pub(crate) async fn dropped(&self, bytes: u64) {
        self.0.pace.count(bytes);
        self.0.settle().await;
    }

    /// Counts a ping that the transport answers itself.
    pub(crate) async fn pinged(&self, bytes: u64) {
        self.0.pace.count_request(bytes);
        self.0.settle().await;
    }

    /// Takes the beginning of a message that crossed the limit.
    pub(crate) async fn too_long(&self, head: &[u8]) {
        self.0.too_long(head);
        self.dropped(self.limit() as u64).await;
    }

    /// Ends one request without an answer.
    pub(crate) fn fail(&self, id: u64, fault: Fault) {
        if let Some(waiter) = self.0.pending.take(id) {
            // The caller may have gone in this moment.
            drop(waiter.send(Err(fault)));
        }
    }

    /// Whether somebody still waits for the answer to this request.
    pub(crate) fn waits(&self, id: u64) -> bool {
        self.0.pending.waits(id)
    }

    /// Resolves once nobody waits for the answer to this request any more, because it came by another
    /// way or its time is over; half a minute later at most.
    pub(crate) async fn until_unawaited(&self, id: u64) {
        while self.waits(id) {
            sleep(LOOK).await;
        }
    }

    /// Says that the server has begun anew: it may offer other things than before, and does not know
    /// what it was asked to tell of.
    pub(crate) fn renewed(&self) {
        self.0.changes.renew();
    }

    /// Ends the session.
    pub(crate) fn close(&self, reason: Lost) {
        self.0.close(reason);
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        // Nobody would receive anything any more.
        self.0.close(Lost::Broken("its transport ended".into()));
    }
}

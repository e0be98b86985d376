//! The inbound side of a session for message transports.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::Revision;
use tokio::time::sleep;

use super::{RequestError, SessionState};
use crate::error::UnavailableReason;
use crate::event::HostEvent;

/// Interval of the checks whether a request is still pending.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The stream from which a message was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageSource {
    /// The only stream of the server, which carries all messages.
    Pipe,
    /// The HTTP response to the request with this id.
    Response(u64),
    /// An HTTP stream for messages that do not belong to a request.
    Standalone,
}

/// A sink for received messages; dropping it closes the session.
#[derive(Debug)]
pub(crate) struct InboundSink(Arc<SessionState>);

impl InboundSink {
    pub(super) fn new(shared: Arc<SessionState>) -> Self {
        Self(shared)
    }

    /// Returns the server name for log messages.
    pub(crate) fn server(&self) -> &str {
        &self.0.server
    }

    /// Returns the negotiated revision, `None` before the handshake.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.0.revision.get().copied()
    }

    /// Returns the maximum size of a message in bytes.
    pub(crate) fn max_message_bytes(&self) -> usize {
        self.0.reading.max_line_bytes
    }

    /// Handles one message; waits, for a bounded time, while the result budget is exhausted or
    /// unsolicited messages exceed the rate limit.
    pub(crate) async fn receive_message(&self, text: &[u8]) {
        self.receive_from(text, MessageSource::Pipe).await;
    }

    /// Like [`Self::receive_message`], for a message on the HTTP response to the request with this
    /// id, or on an HTTP stream without a request.
    pub(crate) async fn receive_http_message(&self, text: &[u8], request_id: Option<u64>) {
        let source = request_id.map_or(MessageSource::Standalone, MessageSource::Response);
        self.receive_from(text, source).await;
    }

    async fn receive_from(&self, text: &[u8], source: MessageSource) {
        SessionState::receive_message(&self.0, text, source);
        self.0.wait_for_capacity().await;
    }

    /// Counts bytes that are not a message, and waits if they exceed the rate limit.
    pub(crate) async fn count_discarded(&self, bytes: u64) {
        self.0.reading.rate.count(bytes);
        self.0.wait_for_capacity().await;
    }

    /// Counts a ping that the transport itself answers.
    pub(crate) async fn count_ping(&self, bytes: u64) {
        self.0.reading.rate.count_request(bytes);
        self.0.wait_for_capacity().await;
    }

    /// Handles the start of a message that exceeds the size limit.
    pub(crate) async fn receive_too_long(&self, head: &[u8]) {
        self.0.handle_too_long(head);
        self.count_discarded(self.max_message_bytes() as u64).await;
    }

    /// Fails a request without a response.
    pub(crate) fn fail_request(&self, id: u64, error: RequestError) {
        if let Some(waiter) = self.0.pending.take_responder(id) {
            // The caller may have been dropped in the meantime.
            let _ = waiter.send(Err(error));
        }
    }

    /// Returns whether this request is still pending.
    pub(crate) fn is_awaited(&self, id: u64) -> bool {
        self.0.pending.is_awaited(id)
    }

    /// Waits until this request is no longer pending because of a response or a timeout; returns at
    /// most [`POLL_INTERVAL`] later.
    pub(crate) async fn wait_until_unawaited(&self, id: u64) {
        while self.is_awaited(id) {
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Reports that the session was re-established: lists may have changed, and the server has lost
    /// its subscriptions.
    pub(crate) fn mark_reinitialized(&self) {
        self.0.change_notifier.mark_reinitialized();
        self.0.events.publish(HostEvent::Reinitialized { server: self.0.server.clone() });
    }

    pub(crate) fn close(&self, reason: UnavailableReason) {
        self.0.close(reason);
    }
}

impl Drop for InboundSink {
    fn drop(&mut self) {
        // Without the sink, the session receives no more messages.
        self.0.close(UnavailableReason::ConnectionLost("transport closed".into()));
    }
}

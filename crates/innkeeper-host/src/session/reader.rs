//! Reads a server's output line by line until it ends or becomes unusable.

use std::sync::Arc;

use innkeeper_protocol::LineFramer;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::coop_budget::CoopBudget;
use super::{EXIT_STATUS_GRACE, SessionState};
use crate::error::UnavailableReason;

/// Reads until the server's output ends. Waits only for input, for capacity in the result budget,
/// and while the rate limiter throttles.
pub(super) async fn read_output(
    shared: Arc<SessionState>,
    mut reader: impl AsyncRead + Send + Unpin,
) {
    let shared = CloseOnDrop(shared);
    let shared = &shared.0;
    let mut framer = LineFramer::new(shared.reading.max_line_bytes);
    let mut budget = CoopBudget::default();
    let mut discarded = 0;
    // A message that spans many reads is cheap to process, so its reads are not limited.
    let mut small = true;
    loop {
        let max_bytes = if small { shared.reading.rate.read_limit() } else { u64::MAX };
        let read = match (&mut reader).take(max_bytes).read_buf(framer.read_buffer()).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        small = false;
        while let Some(frame) = framer.next_frame() {
            small = true;
            SessionState::receive_frame(shared, frame);
            shared.wait_for_capacity().await;
        }
        // The framer dropped an oversized or blank line.
        let blank = !small && framer.is_empty();
        let dropped = if blank { read as u64 } else { framer.discarded() - discarded };
        if dropped > 0 {
            shared.reading.rate.count(dropped);
            discarded = framer.discarded();
            shared.wait_for_capacity().await;
        }
        if framer.discarded() > shared.reading.max_discarded_bytes {
            return shared.close(UnavailableReason::InvalidMessages);
        }
        budget.consume(read).await;
    }
    if let Some(frame) = framer.finish() {
        SessionState::receive_frame(shared, frame);
    }
    shared.pending.end_output();
    // The owner of the process knows a more specific reason and reports it within this time.
    tokio::time::sleep(EXIT_STATUS_GRACE).await;
    shared.close(UnavailableReason::ClosedOutput);
}

/// A guard that fails all pending requests when the reader task ends for any reason.
struct CloseOnDrop(Arc<SessionState>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close(UnavailableReason::ClosedOutput);
    }
}

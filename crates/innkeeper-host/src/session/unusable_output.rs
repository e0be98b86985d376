//! What a server sends that is no message for the host: text, malformed messages, and responses that
//! nobody waits for.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use innkeeper_protocol::{MalformedMessage, RequestId};
use tokio::sync::{Notify, SetOnce};

use super::multiline_detector::MultilineDetector;

/// Maximum number of bytes of a line before the first message that are kept.
const MAX_EARLY_LINE_BYTES: usize = 1 << 10;

/// Maximum number of consecutive invalid lines; longer than any banner or startup log.
pub(super) const MAX_INVALID_LINES: u32 = 1000;

/// The unusable output of a server so far.
#[derive(Debug, Default)]
pub(super) struct UnusableOutput {
    count: AtomicU64,
    /// Number of consecutive invalid lines since the last message.
    consecutive_lines: AtomicU32,
    first_message: SetOnce<()>,
    /// The last line before the first valid message: some servers write their errors to stdout.
    early_line: Mutex<Vec<u8>>,
    multiline_detector: Mutex<MultilineDetector>,
    /// Notified of an error response that belongs to no request.
    pub(super) unattributed_error: Notify,
}

impl UnusableOutput {
    /// Records a valid message.
    pub(super) fn record_message(&self) {
        if self.consecutive_lines.load(Ordering::Relaxed) != 0 {
            self.consecutive_lines.store(0, Ordering::Relaxed);
        }
        if !self.first_message.initialized() {
            // Only the reader sets the cell.
            let _ = self.first_message.set(());
        }
    }

    /// Waits for the first valid message.
    pub(super) async fn first_message(&self) {
        self.first_message.wait().await;
    }

    /// Counts an invalid line; returns whether there are too many of them.
    pub(super) fn count_line(&self) -> bool {
        self.consecutive_lines.fetch_add(1, Ordering::Relaxed) >= MAX_INVALID_LINES
    }

    /// Counts an unusable message without a warning.
    pub(super) fn count(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts an unusable message and warns of it.
    pub(super) fn log(&self, server: &str, what: &'static str, detail: Option<&MalformedMessage>) {
        let count = self.count();
        // Log each of the first messages, then each power of two, so that a flood cannot flood the
        // log.
        if count <= 16 || count.is_power_of_two() {
            let detail = detail.map(ToString::to_string);
            tracing::warn!(server, what, detail, count, "unusable message");
        }
    }

    /// Keeps a line of text, not of JSON, before the first message.
    pub(super) fn keep_early_line(&self, line: &[u8]) {
        let is_text = line.trim_ascii().first().is_some_and(|first| !b"{}[]\"".contains(first));
        if is_text && !self.first_message.initialized() {
            let mut early_line = self.early_line.lock().unwrap_or_else(PoisonError::into_inner);
            early_line.clear();
            early_line.extend_from_slice(&line[..line.len().min(MAX_EARLY_LINE_BYTES)]);
        }
    }

    /// Returns the last line of text before the first message.
    pub(super) fn early_line(&self) -> Vec<u8> {
        self.early_line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the id of the response that this line completes, if it spans several lines.
    pub(super) fn push_line(&self, line: &[u8]) -> Option<RequestId> {
        self.multiline_detector.lock().unwrap_or_else(PoisonError::into_inner).push_line(line)
    }
}

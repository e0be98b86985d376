//! Reads the stderr of a server.
//!
//! The host always drains stderr, stores its end and forwards its lines at a limited rate.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use innkeeper_config::Secret;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use crate::rate_limiter::RateLimiter;
use crate::text::display_safe;

/// Maximum number of stored bytes: enough for a stack trace, and under 7 MB for 100 servers.
const MAX_TAIL_BYTES: usize = 64 << 10;

/// Maximum size in bytes of a forwarded line; longer lines are truncated.
const MAX_LINE_BYTES: usize = 8 << 10;

/// Maximum number of lines forwarded per second: enough for a verbose start, too few for a flood.
const MAX_LINES_PER_SECOND: u32 = 50;

/// Maximum number of bytes per read.
const READ_BUFFER_BYTES: usize = 16 << 10;

/// The end of a server's stderr; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StderrTail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    masks: ValueMasks,
}

/// The values of a server's variables, which the server may print.
#[derive(Clone, Debug, Default)]
struct ValueMasks(Arc<[Secret]>);

impl ValueMasks {
    fn mask(&self, text: String) -> String {
        self.0.iter().fold(text, |text, value| value.mask_whole(text))
    }
}

impl StderrTail {
    /// Creates an empty tail that masks these values.
    pub(crate) fn with_masked_values<'v>(values: impl Iterator<Item = &'v Secret>) -> Self {
        let mut values: Vec<Secret> = values.cloned().collect();
        // A value that contains another value is masked first.
        values.sort_by_key(|value| std::cmp::Reverse(value.expose().len()));
        Self { bytes: Arc::default(), masks: ValueMasks(values.into()) }
    }

    /// Reads `source` until it ends. Passes each line to `line` without its line end, escaped for
    /// display; lines above the rate limit are counted, and one line reports their number.
    pub(crate) async fn drain(
        &self,
        mut source: impl AsyncRead + Unpin,
        mut line: impl FnMut(&str),
    ) {
        let mut lines = LineSplitter::default();
        let mut rate = LineRateLimiter::new(self.masks.clone());
        // The buffer's pages are untouched, and so use no memory, before the first read.
        let pace = RateLimiter::new();
        let mut bytes = Vec::with_capacity(READ_BUFFER_BYTES);
        loop {
            let read = match rate.summary_due() {
                None => source.read_buf(&mut bytes).await,
                Some(due) => match timeout_at(due, source.read_buf(&mut bytes)).await {
                    Ok(read) => read,
                    Err(_) => {
                        rate.summarise(&mut line);
                        continue;
                    }
                },
            };
            match read {
                Ok(0) => break,
                Ok(_) => {
                    self.keep(&bytes);
                    lines.split(&bytes, |text| rate.pass(text, &mut line));
                    pace.count(bytes.len() as u64);
                    bytes.clear();
                    if pace.should_throttle() {
                        pace.throttle().await;
                    }
                    // Without this yield, a flood would occupy the runtime thread for 128 reads.
                    tokio::task::yield_now().await;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        lines.finish(|text| rate.pass(text, &mut line));
        rate.summarise(&mut line);
    }

    /// Returns the last lines without the escape sequences of a terminal, escaped for display: at
    /// most `max_bytes` of the output, from the start of a line if possible.
    pub(crate) fn tail(&self, max_bytes: usize) -> String {
        let buffer = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<u8> = buffer.iter().copied().collect();
        drop(buffer);
        // Before the cut, which can divide a value.
        let mut bytes = if self.masks.0.is_empty() {
            all
        } else {
            self.masks.mask(String::from_utf8_lossy(&all).into_owned()).into_bytes()
        };
        let from = bytes.len().saturating_sub(max_bytes);
        bytes.drain(..from);
        if from > 0 {
            let line = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            if line < bytes.len() {
                bytes.drain(..line);
            }
        }
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        display_safe(anstream::adapter::strip_str(&text).to_string().trim_end()).into_owned()
    }

    /// Adds output of the server.
    pub(crate) fn keep(&self, bytes: &[u8]) {
        let mut tail = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = &bytes[bytes.len().saturating_sub(MAX_TAIL_BYTES)..];
        let excess = (tail.len() + bytes.len()).saturating_sub(MAX_TAIL_BYTES);
        tail.drain(..excess);
        tail.extend(bytes);
    }
}

/// Splits bytes into lines of limited length.
#[derive(Default)]
struct LineSplitter {
    partial: Vec<u8>,
}

impl LineSplitter {
    fn split(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) {
        for chunk in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = chunk.strip_suffix(b"\n").unwrap_or(chunk);
            let remaining = MAX_LINE_BYTES.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(&text[..text.len().min(remaining)]);
            if chunk.ends_with(b"\n") {
                self.finish(&mut line);
            }
        }
    }

    fn finish(&mut self, mut line: impl FnMut(&[u8])) {
        let text = self.partial.strip_suffix(b"\r").unwrap_or(&self.partial);
        if !text.is_empty() {
            line(text);
        }
        self.partial.clear();
    }
}

/// Passes a limited number of lines per second and counts the others.
struct LineRateLimiter {
    masks: ValueMasks,
    window_start: Instant,
    passed: u32,
    suppressed: u64,
}

impl LineRateLimiter {
    fn new(masks: ValueMasks) -> Self {
        Self { masks, window_start: Instant::now(), passed: 0, suppressed: 0 }
    }

    /// Masks, escapes and passes a line within the limit; discards other lines without processing.
    fn pass(&mut self, text: &[u8], line: &mut impl FnMut(&str)) {
        if self.window_start.elapsed() >= Duration::from_secs(1) {
            self.summarise(line);
            (self.window_start, self.passed) = (Instant::now(), 0);
        }
        if self.passed < MAX_LINES_PER_SECOND {
            self.passed += 1;
            line(&display_safe(&self.masks.mask(String::from_utf8_lossy(text).into_owned())));
        } else {
            self.suppressed += 1;
        }
    }

    fn summary_due(&self) -> Option<Instant> {
        (self.suppressed > 0).then(|| self.window_start + Duration::from_secs(1))
    }

    fn summarise(&mut self, line: &mut impl FnMut(&str)) {
        if self.suppressed > 0 {
            line(&format!("({} more lines not logged)", self.suppressed));
            self.suppressed = 0;
        }
    }
}

#[cfg(test)]
mod tests;

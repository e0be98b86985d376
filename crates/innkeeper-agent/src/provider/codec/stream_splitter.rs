//! Splits a byte stream into events or lines.

use innkeeper_protocol::sse::{SseDecoder, SseEvent};
use memchr::memchr;

use super::{ApiError, MAX_EVENT_BYTES, MAX_RESPONSE_BYTES, response_text};

/// A splitter of Server-Sent Events with text data.
pub(crate) struct EventSplitter {
    decoder: SseDecoder,
    received_bytes: usize,
}

impl EventSplitter {
    pub(crate) fn new() -> Self {
        Self { decoder: SseDecoder::new(MAX_EVENT_BYTES), received_bytes: 0 }
    }

    /// Feeds bytes and calls `each` with the name and data of every complete event.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&str, &str) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        count_bytes(&mut self.received_bytes, bytes)?;
        self.decoder.feed(bytes);
        while let Some(event) = self.decoder.next_event() {
            match event {
                SseEvent::Message { name, data, .. } => each(name, response_text(data)?)?,
                SseEvent::TooLong { .. } => return Err(ApiError::too_long(MAX_EVENT_BYTES)),
            }
        }
        Ok(())
    }
}

/// A splitter of lines with one JSON value each.
#[derive(Default)]
pub(crate) struct LineSplitter {
    partial_line: Vec<u8>,
    received_bytes: usize,
}

impl LineSplitter {
    /// Feeds bytes and calls `each` with every complete line that is not blank.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&str) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        count_bytes(&mut self.received_bytes, bytes)?;
        while let Some(at) = memchr(b'\n', bytes) {
            let line = &bytes[..at];
            let rest = &bytes[at + 1..];
            bytes = rest;
            if self.partial_line.is_empty() {
                Self::visit_line(line, &mut each)?;
            } else {
                self.partial_line.extend_from_slice(line);
                Self::visit_line(&std::mem::take(&mut self.partial_line), &mut each)?;
            }
        }
        self.partial_line.extend_from_slice(bytes);
        if self.partial_line.len() > MAX_EVENT_BYTES {
            Err(ApiError::too_long(MAX_EVENT_BYTES))
        } else {
            Ok(())
        }
    }

    /// Passes the last line, which has no line break, to `each` at the end of the stream.
    pub(crate) fn finish(
        &mut self,
        mut each: impl FnMut(&str) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        Self::visit_line(&std::mem::take(&mut self.partial_line), &mut each)
    }

    fn visit_line(
        line: &[u8],
        each: &mut impl FnMut(&str) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let line = response_text(line)?.trim();
        if line.is_empty() { Ok(()) } else { each(line) }
    }
}

fn count_bytes(came: &mut usize, bytes: &[u8]) -> Result<(), ApiError> {
    *came += bytes.len();
    if *came > MAX_RESPONSE_BYTES { Err(ApiError::too_long(MAX_RESPONSE_BYTES)) } else { Ok(()) }
}

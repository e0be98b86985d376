//! Streams cut into their events or lines, whatever the pieces they come in.

use innkeeper_protocol::sse::{SseDecoder, SseEvent};
use memchr::memchr;

use super::{ANSWER, EVENT, Fault};

/// Server-Sent Events with text as data.
pub(crate) struct Events {
    decoder: SseDecoder,
    came: usize,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { decoder: SseDecoder::new(EVENT), came: 0 }
    }

    /// Takes what came; `each` gets every event that is complete with it: its name and its data.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&str, &str) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        count(&mut self.came, bytes)?;
        self.decoder.feed(bytes);
        while let Some(event) = self.decoder.next_event() {
            match event {
                SseEvent::Message { name, data, .. } => each(name, text(data)?)?,
                SseEvent::TooLong { .. } => return Err(too_long(EVENT)),
            }
        }
        Ok(())
    }
}

/// Lines with one JSON value each.
#[derive(Default)]
pub(crate) struct Lines {
    open: Vec<u8>,
    came: usize,
}

impl Lines {
    /// Takes what came; `each` gets every line that is complete with it and not blank.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&str) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        count(&mut self.came, bytes)?;
        while let Some(at) = memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..at], &bytes[at + 1..]);
            bytes = rest;
            if self.open.is_empty() {
                Self::take(line, &mut each)?;
            } else {
                self.open.extend_from_slice(line);
                Self::take(&std::mem::take(&mut self.open), &mut each)?;
            }
        }
        self.open.extend_from_slice(bytes);
        if self.open.len() > EVENT { Err(too_long(EVENT)) } else { Ok(()) }
    }

    /// Nothing more comes: what is left is a line without its end.
    pub(crate) fn end(
        &mut self,
        mut each: impl FnMut(&str) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        Self::take(&std::mem::take(&mut self.open), &mut each)
    }

    fn take(line: &[u8], each: &mut impl FnMut(&str) -> Result<(), Fault>) -> Result<(), Fault> {
        let line = text(line)?.trim();
        if line.is_empty() { Ok(()) } else { each(line) }
    }
}

fn count(came: &mut usize, bytes: &[u8]) -> Result<(), Fault> {
    *came += bytes.len();
    if *came > ANSWER { Err(too_long(ANSWER)) } else { Ok(()) }
}

fn text(data: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(data).map_err(|_| Fault::unreadable("the answer is not UTF-8"))
}

fn too_long(limit: usize) -> Fault {
    Fault::unreadable(format!("the answer is longer than {limit} bytes"))
}

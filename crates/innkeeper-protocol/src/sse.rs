//! Server-Sent Events, with bounded memory.
//!
//! The grammar is the grammar of the HTML standard. The caller passes received bytes to
//! [`SseDecoder::feed`] and takes events from [`SseDecoder::next_event`] until the method returns
//! `None`. An event that the end of the stream truncates is not an event, so the decoder has no
//! `finish` method. A server writes its events with [`write_event`].

mod data;
mod encoder;
mod field;

#[cfg(test)]
mod tests;

use memchr::{memchr2, memchr3};

use data::EventData;
use field::{BoundedBuffer, Field, MAX_FIELD_NAME_BYTES};

pub use encoder::{
    EventFieldError, KEEP_ALIVE, OutgoingData, OutgoingEvent, write_comment, write_event,
};

/// Maximum number of bytes returned from the start of an event that is too long, as for lines.
pub use crate::framing::MAX_HEAD_BYTES;

/// Maximum length of an event's name and id: far above the values of known servers, and the id is
/// sent in a header of the next request. Longer fields are ignored.
pub const MAX_FIELD_BYTES: usize = 4 * 1024;

/// Name of an event without an `event` field.
pub const DEFAULT_EVENT_NAME: &str = "message";

/// Maximum buffer capacity that is retained after the contents are taken.
const RETAINED_CAPACITY: usize = 1024 * 1024;

/// One event of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseEvent<'a> {
    /// An event with data, which may be empty.
    Message {
        /// The event name; [`DEFAULT_EVENT_NAME`] by default.
        name: &'a str,
        /// The data lines, joined with `\n`, as raw bytes that may not be UTF-8.
        data: &'a [u8],
        /// The id of this event. An empty id resets the last event id.
        id: Option<&'a str>,
    },
    /// An event whose data exceeds the limit, reported once, as soon as the data exceeds the limit.
    /// The rest of the data is discarded. The id of the event counts when the event ends.
    TooLong {
        /// The start of the data, at most [`MAX_HEAD_BYTES`] bytes.
        head: &'a [u8],
    },
}

/// Splits a stream of bytes into events.
///
/// Events without data are not returned, but their ids count. The limit counts the bytes of the
/// data, including the `\n` between data lines.
pub struct SseDecoder {
    /// The received bytes. The bytes before `at` are processed.
    input: Vec<u8>,
    at: usize,
    state: ParseState,
    /// Whether the last line ended with `\r`. A `\n` that follows belongs to the same line ending.
    after_cr: bool,
    field: FieldText,
    event: EventParts,
    last_id: String,
    retry: Option<u64>,
}

#[derive(Default)]
struct FieldText {
    name: BoundedBuffer<MAX_FIELD_NAME_BYTES>,
    /// The value, except for data.
    value: BoundedBuffer<MAX_FIELD_BYTES>,
}

struct EventParts {
    name: String,
    id: Option<String>,
    data: EventData,
    delivered: bool,
}

/// The position of the next byte in the grammar.
#[derive(Clone, Copy)]
enum ParseState {
    /// After this number of bytes of a byte order mark, at the start of the stream.
    Bom(usize),
    /// In a field name. The name is empty at the start of a line.
    FieldName,
    /// At the start of a field value.
    ValueStart(Field),
    /// In a field value.
    Value(Field),
    /// In a comment or an unknown field.
    Ignored,
}

/// An event that is ready to be returned.
enum PendingEvent {
    Message { has_id: bool },
    TooLong,
}

impl SseDecoder {
    /// Creates a decoder for events with at most `limit` bytes of data.
    pub fn new(limit: usize) -> Self {
        Self {
            input: Vec::new(),
            at: 0,
            state: ParseState::Bom(0),
            after_cr: false,
            field: FieldText::default(),
            event: EventParts {
                name: String::new(),
                id: None,
                data: EventData::new(limit),
                delivered: false,
            },
            last_id: String::new(),
            retry: None,
        }
    }

    /// Adds received bytes.
    ///
    /// The decoder stores the bytes until their events are taken. Take all events before the next
    /// call.
    pub fn feed(&mut self, bytes: &[u8]) {
        // Moving at most half of the stored bytes frees as many bytes as it moves, so that every
        // byte is moved about once, also for a caller that does not take its events.
        if self.at >= self.input.len() / 2 {
            self.input.drain(..self.at);
            self.at = 0;
        }
        if self.input.is_empty() && self.input.capacity() > RETAINED_CAPACITY {
            self.input = Vec::new();
        }
        self.input.extend_from_slice(bytes);
    }

    /// Returns the next event, if an event is complete or exceeds the limit.
    pub fn next_event(&mut self) -> Option<SseEvent<'_>> {
        if std::mem::take(&mut self.event.delivered) {
            self.event.data.clear();
            self.event.name.clear();
        }
        let pending = self.next_pending()?;
        self.event.delivered = true;
        Some(match pending {
            PendingEvent::TooLong => SseEvent::TooLong { head: self.event.data.bytes() },
            PendingEvent::Message { has_id } => SseEvent::Message {
                name: if self.event.name.is_empty() {
                    DEFAULT_EVENT_NAME
                } else {
                    &self.event.name
                },
                data: self.event.data.bytes(),
                id: has_id.then_some(self.last_id.as_str()),
            },
        })
    }

    /// Whether the decoder is discarding the rest of an event that is too long.
    pub fn is_discarding(&self) -> bool {
        self.event.data.is_discarding()
    }

    /// Returns the last id of all completed events, at which a new stream may resume. Events
    /// without data and events that are too long count. Returns `None` without an id or if the last
    /// id is empty.
    pub fn last_event_id(&self) -> Option<&str> {
        Some(self.last_id.as_str()).filter(|id| !id.is_empty())
    }

    /// Returns the reconnection delay that the server requests, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    fn next_pending(&mut self) -> Option<PendingEvent> {
        while let Some(first) = self.input.get(self.at).copied() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                self.at += 1;
                continue;
            }
            let event = match self.state {
                ParseState::Bom(matched_bytes) => self.read_bom(matched_bytes, first),
                ParseState::FieldName => self.read_field_name(),
                ParseState::ValueStart(field) => self.read_value_start(field, first),
                ParseState::Value(field) => self.read_value(field),
                ParseState::Ignored => self.read_ignored(),
            };
            if event.is_some() {
                return event;
            }
        }
        None
    }

    fn read_bom(&mut self, matched_bytes: usize, first: u8) -> Option<PendingEvent> {
        const BOM: &[u8] = b"\xEF\xBB\xBF";
        let expected = BOM[matched_bytes];
        self.state = match (first == expected, matched_bytes + 1 == BOM.len()) {
            (true, false) => ParseState::Bom(matched_bytes + 1),
            (false, _) if matched_bytes > 0 => ParseState::Ignored,
            _ => ParseState::FieldName,
        };
        self.at += usize::from(first == expected);
        None
    }

    fn read_field_name(&mut self) -> Option<PendingEvent> {
        let rest = &self.input[self.at..];
        let length = memchr3(b':', b'\n', b'\r', rest);
        let chunk = &rest[..length.unwrap_or(rest.len())];
        self.field.name.extend(chunk);
        self.at += chunk.len();
        let terminator = *self.input.get(self.at)?;
        if terminator == b':' {
            self.at += 1;
            return self.start_field();
        }
        if self.field.name.is_empty() {
            self.finish_line(terminator);
            return self.finish_event();
        }
        let event = self.start_field();
        if let ParseState::ValueStart(field) = self.state {
            self.finish_field(field);
        }
        self.finish_line(terminator);
        event
    }

    /// Handles the end of a field name. An empty name starts a comment.
    fn start_field(&mut self) -> Option<PendingEvent> {
        let field = self.field.name.get().and_then(Field::parse);
        self.state = field.map_or(ParseState::Ignored, ParseState::ValueStart);
        self.field.value.clear();
        let crossed = matches!(field, Some(Field::Data)) && self.event.data.start_line();
        crossed.then_some(PendingEvent::TooLong)
    }

    fn read_value_start(&mut self, field: Field, first: u8) -> Option<PendingEvent> {
        self.at += usize::from(first == b' ');
        self.state = ParseState::Value(field);
        None
    }

    fn read_value(&mut self, field: Field) -> Option<PendingEvent> {
        let rest = &self.input[self.at..];
        let chunk = &rest[..memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
        let crossed = match field {
            Field::Data => self.event.data.extend(chunk),
            Field::Event | Field::Id | Field::Retry => {
                self.field.value.extend(chunk);
                false
            }
        };
        self.at += chunk.len();
        if crossed {
            return Some(PendingEvent::TooLong);
        }
        let terminator = *self.input.get(self.at)?;
        self.finish_field(field);
        self.finish_line(terminator);
        None
    }

    fn read_ignored(&mut self) -> Option<PendingEvent> {
        let rest = &self.input[self.at..];
        self.at += memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let terminator = *self.input.get(self.at)?;
        self.finish_line(terminator);
        None
    }

    /// Handles the end of a field value.
    fn finish_field(&mut self, field: Field) {
        let Some(value) = self.field.value.get() else { return };
        let text = String::from_utf8_lossy(value);
        match field {
            Field::Data => {}
            Field::Event => self.event.name = text.into_owned(),
            Field::Id if text.contains('\0') => {}
            Field::Id => self.event.id = Some(text.into_owned()),
            Field::Retry if text.is_empty() || !value.iter().all(u8::is_ascii_digit) => {}
            // A number that overflows counts as the maximum delay.
            Field::Retry => self.retry = Some(text.parse().unwrap_or(u64::MAX)),
        }
    }

    fn finish_line(&mut self, terminator: u8) {
        self.at += 1;
        self.after_cr = terminator == b'\r';
        self.state = ParseState::FieldName;
        self.field.name.clear();
    }

    fn finish_event(&mut self) -> Option<PendingEvent> {
        let id = self.event.id.take();
        let has_id = id.is_some();
        if let Some(id) = id {
            self.last_id = id;
        }
        if self.event.data.finish() {
            return Some(PendingEvent::Message { has_id });
        }
        self.event.name.clear();
        None
    }
}

impl std::fmt::Debug for SseDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SseDecoder")
            .field("data", &self.event.data)
            .field("unread", &(self.input.len() - self.at))
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

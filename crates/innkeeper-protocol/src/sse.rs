//! Server-Sent Events for a client: bytes in any chunks become events, and none grows without bound.
//!
//! The grammar is that of the HTML standard. The caller hands in what it read with
//! [`SseDecoder::feed`] and takes events from [`SseDecoder::next_event`] until there is none. An
//! event that the stream's end cuts off is no event: then there is nothing to finish.

mod data;
mod field;

#[cfg(test)]
mod tests;

use memchr::{memchr2, memchr3};

use data::Data;
use field::{Bounded, Field, KEY_LIMIT};

/// How much of an event that is too long is handed out, as of a line that is.
pub use crate::framing::HEAD_LIMIT;

/// The longest name and id of an event that are kept: far above what servers write, and an id goes
/// into a header of the next request. A field above this is ignored.
pub const FIELD_LIMIT: usize = 4 * 1024;

/// The name of an event that says none.
pub const DEFAULT_NAME: &str = "message";

/// A buffer above this is given back once what it held is taken.
const KEEP: usize = 1024 * 1024;

/// What the decoder cuts out of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseEvent<'a> {
    /// An event with data, which may be empty.
    Message {
        /// Its name; [`DEFAULT_NAME`] unless it says another.
        name: &'a str,
        /// Its lines of data with `\n` between them, as they were sent, UTF-8 or not.
        data: &'a [u8],
        /// The id that this event itself carries. An empty one forgets those before it.
        id: Option<&'a str>,
    },
    /// An event whose data crossed the limit; said once, as soon as it did. The rest of its data is
    /// dropped; its id counts when it ends.
    TooLong {
        /// How its data starts, at most [`HEAD_LIMIT`] bytes.
        head: &'a [u8],
    },
}

/// Cuts a stream of bytes into events.
///
/// Events without data are none, though their ids count. The limit counts the bytes of the data,
/// the `\n` between its lines included.
pub struct SseDecoder {
    /// What was fed; read as far as `at`.
    input: Vec<u8>,
    at: usize,
    place: Place,
    /// The last line ended with `\r`: a `\n` that follows belongs to it.
    after_return: bool,
    /// The name of the field that is being read.
    key: Bounded<KEY_LIMIT>,
    /// Its value, unless it is data.
    value: Bounded<FIELD_LIMIT>,
    name: String,
    id: Option<String>,
    data: Data,
    /// The data at hand was handed out.
    told: bool,
    last_id: String,
    retry: Option<u64>,
}

/// Where in the stream the next byte is.
#[derive(Clone, Copy)]
enum Place {
    /// So many bytes of a byte order mark have come, and nothing else.
    Mark(usize),
    /// In a field's name, which is empty at the start of a line.
    Key,
    /// At the start of a field's value.
    Colon(Field),
    /// In a field's value.
    Value(Field),
    /// In a comment, or in a field that means nothing.
    Ignored,
}

/// What can be handed out.
enum Found {
    Message { with_id: bool },
    TooLong,
}

impl SseDecoder {
    /// A decoder for events with at most `limit` bytes of data.
    pub fn new(limit: usize) -> Self {
        Self {
            input: Vec::new(),
            at: 0,
            place: Place::Mark(0),
            after_return: false,
            key: Bounded::default(),
            value: Bounded::default(),
            name: String::new(),
            id: None,
            data: Data::new(limit),
            told: false,
            last_id: String::new(),
            retry: None,
        }
    }

    /// Takes what was read from the stream.
    ///
    /// It is held until its events are taken, so take them all before feeding more.
    pub fn feed(&mut self, bytes: &[u8]) {
        // Moving at most half of what is held frees as much as was moved, so that every byte is
        // moved about once even for a caller that leaves events untaken.
        if self.at >= self.input.len() / 2 {
            self.input.drain(..self.at);
            self.at = 0;
        }
        if self.input.is_empty() && self.input.capacity() > KEEP {
            self.input = Vec::new();
        }
        self.input.extend_from_slice(bytes);
    }

    /// The next event, if one is complete or has become too long.
    pub fn next_event(&mut self) -> Option<SseEvent<'_>> {
        if std::mem::take(&mut self.told) {
            self.data.forget();
            self.name.clear();
        }
        let found = self.next_found()?;
        self.told = true;
        Some(match found {
            Found::TooLong => SseEvent::TooLong { head: self.data.bytes() },
            Found::Message { with_id } => SseEvent::Message {
                name: if self.name.is_empty() { DEFAULT_NAME } else { &self.name },
                data: self.data.bytes(),
                id: with_id.then_some(self.last_id.as_str()),
            },
        })
    }

    /// Whether an event is too long and has not ended yet: what comes of it is dropped.
    pub fn is_dropping(&self) -> bool {
        self.data.is_discarding()
    }

    /// The last id of all events that ended, those without data and those too long included: where
    /// a new stream may go on. `None` if there was none, or if the last one was empty.
    pub fn last_event_id(&self) -> Option<&str> {
        Some(self.last_id.as_str()).filter(|id| !id.is_empty())
    }

    /// How many milliseconds the server wants to pass before the stream is opened again.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    fn next_found(&mut self) -> Option<Found> {
        while let Some(first) = self.input.get(self.at).copied() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                self.at += 1;
                continue;
            }
            let found = match self.place {
                Place::Mark(seen) => self.read_mark(seen, first),
                Place::Key => self.read_key(),
                Place::Colon(field) => self.read_colon(field, first),
                Place::Value(field) => self.read_value(field),
                Place::Ignored => self.read_ignored(),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn read_mark(&mut self, seen: usize, first: u8) -> Option<Found> {
        const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
        let expected = BYTE_ORDER_MARK[seen];
        self.place = match (first == expected, seen + 1 == BYTE_ORDER_MARK.len()) {
            (true, false) => Place::Mark(seen + 1),
            (false, _) if seen > 0 => Place::Ignored,
            _ => Place::Key,
        };
        self.at += usize::from(first == expected);
        None
    }

    fn read_key(&mut self) -> Option<Found> {
        let rest = &self.input[self.at..];
        let length = memchr3(b':', b'\n', b'\r', rest);
        let part = &rest[..length.unwrap_or(rest.len())];
        self.key.extend(part);
        self.at += part.len();
        let end = *self.input.get(self.at)?;
        if end == b':' {
            self.at += 1;
            return self.open_field();
        }
        if self.key.is_empty() {
            self.end_line(end);
            return self.end_event();
        }
        let found = self.open_field();
        if let Place::Colon(field) = self.place {
            self.close_field(field);
        }
        self.end_line(end);
        found
    }

    /// The name of a field has ended. An empty one is that of a comment.
    fn open_field(&mut self) -> Option<Found> {
        let field = self.key.get().and_then(Field::of);
        self.place = field.map_or(Place::Ignored, Place::Colon);
        self.value.clear();
        let crossed = matches!(field, Some(Field::Data)) && self.data.open_line();
        crossed.then_some(Found::TooLong)
    }

    fn read_colon(&mut self, field: Field, first: u8) -> Option<Found> {
        self.at += usize::from(first == b' ');
        self.place = Place::Value(field);
        None
    }

    fn read_value(&mut self, field: Field) -> Option<Found> {
        let rest = &self.input[self.at..];
        let part = &rest[..memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
        let crossed = match field {
            Field::Data => self.data.extend(part),
            Field::Event | Field::Id | Field::Retry => {
                self.value.extend(part);
                false
            }
        };
        self.at += part.len();
        if crossed {
            return Some(Found::TooLong);
        }
        let end = *self.input.get(self.at)?;
        self.close_field(field);
        self.end_line(end);
        None
    }

    fn read_ignored(&mut self) -> Option<Found> {
        let rest = &self.input[self.at..];
        self.at += memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let end = *self.input.get(self.at)?;
        self.end_line(end);
        None
    }

    /// The value of a field has ended.
    fn close_field(&mut self, field: Field) {
        let Some(value) = self.value.get() else { return };
        let text = String::from_utf8_lossy(value);
        match field {
            Field::Data => {}
            Field::Event => self.name = text.into_owned(),
            Field::Id if text.contains('\0') => {}
            Field::Id => self.id = Some(text.into_owned()),
            Field::Retry if text.is_empty() || !value.iter().all(u8::is_ascii_digit) => {}
            // More than a number can hold is as long as can be.
            Field::Retry => self.retry = Some(text.parse().unwrap_or(u64::MAX)),
        }
    }

    fn end_line(&mut self, end: u8) {
        self.at += 1;
        self.after_return = end == b'\r';
        self.place = Place::Key;
        self.key.clear();
    }

    fn end_event(&mut self) -> Option<Found> {
        let id = self.id.take();
        let with_id = id.is_some();
        if let Some(id) = id {
            self.last_id = id;
        }
        if self.data.end() {
            return Some(Found::Message { with_id });
        }
        self.name.clear();
        None
    }
}

impl std::fmt::Debug for SseDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SseDecoder")
            .field("data", &self.data)
            .field("unread", &(self.input.len() - self.at))
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

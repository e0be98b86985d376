//! The strings of a JSON text with their places, for changes that keep every other byte.
//!
//! The scan accepts more than JSON, because a stream can end in the middle of a value: whatever was
//! there up to that point is read.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

/// The ways to tell which strings of consecutive events continue each other.
///
/// Providers number what they stream (`index`, `output_index`, `item_id`), but some leave the members
/// out of a few events. A secret must not hide in the difference, so each way is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    /// By path and number.
    Numbered,
    /// By path, number and `type`.
    Typed,
    /// By path.
    Path,
    /// By the name of the member alone: the first piece can stand elsewhere than the next ones.
    Name,
}

impl Grouping {
    pub(super) const ALL: [Self; 4] = [Self::Numbered, Self::Typed, Self::Path, Self::Name];
}

/// What a range of the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeafKind {
    Key,
    String,
    Number,
    /// Text outside of JSON.
    Plain,
}

/// A string or number.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) kind: LeafKind,
    /// Where it stands in the text, without quotes.
    pub(super) raw: Range<usize>,
    frame: usize,
    segment: Segment,
}

impl Leaf {
    /// Takes text outside of JSON.
    pub(super) fn plain(raw: Range<usize>) -> Self {
        Self { kind: LeafKind::Plain, raw, frame: usize::MAX, segment: Segment::Index(0) }
    }

    pub(super) fn member_key(&self) -> Option<Range<usize>> {
        match (&self.segment, self.kind) {
            (Segment::Key(key), LeafKind::String) => Some(key.clone()),
            _ => None,
        }
    }
}

/// A step from a container to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// The key of a member, as written.
    Key(Range<usize>),
    Index(usize),
}

/// An object or array.
#[derive(Debug)]
struct Frame {
    parent: Option<usize>,
    segment: Segment,
    is_object: bool,
    /// The members that number the object, as written.
    numbers: Vec<Range<usize>>,
    /// The member `type`, as written.
    type_name: Option<Range<usize>>,
}

/// One JSON value, or the beginning of one.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) leaves: Vec<Leaf>,
    frames: Vec<Frame>,
    /// The position after the value, or of the first byte that is not JSON.
    pub(super) end: usize,
    pub(super) is_complete: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    Key,
    Colon,
    Separator,
}

/// Reads the value at `at`.
pub(super) fn scan(text: &[u8], at: usize) -> Document {
    let mut scanner = Scanner {
        text,
        at,
        document: Document::default(),
        open: Vec::new(),
        segment: Segment::Index(0),
        expected: Expected::Value,
    };
    while scanner.step() {}
    Document { end: scanner.at, ..scanner.document }
}

struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
    document: Document,
    /// The open containers, the innermost last.
    open: Vec<usize>,
    /// Where the next value is in the innermost container.
    segment: Segment,
    expected: Expected,
}

impl Scanner<'_> {
    /// Reads one token. Returns `false` at the end.
    fn step(&mut self) -> bool {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let Some(&byte) = self.text.get(self.at) else { return false };
        match (byte, self.expected) {
            (b'{' | b'[', Expected::Value) => self.open(byte == b'{'),
            (b'}' | b']', _) => return self.close(byte == b'}'),
            (b'"', Expected::Value | Expected::Key) => return self.read_string(),
            (b':', Expected::Colon) => {
                self.at += 1;
                self.expected = Expected::Value;
            }
            (b',', Expected::Separator) => {
                self.at += 1;
                if let Segment::Index(index) = &mut self.segment {
                    *index += 1;
                    self.expected = Expected::Value;
                } else {
                    self.expected = Expected::Key;
                }
            }
            (b'-' | b'0'..=b'9' | b't' | b'f' | b'n', Expected::Value) => {
                return self.read_literal();
            }
            _ => return false,
        }
        true
    }

    fn open(&mut self, is_object: bool) {
        self.open.push(self.document.frames.len());
        let first = if is_object { Segment::Key(0..0) } else { Segment::Index(0) };
        self.document.frames.push(Frame {
            parent: self.open.iter().rev().nth(1).copied(),
            segment: std::mem::replace(&mut self.segment, first),
            is_object,
            numbers: Vec::new(),
            type_name: None,
        });
        self.expected = if is_object { Expected::Key } else { Expected::Value };
        self.at += 1;
    }

    fn close(&mut self, is_object: bool) -> bool {
        let innermost = self.open.last().map(|frame| &self.document.frames[*frame]);
        let Some(frame) = innermost.filter(|frame| frame.is_object == is_object) else {
            return false;
        };
        self.segment = frame.segment.clone();
        self.open.pop();
        self.at += 1;
        self.end_value()
    }

    /// Returns whether the document goes on after a value.
    fn end_value(&mut self) -> bool {
        self.expected = Expected::Separator;
        self.document.is_complete = self.open.is_empty();
        !self.document.is_complete
    }

    fn read_string(&mut self) -> bool {
        let begin = self.at + 1;
        let mut end = begin;
        let is_closed = loop {
            match self.text.get(end) {
                Some(b'"') => break true,
                Some(b'\\') => end += 2,
                Some(b'\n' | b'\r') | None => break false,
                Some(_) => end += 1,
            }
        };
        let raw = begin..end.min(self.text.len());
        let is_key = self.expected == Expected::Key;
        self.at = raw.end + usize::from(is_closed);
        if is_key {
            self.segment = Segment::Key(raw.clone());
            self.push_leaf(LeafKind::Key, raw);
            self.expected = Expected::Colon;
            return is_closed;
        }
        self.number_object(&raw);
        self.push_leaf(LeafKind::String, raw);
        is_closed && self.end_value()
    }

    fn read_literal(&mut self) -> bool {
        let begin = self.at;
        while self
            .text
            .get(self.at)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
        {
            self.at += 1;
        }
        let raw = begin..self.at;
        if !matches!(&self.text[raw.clone()], b"true" | b"false" | b"null") {
            let mut digits = self.text[raw.clone()].iter();
            if !digits.all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)) {
                return false;
            }
            self.number_object(&raw);
            self.push_leaf(LeafKind::Number, raw);
        }
        self.end_value()
    }

    fn push_leaf(&mut self, kind: LeafKind, raw: Range<usize>) {
        let frame = self.open.last().copied().unwrap_or(usize::MAX);
        self.document.leaves.push(Leaf { kind, raw, frame, segment: self.segment.clone() });
    }

    /// Notes a value that numbers its object.
    fn number_object(&mut self, raw: &Range<usize>) {
        let (Some(frame), Segment::Key(key)) = (self.open.last(), &self.segment) else { return };
        let frame = &mut self.document.frames[*frame];
        match &self.text[key.clone()] {
            b"item_id" | b"output_index" | b"index" => frame.numbers.push(raw.clone()),
            b"type" => frame.type_name = Some(raw.clone()),
            _ => {}
        }
    }
}

impl Document {
    /// Returns the steps from the whole value to a leaf.
    pub(super) fn path<'d>(&'d self, leaf: &'d Leaf) -> Vec<&'d Segment> {
        let mut path = vec![&leaf.segment];
        let mut next = self.frames.get(leaf.frame);
        while let Some(frame) = next {
            if let Some(parent) = frame.parent {
                path.push(&frame.segment);
                next = self.frames.get(parent);
            } else {
                next = None;
            }
        }
        path.reverse();
        path
    }

    /// Returns a number that is equal for the strings of events which continue each other.
    pub(super) fn group_keys(&self, text: &[u8], grouping: Grouping) -> Vec<u64> {
        let mut frame_keys: Vec<u64> = Vec::with_capacity(self.frames.len());
        for frame in &self.frames {
            let mut hasher = DefaultHasher::new();
            if let Some(parent) = frame.parent {
                frame_keys[parent].hash(&mut hasher);
                // An array of events is no place in an event; a number says more than a position.
                let is_event = self.frames[parent].parent.is_none();
                let is_numbered = !frame.numbers.is_empty() && grouping != Grouping::Path;
                match &frame.segment {
                    Segment::Key(key) => text[key.clone()].hash(&mut hasher),
                    Segment::Index(index) if !is_event && !is_numbered => index.hash(&mut hasher),
                    Segment::Index(_) => {}
                }
            }
            if grouping != Grouping::Path {
                for number in &frame.numbers {
                    text[number.clone()].hash(&mut hasher);
                }
            }
            if grouping == Grouping::Typed
                && let Some(name) = &frame.type_name
            {
                text[name.clone()].hash(&mut hasher);
            }
            frame_keys.push(hasher.finish());
        }
        self.leaves
            .iter()
            .map(|leaf| {
                let mut hasher = DefaultHasher::new();
                if grouping != Grouping::Name {
                    frame_keys.get(leaf.frame).hash(&mut hasher);
                }
                match &leaf.segment {
                    Segment::Key(key) => text[key.clone()].hash(&mut hasher),
                    Segment::Index(index) => index.hash(&mut hasher),
                }
                hasher.finish()
            })
            .collect()
    }
}

/// The decoded text of a leaf.
#[derive(Debug)]
pub(super) struct Decoded<'t> {
    pub(super) text: Cow<'t, str>,
    /// Positions in `text` with their positions in the leaf, wherever the distance changes.
    map: Vec<(usize, usize)>,
}

impl<'t> Decoded<'t> {
    /// Undoes the escapes of a JSON string.
    pub(super) fn from_json(raw: &'t str) -> Self {
        let Some(first) = raw.find('\\') else { return Self::from_plain(raw) };
        let mut text = String::with_capacity(raw.len());
        let mut map = vec![(0, 0)];
        let mut rest = first;
        text.push_str(&raw[..first]);
        while let Some(escape) = raw[rest..].strip_prefix('\\') {
            map.push((text.len(), rest));
            let (character, len) = read_escape(escape);
            text.push(character);
            rest += 1 + len;
            map.push((text.len(), rest));
            let next = raw[rest..].find('\\').map_or(raw.len(), |at| rest + at);
            text.push_str(&raw[rest..next]);
            rest = next;
        }
        Self { text: Cow::Owned(text), map }
    }

    /// Takes a text without escapes.
    pub(super) fn from_plain(raw: &'t str) -> Self {
        Self { text: Cow::Borrowed(raw), map: vec![(0, 0)] }
    }

    /// Returns the position in the leaf for a position in the text.
    pub(super) fn raw_position(&self, at: usize) -> usize {
        let next = self.map.partition_point(|(text, _)| *text <= at);
        let (text, raw) = self.map[next.saturating_sub(1)];
        raw + (at - text)
    }
}

/// Returns the character of an escape and the length of what follows the backslash. Half of a
/// surrogate pair is a replacement character.
fn read_escape(escape: &str) -> (char, usize) {
    let Some(first) = escape.chars().next() else { return (char::REPLACEMENT_CHARACTER, 0) };
    let character = match first {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => {
            let Some(high) = read_utf16(escape) else { return (char::REPLACEMENT_CHARACTER, 1) };
            if let Some(character) = char::from_u32(high.into()) {
                return (character, 5);
            }
            let low = escape[5..].strip_prefix('\\').and_then(read_utf16);
            let pair = low.and_then(|low| char::decode_utf16([high, low]).next()?.ok());
            return pair.map_or((char::REPLACEMENT_CHARACTER, 5), |character| (character, 11));
        }
        other => other,
    };
    (character, first.len_utf8())
}

/// Reads `uXXXX`.
fn read_utf16(escape: &str) -> Option<u16> {
    let mut unit = [0; 2];
    hex::decode_to_slice(escape.strip_prefix('u')?.get(..4)?, &mut unit).ok()?;
    Some(u16::from_be_bytes(unit))
}

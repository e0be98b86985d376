//! Finds secrets in a text, in whatever encodings they were written.
//!
//! Percent-encoding, escapes and HTML references are undone while reading (see [`units`]). Base64 and
//! hexadecimal digits are searched as what they make of the secret. The first three bytes decide in a
//! bit set whether a comparison is worth its time, so a long text costs little more than one look at
//! each byte.
//!
//! [`units`]: super::units

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::needles::{Form, Needle};
use super::units::{MAX_LEVELS, is_special, read_units};

/// Number of bytes that the bit set looks at.
const START_BYTES: usize = 3;

/// Number of bits of the set, as a power of two.
const START_BITS: u32 = 18;

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) range: Range<usize>,
    pub(super) secret: usize,
}

type Start = [u8; START_BYTES];

/// Finds all needles at once.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    needles: Vec<Needle>,
    by_start: HashMap<Start, Vec<usize>>,
    /// The hashes of the first bytes of all needles, up to the keys of `by_start`; empty without
    /// needles.
    starts: Vec<u64>,
}

/// The first bytes of a text, as one of its readings decodes them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Prefix {
    bytes: Start,
    len: usize,
    /// The position after them.
    end: usize,
}

impl Prefix {
    /// Adds decoded bytes; those that are too many are left out.
    fn push(mut self, bytes: &[u8], end: usize) -> Self {
        for byte in bytes.iter().take(START_BYTES - self.len) {
            self.bytes[self.len] = *byte;
            self.len += 1;
        }
        Self { end, ..self }
    }
}

/// Returns the byte that stands for all that a form takes for the same: letters of hexadecimal digits
/// have two cases, and Base64 has two alphabets.
fn fold(byte: u8) -> u8 {
    match byte {
        b'-' => b'+',
        b'_' => b'/',
        _ => byte.to_ascii_lowercase(),
    }
}

fn hash_start(start: Start) -> usize {
    let [a, b, c] = start.map(|byte| u32::from(fold(byte)));
    let hash = (a | b << 8 | c << 16).wrapping_mul(0x9e37_79b1) >> (u32::BITS - START_BITS);
    usize::try_from(hash).unwrap_or_default()
}

/// Keeps the first `len` bytes.
fn shorten(start: Start, len: usize) -> Start {
    let mut shorter = [0; START_BYTES];
    shorter[..len].copy_from_slice(&start[..len]);
    shorter
}

/// Returns whether a byte needs [`read_units`], or may be a line break inside Base64.
fn needs_reader(byte: u8) -> bool {
    is_special(byte) || is_line_break(byte)
}

fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

impl Matcher {
    /// Adds a needle; those with fewer than three bytes are never found.
    pub(super) fn add(&mut self, needle: Needle) {
        let Some(start) = needle.bytes.first_chunk::<START_BYTES>() else { return };
        if self.starts.is_empty() {
            self.starts = vec![0; 1 << (START_BITS - u64::BITS.ilog2())];
        }
        for len in 1..=START_BYTES {
            let hash = hash_start(shorten(*start, len));
            self.starts[hash / 64] |= 1 << (hash % 64);
        }
        self.by_start.entry(start.map(fold)).or_default().push(self.needles.len());
        self.needles.push(needle);
    }

    fn may_start_with(&self, start: Start) -> bool {
        let hash = hash_start(start);
        self.starts[hash / 64] >> (hash % 64) & 1 == 1
    }

    fn needles_at(&self, start: Start) -> &[usize] {
        if !self.may_start_with(start) {
            return &[];
        }
        self.by_start.get(&start.map(fold)).map_or(&[], Vec::as_slice)
    }

    /// Returns all matches, also such that overlap, in the order of their starts.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Match> {
        let mut matches = Vec::new();
        if self.needles.is_empty() {
            return matches;
        }
        let mut starts = Vec::new();
        // Before this position, one of the next bytes needs the reader.
        let mut reader_end = text
            .iter()
            .take(START_BYTES - 1)
            .rposition(|byte| needs_reader(*byte))
            .map_or(0, |at| at + 1);
        for at in 0..text.len() {
            if text.get(at + START_BYTES - 1).is_some_and(|byte| needs_reader(*byte)) {
                reader_end = at + START_BYTES;
            }
            if at >= reader_end {
                let Some(start) = text[at..].first_chunk::<START_BYTES>() else { break };
                for needle in self.needles_at(*start) {
                    self.push_match(text, at, *needle, &mut matches);
                }
                continue;
            }
            starts.clear();
            let nothing = Prefix { bytes: [0; START_BYTES], len: 0, end: at };
            self.read_starts(text, nothing, &mut starts);
            for start in &starts {
                for needle in self.needles_at(*start) {
                    self.push_match(text, at, *needle, &mut matches);
                }
            }
        }
        matches
    }

    /// Collects the readings of the first bytes that a needle may start with.
    fn read_starts(&self, text: &[u8], prefix: Prefix, starts: &mut Vec<Start>) {
        if prefix.len == START_BYTES {
            if !starts.contains(&prefix.bytes) {
                starts.push(prefix.bytes);
            }
            return;
        }
        let Some(&byte) = text.get(prefix.end) else { return };
        if !needs_reader(byte) || (prefix.len == 0 && is_line_break(byte)) {
            let longer = prefix.push(&[byte], prefix.end + 1);
            if self.may_start_with(longer.bytes) {
                self.read_starts(text, longer, starts);
            }
            return;
        }
        let units = read_units(text, prefix.end, MAX_LEVELS);
        for unit in units.as_slice() {
            let longer = prefix.push(unit.bytes(), unit.end);
            if self.may_start_with(longer.bytes) {
                self.read_starts(text, longer, starts);
            }
        }
        let has_line_break =
            units.as_slice().iter().any(|unit| unit.byte().is_some_and(is_line_break));
        if prefix.len > 0
            && has_line_break
            && let Some(end) = line_break_end(text, prefix.end)
        {
            self.read_starts(text, Prefix { end, ..prefix }, starts);
        }
    }

    fn push_match(&self, text: &[u8], at: usize, needle: usize, matches: &mut Vec<Match>) {
        let needle = &self.needles[needle];
        if let Some(end) = match_end(text, at, needle) {
            let range = extend(text, at..end, needle.form);
            matches.push(Match { range, secret: needle.secret });
        }
    }
}

/// Returns the end of the line breaks at `at`, with the blanks that indent the next line.
fn line_break_end(text: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    loop {
        let units = read_units(text, end, MAX_LEVELS);
        let line_break =
            units.as_slice().iter().rfind(|unit| unit.byte().is_some_and(is_line_break));
        match line_break {
            Some(unit) => end = unit.end,
            None if end > at && matches!(text.get(end), Some(b' ' | b'\t')) => end += 1,
            None => return (end > at).then_some(end),
        }
    }
}

/// Returns the end of the longest text at `at` that a reader takes for the needle.
fn match_end(text: &[u8], at: usize, needle: &Needle) -> Option<usize> {
    let is_base64 = matches!(needle.form, Form::Base64 { .. });
    // Pairs of positions in the needle and in the text. Several readings can reach the same pair.
    let mut reached = BTreeSet::from([(0, at)]);
    let mut longest = None;
    while let Some((mut matched, mut at)) = reached.pop_first() {
        while let (Some(expected), Some(byte)) = (needle.bytes.get(matched), text.get(at))
            && !needs_reader(*byte)
            && needle.form.is_same(*expected, *byte)
        {
            matched += 1;
            at += 1;
        }
        if matched == needle.bytes.len() {
            longest = longest.max(Some(at));
            continue;
        }
        if text.get(at).is_none_or(|byte| !needs_reader(*byte)) {
            continue;
        }
        for unit in read_units(text, at, MAX_LEVELS).as_slice() {
            let bytes = unit.bytes();
            let expected = needle.bytes.get(matched..matched + bytes.len());
            let is_same = expected.is_some_and(|expected| {
                expected.iter().zip(bytes).all(|(left, right)| needle.form.is_same(*left, *right))
            });
            if is_same {
                reached.insert((matched + bytes.len(), unit.end));
            }
        }
        if is_base64
            && matched > 0
            && let Some(end) = line_break_end(text, at)
        {
            reached.insert((matched, end));
        }
    }
    longest
}

/// Adds what must go with a match: the Base64 characters that hold bits of the secret's ends, and
/// the backslashes before it, which would escape the placeholder.
fn extend(text: &[u8], range: Range<usize>, form: Form) -> Range<usize> {
    let Range { mut start, mut end } = range;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    if let Form::Base64 { shares_first, shares_last } = form {
        if shares_first && start > 0 && is_base64(text[start - 1]) {
            start -= 1;
        }
        if shares_last {
            let units = read_units(text, end, MAX_LEVELS);
            let last = units.as_slice().iter().filter(|unit| unit.byte().is_some_and(is_base64));
            end = last.map(|unit| unit.end).max().unwrap_or(end);
        }
    }
    while start > 0 && text[start - 1] == b'\\' {
        start -= 1;
    }
    start..end
}

/// Joins matches that overlap. The longest names the whole.
pub(super) fn merge(mut matches: Vec<Match>) -> Vec<Match> {
    matches.sort_by_key(|found| (found.range.start, usize::MAX - found.range.end));
    let mut merged: Vec<(Match, usize)> = Vec::new();
    for found in matches {
        let len = found.range.len();
        match merged.last_mut() {
            Some((last, longest)) if found.range.start < last.range.end => {
                last.range.end = last.range.end.max(found.range.end);
                if len > *longest {
                    last.secret = found.secret;
                    *longest = len;
                }
            }
            Some(_) | None => merged.push((found, len)),
        }
    }
    merged.into_iter().map(|(found, _)| found).collect()
}

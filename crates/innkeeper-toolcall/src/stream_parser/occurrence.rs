//! Finds given calls in text that is not a model's response, such as a page that a tool returned.
//!
//! A model that quotes a call which it has read makes no call. To know that, every text of the
//! conversation that others wrote is searched for the call, whatever stands around it: in a
//! sentence, in a block of code, in a JSON string. Two calls are the same if their tool and their
//! arguments are, so the syntax and the order of the members don't matter.

use std::borrow::Cow;

use super::encodings::{decoded, plain, without_line_prefixes};
use super::harmony::{HEADER_END, MAX_HEADER_BYTES, recipient};
use super::markers::{Candidates, MarkerMatch, Markers};
use crate::call::{ResolvedCall, resolve_call};
use crate::event::TextEnd;
use crate::format::{Format, LexerKind, MarkerKind};
use crate::json::Json;
use crate::lexer::harmony_message::HarmonyMessage;
use crate::lexer::{LexStatus, LexUpdate, Lexer, PrefixMatch, match_call_start, new_lexer};
use crate::parse::Completeness;
use crate::resolve::resolve;
use crate::tool::Tools;

/// Number of times that a text is searched again without one level of encoding: JSON in a string of
/// JSON in a string.
const MAX_ENCODING_LEVELS: usize = 3;

/// Bytes that the lexers may read for each byte of the text. Nested brackets are read again and
/// again; above the limit, the calls count as found.
const MAX_READS_PER_BYTE: usize = 64;

/// Bytes that the lexers may read whatever the length of the text.
const MIN_READ_LIMIT: usize = 1 << 20;

/// Length of the start of a call that usually has the name of its tool.
const HEAD_BYTES: usize = 512;

/// Limit on the start of a call for [`match_call_start`], as in a response.
const MAX_UNDECIDED_CHARS: usize = 200;

/// Calls to look for.
#[derive(Debug)]
pub struct CallSearch<'t> {
    tools: &'t Tools,
    markers: Markers,
    /// The name and the comparable arguments of each call.
    wanted: Vec<(&'t str, String)>,
}

impl<'t> CallSearch<'t> {
    /// Creates a search for calls of these tools.
    pub fn new(tools: &'t Tools, calls: impl IntoIterator<Item = &'t ResolvedCall>) -> Self {
        let wanted = calls.into_iter().map(|call| (&*call.name, comparable(&call.arguments)));
        let mut markers = Format::Detect.markers();
        // The call in a fenced block is found by its own first bracket.
        markers.retain(
            |marker| matches!(marker.kind, MarkerKind::Call(kind) if kind != LexerKind::Fence),
        );
        Self { tools, markers: Markers::new(markers), wanted: wanted.collect() }
    }

    /// Returns the index of the first call that occurs in the text: with escapes or without, also if
    /// each of its lines has a prefix, as in mails and in listings with line numbers, and if tags,
    /// invisible characters or typographic quotation marks stand in it.
    pub fn find_in(&self, text: &str) -> Option<usize> {
        let mut text = Cow::Borrowed(text);
        for level in 0..=MAX_ENCODING_LEVELS {
            let spellings = [without_line_prefixes(&text), plain(&text)];
            let mut spellings = spellings.iter().flatten();
            let found = self.find_decoded(&text);
            if let Some(found) = found.or_else(|| spellings.find_map(|it| self.find_decoded(it))) {
                return Some(found);
            }
            if level < MAX_ENCODING_LEVELS {
                text = Cow::Owned(decoded(&text)?);
            }
        }
        None
    }

    fn find_decoded(&self, text: &str) -> Option<usize> {
        self.find_marked(text).or_else(|| self.find_harmony(text))
    }

    /// Finds a call in a Harmony message: a header with a recipient, and a body with the arguments.
    fn find_harmony(&self, text: &str) -> Option<usize> {
        let mut ends = memchr::memmem::find_iter(text.as_bytes(), HEADER_END);
        ends.find_map(|at| {
            let header_start = text.floor_char_boundary(at.saturating_sub(MAX_HEADER_BYTES));
            let header = &text[header_start..at];
            let header = &header[header.rfind("to=")?..];
            let lexer = HarmonyMessage::new(recipient(header)?);
            self.find_with(Box::new(lexer), &text[at + HEADER_END.len()..]).0
        })
    }

    fn find_marked(&self, text: &str) -> Option<usize> {
        let mut remaining_reads = text.len().saturating_mul(MAX_READS_PER_BYTE).max(MIN_READ_LIMIT);
        let mut candidates = Candidates::from(0);
        while let Some(at) = candidates.next(&self.markers, text) {
            let rest = &text[at..];
            let MarkerMatch::Marker(marker) = self.markers.match_start(rest, true, |_| true) else {
                continue;
            };
            let MarkerKind::Call(kind) = marker.kind else { continue };
            if match_call_start(kind, rest, MAX_UNDECIDED_CHARS) == PrefixMatch::No {
                continue;
            }
            let marker_len = if kind.includes_marker() { 0 } else { marker.text.len() };
            let body = &rest[marker_len..];
            let (found, read) = match self.is_other_tool(kind, body) {
                true => (None, body.len().min(HEAD_BYTES)),
                false => self.find_with(new_lexer(kind), body),
            };
            if found.is_some() {
                return found;
            }
            match remaining_reads.checked_sub(read) {
                Some(remaining) => remaining_reads = remaining,
                None => return Some(0),
            }
        }
        None
    }

    /// Whether the start of a call names a tool that no wanted call has.
    fn is_other_tool(&self, kind: LexerKind, text: &str) -> bool {
        let head = &text[..text.floor_char_boundary(HEAD_BYTES)];
        let mut update = LexUpdate::default();
        new_lexer(kind).lex(head, None, self.tools, &mut update);
        update.name.is_some_and(|name| {
            let named = resolve(self.tools, &name).map(|matched| &matched.tool.name);
            !self.wanted.iter().any(|(wanted, _)| named.is_some_and(|named| named == wanted))
        })
    }

    /// Returns the index of the wanted call that the text starts with, and the number of bytes read.
    fn find_with(&self, mut lexer: Box<dyn Lexer>, text: &str) -> (Option<usize>, usize) {
        let mut update = LexUpdate::default();
        let status = lexer.lex(text, Some(TextEnd::Stop), self.tools, &mut update);
        let (end, completeness) = match status {
            LexStatus::Done { used } => (used, Completeness::Complete),
            LexStatus::NeedMore { held } if lexer.lacks_only_closers(held) => {
                (text.len(), Completeness::Stopped)
            }
            LexStatus::NeedMore { .. } => return (None, text.len()),
            LexStatus::NotACall { used } => return (None, used),
        };
        let calls = lexer.decode(&text[..end], completeness).unwrap_or_default();
        let found = calls.into_iter().find_map(|raw| {
            let call = resolve_call(self.tools, &raw.name, raw.arguments, completeness).ok()?;
            let arguments = comparable(&call.arguments);
            self.wanted.iter().position(|(name, wanted)| *name == call.name && *wanted == arguments)
        });
        (found, end)
    }
}

/// Returns arguments as text, without what a copy of a call may lose or gain.
fn comparable(arguments: &Json) -> String {
    let text = arguments.to_canonical_string();
    plain(&text).unwrap_or(text)
}

#[cfg(test)]
mod tests;

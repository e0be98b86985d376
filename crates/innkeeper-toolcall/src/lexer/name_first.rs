//! Lexer for calls that start with the name: name, separator, JSON, optional closing marker.

use std::ops::Range;

use super::json_scanner::{JsonScanner, ValueStatus};
use super::{
    DecodeResult, LexStatus, LexUpdate, Lexer, MAX_NAME_BYTES, PrefixMatch, RawCall, is_name,
    match_after_whitespace, match_prefix,
};
use crate::call::RawArguments;
use crate::event::TextEnd;
use crate::parse::Completeness;
use crate::resolve::resolve;
use crate::tool::Tools;

/// Maximum length of the text before the arguments in bytes: a name, a separator, an id and the
/// first line of a fence.
const MAX_HEAD_BYTES: usize = MAX_NAME_BYTES + 128;

/// Characters that follow the name of a tool in the calls of other syntaxes, and no word of prose.
const CALL_SIGNS: &[char] = &['<', '(', '=', '"'];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameFirstPhase {
    Head,
    Body,
    Tail,
}

/// `name SEPARATOR {…} CLOSE`.
#[derive(Debug)]
pub(crate) struct NameFirst {
    /// The possible separators; none if the arguments or `[ARGS]` directly follow the name.
    separators: &'static [&'static str],
    close_marker: Option<&'static str>,
    phase: NameFirstPhase,
    scan: JsonScanner,
    base_offset: usize,
    head: String,
    /// Whether the name ended with a character of [`CALL_SIGNS`].
    ends_like_call: bool,
    body_range: Range<usize>,
}

impl NameFirst {
    pub(super) fn new(separators: &'static [&'static str], close: &'static str) -> Self {
        Self::with_markers(separators, Some(close))
    }

    /// Creates the lexer for Mistral's `name[ARGS]{…}`, `name[CALL_ID]id[ARGS]{…}` and `name{…}`
    /// after its marker.
    pub(super) fn adjacent() -> Self {
        Self::with_markers(&[], None)
    }

    fn with_markers(
        separators: &'static [&'static str],
        close_marker: Option<&'static str>,
    ) -> Self {
        Self {
            separators,
            close_marker,
            phase: NameFirstPhase::Head,
            scan: JsonScanner::new(close_marker),
            base_offset: 0,
            head: String::new(),
            ends_like_call: false,
            body_range: 0..0,
        }
    }

    fn lex_head(
        &mut self,
        input: &str,
        at: &mut usize,
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> Option<LexStatus> {
        for (offset, letter) in input.char_indices() {
            match self
                .close_marker
                .map_or(PrefixMatch::No, |close| match_prefix(&input[offset..], close))
            {
                PrefixMatch::Partial => return Some(self.need_more(input, offset)),
                // Prose, or a separator of another syntax with the arguments behind it.
                PrefixMatch::Yes if !self.has_separator() && !self.is_tool(tools) => {
                    self.ends_like_call = self.name().contains(CALL_SIGNS);
                    return Some(LexStatus::NotACall { used: offset });
                }
                PrefixMatch::Yes => {
                    *at = offset;
                    self.body_range = self.base_offset + offset..self.base_offset + offset;
                    self.phase = NameFirstPhase::Tail;
                    return None;
                }
                PrefixMatch::No => {}
            }
            let is_adjacent = self.separators.is_empty();
            if (is_adjacent || self.has_separator())
                && (letter == '{' || letter == '[' && !is_adjacent)
            {
                *at = offset;
                self.body_range.start = self.base_offset + offset;
                self.phase = NameFirstPhase::Body;
                update.name = Some(self.name().to_owned());
                update.name_at = offset;
                return None;
            }
            let blank = letter.is_ascii_whitespace() && self.head.contains('[');
            let odd = is_adjacent
                && !(letter.is_ascii_alphanumeric() || "_-.:/[]".contains(letter) || blank);
            if odd || self.head.len() >= MAX_HEAD_BYTES {
                self.ends_like_call = CALL_SIGNS.contains(&letter);
                return Some(LexStatus::NotACall { used: offset });
            }
            self.head.push(letter);
        }
        Some(self.need_more(input, input.len()))
    }

    fn lex_body(
        &mut self,
        input: &str,
        at: &mut usize,
        update: &mut LexUpdate,
    ) -> Option<LexStatus> {
        match self.scan.scan_value(input, at, update) {
            ValueStatus::NeedMore => Some(self.need_more(input, *at)),
            ValueStatus::Invalid => Some(LexStatus::NotACall { used: *at }),
            ValueStatus::Complete => {
                self.body_range.end = self.base_offset + *at;
                self.phase = NameFirstPhase::Tail;
                None
            }
        }
    }

    fn lex_tail(&mut self, input: &str, at: usize, text_end: Option<TextEnd>) -> LexStatus {
        let Some(close) = self.close_marker else { return LexStatus::Done { used: at } };
        let rest = &input[at..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '`']).len();
        if blank > super::MAX_LOOKAHEAD_BYTES {
            return LexStatus::Done { used: at };
        }
        if blank == rest.len() {
            return match text_end {
                // The server may treat the closing marker as a stop token and omit the marker.
                Some(TextEnd::Stop) => LexStatus::Done { used: input.len() },
                Some(TextEnd::Length | TextEnd::Interrupted | TextEnd::Unknown) => {
                    self.need_more(input, at)
                }
                None => self.need_more(input, at),
            };
        }
        match match_after_whitespace(&rest[blank..], &[close], text_end.map(|_| false)) {
            PrefixMatch::Yes => LexStatus::Done { used: at + blank + close.len() },
            PrefixMatch::Partial => self.need_more(input, at),
            PrefixMatch::No => LexStatus::Done { used: at },
        }
    }

    fn need_more(&mut self, input: &str, at: usize) -> LexStatus {
        self.base_offset += at;
        LexStatus::NeedMore { held: input.len() - at }
    }

    fn has_separator(&self) -> bool {
        self.separators.iter().any(|separator| self.head.contains(separator))
    }

    /// Whether the head is nothing but the name of an offered tool.
    fn is_tool(&self, tools: &Tools) -> bool {
        is_name(self.name()) && resolve(tools, self.name()).is_some()
    }

    /// Extracts the tool name from the text before the arguments.
    fn name(&self) -> &str {
        let (name, between) = match self.separators {
            [] => self.head.split_once('['),
            separators => separators.iter().find_map(|separator| self.head.split_once(separator)),
        }
        .unwrap_or((&self.head, ""));
        let name = name.trim();
        let name = name.strip_prefix("functions.").unwrap_or(name);
        // DeepSeek V3 writes `function` before the separator and the name after the separator.
        if name == "function" && !self.separators.is_empty() {
            return between.lines().next().unwrap_or_default().trim();
        }
        // Kimi appends the index of the call to the name.
        match name.rsplit_once(':') {
            Some((name, count))
                if !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                name
            }
            Some(_) | None => name,
        }
    }
}

impl Lexer for NameFirst {
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        let mut at = 0;
        loop {
            let status = match self.phase {
                NameFirstPhase::Head => self.lex_head(input, &mut at, tools, update),
                NameFirstPhase::Body => self.lex_body(input, &mut at, update),
                NameFirstPhase::Tail => Some(self.lex_tail(input, at, text_end)),
            };
            if let Some(status) = status {
                return status;
            }
        }
    }

    fn decode<'t>(&self, text: &'t str, _end: Completeness) -> DecodeResult<'t> {
        let arguments = text.get(self.body_range.clone()).unwrap_or_default().trim();
        let arguments = if arguments.is_empty() { "{}" } else { arguments };
        Ok(vec![RawCall::new(self.name(), RawArguments::Text(arguments))])
    }

    fn lacks_only_closers(&mut self, held: usize) -> bool {
        if self.phase == NameFirstPhase::Body {
            self.body_range.end = self.base_offset + held;
        }
        self.phase != NameFirstPhase::Head
    }

    fn depth(&self) -> usize {
        self.scan.depth()
    }

    fn was_intended(&self) -> bool {
        self.phase != NameFirstPhase::Head
            || self.has_separator()
            || self.ends_like_call && self.name().split(CALL_SIGNS).next().is_some_and(is_name)
    }
}

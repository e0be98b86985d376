//! Lexer for Gemma's calls: `call:name{key:<|"|>text<|"|>,list:[1,2]}`.
//!
//! A string has no escapes, so it can contain the token that ends it. The token counts as the end
//! only if the rest of the call can follow: a closing bracket, or the next key. Example calls in a
//! string are passed as a whole.

use std::ops::Range;

use memchr::memmem;

use super::gemma_key::{KeyMatch, closing_bracket, is_example_head, match_key};
use super::gemma_value::GemmaDecoder;
use super::tool_parameters::ToolParameters;
use super::{
    DecodeResult, LexStatus, LexUpdate, Lexer, MAX_LOOKAHEAD_BYTES, MAX_NAME_BYTES, PrefixMatch,
    RawCall, RawEnd, is_name, leading_whitespace_len, match_after_whitespace, match_prefix,
};
use crate::call::{RawArguments, RejectReason};
use crate::event::TextEnd;
use crate::format::GemmaTokens;
use crate::lexer::json_scanner::MAX_DEPTH;
use crate::parse::Completeness;
use crate::resolve::resolve;
use crate::tool::Tools;

pub(super) const CALL_PREFIX: &str = "call:";

/// A string that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenString {
    /// Between two quote tokens, from this offset.
    Raw(usize),
    /// Between plain quotes, with escapes; whether a backslash is the last character.
    Plain { is_escaped: bool },
}

/// What follows a quote token in a string.
enum AfterQuote {
    /// The string ends.
    End,
    /// The token is part of the string. The doubt is whether an argument starts after it.
    Part {
        is_doubtful: bool,
    },
    NeedMore,
}

/// What stands outside of strings.
#[derive(Debug, Default)]
struct Signs {
    brackets: Vec<u8>,
    /// The last byte that isn't white space.
    last: u8,
    /// The start of a word, which may be a key.
    word: String,
}

impl Signs {
    fn push_to_word(&mut self, letter: char) {
        if self.word.len() <= MAX_NAME_BYTES {
            self.word.push(letter);
        }
    }
}

/// The strings of a call.
#[derive(Debug, Default)]
struct Strings {
    open: Option<OpenString>,
    /// The text of those between quote tokens.
    ended: Vec<Range<usize>>,
    /// The example calls that are open in the current string.
    open_examples: usize,
    /// The number of quote tokens that are part of the current string. An odd one may be its end.
    inner_quotes: usize,
    /// Whether a string contains what may be the next argument.
    are_ambiguous: bool,
}

/// How far a call was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum GemmaPhase {
    #[default]
    Open,
    /// The last bracket was read.
    Done,
    /// The token that ends the call was read, or the text ended before or in it.
    Closed,
}

/// A lexer for one call.
#[derive(Debug)]
pub(crate) struct Gemma {
    tokens: GemmaTokens,
    phase: GemmaPhase,
    head: String,
    /// The number of bytes before the current input.
    base_offset: usize,
    body_start: usize,
    signs: Signs,
    strings: Strings,
    parameters: ToolParameters,
}

impl Gemma {
    pub(super) fn new(tokens: GemmaTokens) -> Self {
        Self {
            tokens,
            phase: GemmaPhase::default(),
            head: String::new(),
            base_offset: 0,
            body_start: 0,
            signs: Signs::default(),
            strings: Strings::default(),
            parameters: ToolParameters::default(),
        }
    }

    /// Lexes `call:name{`. Some models omit `call:`.
    fn lex_head(
        &mut self,
        input: &str,
        at: &mut usize,
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> Option<LexStatus> {
        for (offset, letter) in input.char_indices() {
            if letter == '{' || letter == '(' {
                let head = self.head.trim();
                let name = head.strip_prefix(CALL_PREFIX).map(str::trim);
                let Some(name) = name.or_else(|| resolve(tools, head).map(|_| head)) else {
                    return Some(LexStatus::NotACall { used: offset });
                };
                self.parameters = ToolParameters::for_tool(tools, name);
                update.name = Some(name.to_owned());
                update.name_at = offset;
                self.body_start = self.base_offset + offset;
                self.signs.brackets.push(letter as u8);
                self.signs.last = letter as u8;
                *at = offset + 1;
                return None;
            }
            if letter == '<' || self.head.len() >= MAX_NAME_BYTES + CALL_PREFIX.len() {
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
        text_end: Option<TextEnd>,
    ) -> Option<LexStatus> {
        while *at < input.len() {
            let status = match self.strings.open {
                Some(OpenString::Raw(start)) => self.lex_raw_string(start, input, at, text_end),
                Some(OpenString::Plain { is_escaped }) => {
                    self.lex_plain_string(is_escaped, input, at);
                    None
                }
                None => self.lex_sign(input, at, text_end),
            };
            if status.is_some() || self.phase != GemmaPhase::Open {
                return status;
            }
        }
        Some(self.need_more(input, input.len()))
    }

    /// Lexes the characters outside of strings.
    fn lex_sign(
        &mut self,
        input: &str,
        at: &mut usize,
        text_end: Option<TextEnd>,
    ) -> Option<LexStatus> {
        let rest = &input[*at..];
        let letter = rest.chars().next()?;
        match match_prefix(rest, self.tokens.quote) {
            PrefixMatch::Partial if text_end.is_none() => return Some(self.need_more(input, *at)),
            PrefixMatch::Yes => {
                *at += self.tokens.quote.len();
                self.strings.open = Some(OpenString::Raw(self.base_offset + *at));
                return None;
            }
            PrefixMatch::Partial | PrefixMatch::No => {}
        }
        match letter {
            '"' if b"{([:=,".contains(&self.signs.last) => {
                self.strings.open = Some(OpenString::Plain { is_escaped: false });
                self.signs.word.clear();
            }
            '{' | '[' | '(' if self.signs.brackets.len() == MAX_DEPTH => {
                return Some(LexStatus::NotACall { used: *at });
            }
            '{' | '[' | '(' => self.signs.brackets.push(letter as u8),
            '}' | ']' | ')' => {
                if self.signs.brackets.pop().map(closing_bracket) != Some(letter as u8) {
                    return Some(LexStatus::NotACall { used: *at });
                }
                if self.signs.brackets.is_empty() {
                    self.phase = GemmaPhase::Done;
                }
            }
            ':' | '='
                if self.signs.brackets.len() == 1 && self.signs.word.len() <= MAX_NAME_BYTES =>
            {
                let key = std::mem::take(&mut self.signs.word);
                self.parameters.give(key.trim().to_owned());
            }
            _ => {}
        }
        if ",{}[]():=".contains(letter) {
            self.signs.word.clear();
        } else {
            self.signs.push_to_word(letter);
        }
        if !letter.is_whitespace() {
            self.signs.last = if letter.is_ascii() { letter as u8 } else { b'x' };
        }
        *at += letter.len_utf8();
        None
    }

    fn lex_plain_string(&mut self, is_escaped: bool, input: &str, at: &mut usize) {
        let Some(letter) = input[*at..].chars().next() else { return };
        self.strings.open = match letter {
            '"' if !is_escaped => None,
            _ => Some(OpenString::Plain { is_escaped: letter == '\\' && !is_escaped }),
        };
        if self.strings.open.is_none() {
            self.signs.last = b'"';
        } else {
            self.signs.push_to_word(letter);
        }
        *at += letter.len_utf8();
    }

    fn lex_raw_string(
        &mut self,
        start: usize,
        input: &str,
        at: &mut usize,
        text_end: Option<TextEnd>,
    ) -> Option<LexStatus> {
        let bytes = &input.as_bytes()[*at..];
        let offset = memchr::memchr(b'<', bytes).unwrap_or(bytes.len());
        *at += offset;
        let rest = &input[*at..];
        let GemmaTokens { call_start, quote, close } = self.tokens;
        let results = [quote, call_start, close].map(|token| match_prefix(rest, token));
        match results {
            _ if rest.is_empty() => return None,
            [PrefixMatch::Yes, ..] => {
                match self.match_after_quote(&rest[quote.len()..], text_end) {
                    AfterQuote::NeedMore => return Some(self.need_more(input, *at)),
                    AfterQuote::End => {
                        let end = self.base_offset + *at;
                        self.end_raw_string(start..end, input);
                        *at += quote.len();
                        return None;
                    }
                    AfterQuote::Part { is_doubtful } => {
                        self.strings.are_ambiguous |=
                            is_doubtful && self.strings.open_examples == 0;
                        self.strings.inner_quotes += 1;
                        *at += quote.len();
                        return None;
                    }
                }
            }
            [_, PrefixMatch::Yes, _] => {
                let (is_example, is_undecided) = is_example_head(&rest[call_start.len()..]);
                if is_undecided && text_end.is_none() {
                    return Some(self.need_more(input, *at));
                }
                self.strings.open_examples += usize::from(is_example);
                *at += call_start.len();
            }
            [.., PrefixMatch::Yes] => {
                self.strings.open_examples = self.strings.open_examples.saturating_sub(1);
                *at += close.len();
            }
            results if results.contains(&PrefixMatch::Partial) && text_end.is_none() => {
                return Some(self.need_more(input, *at));
            }
            _ => *at += 1,
        }
        None
    }

    /// Ends a string, which may be a key.
    fn end_raw_string(&mut self, range: Range<usize>, input: &str) {
        let from = range.start.saturating_sub(self.base_offset);
        self.signs.word.clear();
        if range.start >= self.base_offset && range.len() <= MAX_NAME_BYTES {
            self.signs.word.push_str(&input[from..range.end - self.base_offset]);
        }
        self.strings.are_ambiguous |= self.strings.inner_quotes % 2 == 1;
        self.strings.inner_quotes = 0;
        self.strings.ended.push(range);
        self.strings.open = None;
        self.signs.last = b'"';
    }

    /// Decides what the quote token before `rest` means in a string.
    fn match_after_quote(&self, rest: &str, text_end: Option<TextEnd>) -> AfterQuote {
        let part = AfterQuote::Part { is_doubtful: false };
        let undecided = if text_end.is_some() { part } else { AfterQuote::NeedMore };
        let part = AfterQuote::Part { is_doubtful: false };
        let blank = leading_whitespace_len(rest);
        let rest = &rest[blank..];
        if blank > MAX_LOOKAHEAD_BYTES {
            return part;
        }
        let Some(sign) = rest.bytes().next() else { return undecided };
        let container = self.signs.brackets.last().copied().unwrap_or_default();
        if self.strings.open_examples > 0 {
            let is_closer = sign == b'}' || sign == b')';
            let after = rest.get(1..).unwrap_or_default();
            return match match_after_whitespace(after, &[self.tokens.close], None) {
                PrefixMatch::Partial if is_closer => undecided,
                _ if sign != b',' => part,
                _ => match match_key(after, self.tokens.quote) {
                    KeyMatch::NeedMore => undecided,
                    KeyMatch::Key(key) => AfterQuote::Part { is_doubtful: self.is_wanted(key) },
                    KeyMatch::No => part,
                },
            };
        }
        if matches!(sign, b':' | b'=') && container != b'[' && !b":=".contains(&self.signs.last) {
            return AfterQuote::End;
        }
        let closer = closing_bracket(container) as char;
        let before_closer = rest.strip_prefix(',').map_or(rest, str::trim_start);
        if let Some(after) = before_closer.strip_prefix(closer) {
            return match self.match_after_bracket(after, text_end) {
                PrefixMatch::Yes => AfterQuote::End,
                PrefixMatch::Partial => undecided,
                PrefixMatch::No => part,
            };
        }
        if container == b'[' {
            return if sign == b',' { AfterQuote::End } else { part };
        }
        let has_comma = sign == b',';
        match match_key(if has_comma { &rest[1..] } else { rest }, self.tokens.quote) {
            KeyMatch::NeedMore => undecided,
            KeyMatch::No => part,
            KeyMatch::Key(key) => match (has_comma, self.is_wanted(key)) {
                (true, true) => AfterQuote::End,
                (true, false) | (false, true) => AfterQuote::Part { is_doubtful: true },
                (false, false) => part,
            },
        }
    }

    /// Whether the call can go on after a closing bracket.
    fn match_after_bracket(&self, rest: &str, text_end: Option<TextEnd>) -> PrefixMatch {
        let first = rest.trim_start();
        if rest.len() - first.len() > MAX_LOOKAHEAD_BYTES {
            return PrefixMatch::No;
        }
        match first.bytes().next() {
            None if text_end.is_some() => PrefixMatch::Yes,
            None => PrefixMatch::Partial,
            Some(b'<') if self.signs.brackets.len() == 1 => {
                match match_prefix(first, self.tokens.close) {
                    PrefixMatch::No => match_prefix(first, self.tokens.call_start),
                    PrefixMatch::Partial if text_end.is_some() => PrefixMatch::Yes,
                    decided => decided,
                }
            }
            Some(b',' | b'}' | b']' | b')') if self.signs.brackets.len() > 1 => PrefixMatch::Yes,
            Some(_) => PrefixMatch::No,
        }
    }

    /// Whether an argument with this key may follow.
    fn is_wanted(&self, key: &str) -> bool {
        self.signs.brackets.len() > 1 || self.parameters.wants(key)
    }

    fn need_more(&mut self, input: &str, at: usize) -> LexStatus {
        self.base_offset += at;
        LexStatus::NeedMore { held: input.len() - at }
    }
}

impl Lexer for Gemma {
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        let mut at = 0;
        if self.signs.brackets.is_empty() && self.phase == GemmaPhase::Open {
            if let Some(status) = self.lex_head(input, &mut at, tools, update) {
                return status;
            }
            update.fragment = Some(at - 1..at);
        }
        if self.phase == GemmaPhase::Open {
            let from = update.fragment.as_ref().map_or(0, |range| range.start);
            let status = self.lex_body(input, &mut at, text_end);
            let read = match &status {
                Some(LexStatus::NeedMore { held }) => input.len() - held,
                Some(LexStatus::NotACall { .. } | LexStatus::Done { .. }) | None => at,
            };
            update.fragment = Some(from..read);
            if let Some(status) = status {
                return status;
            }
        }
        let end = input[at..].trim_start();
        if text_end.is_some() && match_prefix(end, self.tokens.close) == PrefixMatch::Partial {
            self.phase = GemmaPhase::Closed;
            return LexStatus::Done { used: if end.is_empty() { at } else { input.len() } };
        }
        match match_after_whitespace(&input[at..], &[self.tokens.close], text_end.map(|_| false)) {
            PrefixMatch::Yes => {
                let blank = leading_whitespace_len(&input[at..]);
                self.phase = GemmaPhase::Closed;
                LexStatus::Done { used: at + blank + self.tokens.close.len() }
            }
            PrefixMatch::Partial if input.len() - at <= MAX_LOOKAHEAD_BYTES => {
                self.need_more(input, at)
            }
            PrefixMatch::Partial | PrefixMatch::No => LexStatus::Done { used: at },
        }
    }

    fn decode<'t>(&self, text: &'t str, _end: Completeness) -> DecodeResult<'t> {
        if self.strings.are_ambiguous {
            return Err(RejectReason::Malformed(
                "a string contains what may be the next argument".to_owned(),
            ));
        }
        let head = self.head.trim();
        let name = head.strip_prefix(CALL_PREFIX).unwrap_or(head).trim();
        let value = GemmaDecoder::new(text, self.tokens.quote, &self.strings.ended)
            .parse_arguments(self.body_start);
        let value = value.ok_or_else(|| {
            RejectReason::Malformed("the arguments do not have the form `{key:value}`".to_owned())
        })?;
        Ok(vec![RawCall::new(name, RawArguments::Value(value))])
    }

    fn depth(&self) -> usize {
        self.signs.brackets.len()
    }

    fn raw_end(&self, text: &str) -> Option<RawEnd> {
        let GemmaTokens { call_start, quote, close } = self.tokens;
        let has_tokens = self.strings.ended.iter().any(|range| {
            let value = text.get(range.clone()).unwrap_or_default();
            [call_start, quote, close]
                .into_iter()
                .any(|token| memmem::find(value.as_bytes(), token.as_bytes()).is_some())
        });
        let is_regular = self.phase == GemmaPhase::Closed && !has_tokens;
        Some(RawEnd { closers: vec![quote.to_owned(), close.to_owned()], is_regular })
    }

    fn was_intended(&self) -> bool {
        let name = self.head.trim_start().strip_prefix(CALL_PREFIX);
        !self.signs.brackets.is_empty() || name.is_some_and(|name| is_name(name.trim()))
    }
}

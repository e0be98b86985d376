//! Lexer for Gemma 4: `call:name{key:<|"|>text<|"|>,list:[1,2]}`.

use std::collections::HashSet;

use super::{
    DecodeResult, LexStatus, LexUpdate, Lexer, MAX_LOOKAHEAD_BYTES, MAX_NAME_BYTES, PrefixMatch,
    RawCall, is_name, match_after_whitespace, match_prefix,
};
use crate::Json;
use crate::call::{RawArguments, RejectReason};
use crate::event::TextEnd;
use crate::lexer::json_scanner::MAX_DEPTH;
use crate::parse::Completeness;

/// The delimiter of strings.
const QUOTE: &str = "<|\"|>";

/// The end of a call. The inference server may remove this marker as a stop token.
const CLOSE: &str = "<tool_call|>";

const CALL_PREFIX: &str = "call:";

/// Names of non-finite numbers in other notations.
const NON_FINITE_NUMBERS: &[&str] = &["NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"];

/// A lexer for one call.
#[derive(Debug, Default)]
pub(crate) struct Gemma {
    head: String,
    depth: usize,
    in_string: bool,
    done: bool,
}

impl Gemma {
    /// Lexes `call:name{`.
    fn lex_head(
        &mut self,
        input: &str,
        at: &mut usize,
        update: &mut LexUpdate,
    ) -> Option<LexStatus> {
        for (offset, letter) in input.char_indices() {
            if letter == '{' {
                let Some(name) = self.head.trim_start().strip_prefix(CALL_PREFIX) else {
                    return Some(LexStatus::NotACall { used: offset });
                };
                update.name = Some(name.trim().to_owned());
                update.name_at = offset;
                self.depth = 1;
                *at = offset + 1;
                return None;
            }
            if letter == '<' || self.head.len() >= MAX_NAME_BYTES + CALL_PREFIX.len() {
                return Some(LexStatus::NotACall { used: offset });
            }
            self.head.push(letter);
        }
        Some(LexStatus::NeedMore { held: 0 })
    }

    fn lex_body(&mut self, input: &str, at: &mut usize) -> Option<LexStatus> {
        while *at < input.len() {
            let rest = &input[*at..];
            let Some(next) =
                rest.find(if self.in_string { &['<'][..] } else { &['<', '{', '}', '[', ']'][..] })
            else {
                *at = input.len();
                break;
            };
            *at += next;
            match rest.as_bytes()[next] {
                b'<' => match match_prefix(&input[*at..], QUOTE) {
                    PrefixMatch::Partial => {
                        return Some(LexStatus::NeedMore { held: input.len() - *at });
                    }
                    PrefixMatch::Yes => {
                        self.in_string = !self.in_string;
                        *at += QUOTE.len() - 1;
                    }
                    PrefixMatch::No => {}
                },
                b'{' | b'[' if self.depth == MAX_DEPTH => {
                    return Some(LexStatus::NotACall { used: *at });
                }
                b'{' | b'[' => self.depth += 1,
                _ => self.depth -= 1,
            }
            *at += 1;
            if self.depth == 0 {
                self.done = true;
                return None;
            }
        }
        Some(LexStatus::NeedMore { held: 0 })
    }
}

impl Lexer for Gemma {
    fn lex(&mut self, input: &str, text_end: Option<TextEnd>, update: &mut LexUpdate) -> LexStatus {
        let mut at = 0;
        if self.depth == 0 && !self.done {
            if let Some(status) = self.lex_head(input, &mut at, update) {
                return status;
            }
            at -= 1;
            update.fragment = Some(at..at + 1);
            at += 1;
        }
        if !self.done {
            let from = update.fragment.as_ref().map_or(0, |range| range.start);
            let status = self.lex_body(input, &mut at);
            let read = match &status {
                Some(LexStatus::NeedMore { held }) => input.len() - held,
                Some(LexStatus::NotACall { .. } | LexStatus::Done { .. }) | None => at,
            };
            update.fragment = Some(from..read);
            if let Some(status) = status {
                return status;
            }
        }
        match match_after_whitespace(&input[at..], &[CLOSE], text_end.map(|_| false)) {
            PrefixMatch::Yes => {
                let blank = super::leading_whitespace_len(&input[at..]);
                LexStatus::Done { used: at + blank + CLOSE.len() }
            }
            PrefixMatch::Partial if input.len() - at <= MAX_LOOKAHEAD_BYTES => {
                LexStatus::NeedMore { held: input.len() - at }
            }
            PrefixMatch::Partial | PrefixMatch::No => LexStatus::Done { used: at },
        }
    }

    fn decode<'t>(&self, text: &'t str, _end: Completeness) -> DecodeResult<'t> {
        let name = self.head.trim_start().strip_prefix(CALL_PREFIX).unwrap_or_default().trim();
        let from = text.find('{').unwrap_or(text.len());
        let mut reader = GemmaDecoder { text, at: from, depth: 0 };
        let value = reader.parse_value();
        let value = value.ok_or_else(|| {
            RejectReason::Malformed("the arguments do not have the form `{key:value}`".to_owned())
        })?;
        Ok(vec![RawCall::new(name, RawArguments::Value(value))])
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn was_intended(&self) -> bool {
        let name = self.head.trim_start().strip_prefix(CALL_PREFIX);
        self.depth > 0 || name.is_some_and(|name| is_name(name.trim()))
    }
}

/// A decoder for the notation. The decoder rejects values that are nested too deeply.
struct GemmaDecoder<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl GemmaDecoder<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_whitespace(&mut self) {
        self.at += super::leading_whitespace_len(self.rest());
    }

    fn eat(&mut self, expected: &str) -> bool {
        let matched = self.rest().starts_with(expected);
        self.at += if matched { expected.len() } else { 0 };
        matched
    }

    fn parse_value(&mut self) -> Option<Json> {
        self.skip_whitespace();
        if self.eat(QUOTE) {
            return self.parse_string().map(Json::String);
        }
        if self.rest().starts_with(['{', '[']) {
            if self.depth == MAX_DEPTH {
                return None;
            }
            self.depth += 1;
            let value = if self.eat("{") {
                self.parse_object()
            } else {
                self.eat("[").then(|| self.parse_array())?
            };
            self.depth -= 1;
            return value;
        }
        let end = self.rest().find([',', '}', ']']).unwrap_or(self.rest().len());
        let word = self.rest()[..end].trim().to_owned();
        self.at += end;
        match crate::parse::parse_strict(&word) {
            Ok(value) => Some(value),
            // Non-finite numbers are rejected, as in the JSON parser.
            Err(_) if word.is_empty() || NON_FINITE_NUMBERS.contains(&word.as_str()) => None,
            Err(_) => Some(Json::String(word)),
        }
    }

    fn parse_string(&mut self) -> Option<String> {
        let end = self.rest().find(QUOTE)?;
        let text = self.rest()[..end].to_owned();
        self.at += end + QUOTE.len();
        Some(text)
    }

    fn parse_object(&mut self) -> Option<Json> {
        let mut seen = HashSet::new();
        let mut members = Vec::new();
        loop {
            self.skip_whitespace();
            if self.eat("}") {
                return Some(Json::Object(members));
            }
            let key = if self.eat(QUOTE) {
                let key = self.parse_string()?;
                self.skip_whitespace();
                self.eat(":").then_some(key)?
            } else {
                let end = self.rest().find([':', '}', '{'])?;
                let key = self.rest()[..end].trim().to_owned();
                self.at += end;
                self.eat(":").then_some(key)?
            };
            if !seen.insert(key.clone()) {
                return None;
            }
            let value = self.parse_value()?;
            members.push((key, value));
            self.skip_whitespace();
            self.eat(",");
        }
    }

    fn parse_array(&mut self) -> Option<Json> {
        let mut items = Vec::new();
        loop {
            self.skip_whitespace();
            if self.eat("]") {
                return Some(Json::Array(items));
            }
            items.push(self.parse_value()?);
            self.skip_whitespace();
            self.eat(",");
        }
    }
}

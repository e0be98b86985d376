//! Decoder for the arguments of Gemma's calls.

use std::collections::HashSet;
use std::ops::Range;

use crate::Json;
use crate::lexer::json_scanner::MAX_DEPTH;
use crate::lexer::leading_whitespace_len;
use crate::parse::parse_strict;

/// Names of non-finite numbers in other notations.
const NON_FINITE_NUMBERS: &[&str] = &["NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"];

/// A decoder for the notation. The decoder rejects values that are nested too deeply.
pub(super) struct GemmaDecoder<'a> {
    text: &'a str,
    quote: &'static str,
    /// The strings between quote tokens that are not read yet, as the lexer found them.
    strings: std::slice::Iter<'a, Range<usize>>,
    at: usize,
    depth: usize,
}

impl<'a> GemmaDecoder<'a> {
    pub(super) fn new(text: &'a str, quote: &'static str, strings: &'a [Range<usize>]) -> Self {
        Self { text, quote, strings: strings.iter(), at: 0, depth: 0 }
    }

    /// Decodes the arguments in `{}` or `()` at `start`.
    pub(super) fn parse_arguments(mut self, start: usize) -> Option<Json> {
        self.at = start;
        let close = if self.eat("(") { ")" } else { self.eat("{").then_some("}")? };
        self.parse_members(close)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_whitespace(&mut self) {
        self.at += leading_whitespace_len(self.rest());
    }

    fn eat(&mut self, expected: &str) -> bool {
        let matched = self.rest().starts_with(expected);
        self.at += if matched { expected.len() } else { 0 };
        matched
    }

    fn parse_value(&mut self) -> Option<Json> {
        self.skip_whitespace();
        if self.eat(self.quote) {
            return self.parse_raw_string().map(Json::String);
        }
        if self.rest().starts_with('"') {
            return self.parse_plain_string().map(Json::String);
        }
        if self.rest().starts_with(['{', '[']) {
            if self.depth == MAX_DEPTH {
                return None;
            }
            self.depth += 1;
            let value = if self.eat("{") {
                self.parse_members("}")
            } else {
                self.eat("[").then(|| self.parse_array())?
            };
            self.depth -= 1;
            return value;
        }
        let end = self.rest().find([',', '}', ']', ')']).unwrap_or(self.rest().len());
        let word = self.rest()[..end].trim().to_owned();
        self.at += end;
        match parse_strict(&word) {
            Ok(value) => Some(value),
            // Non-finite numbers are rejected, as in the JSON parser.
            Err(_) if word.is_empty() || NON_FINITE_NUMBERS.contains(&word.as_str()) => None,
            // A quote or a bracket in a word is damage.
            Err(_) if word.contains(['"', '<', '\n', '{', '[', '(']) => None,
            Err(_) => Some(Json::String(word)),
        }
    }

    /// Reads the rest of a string between quote tokens.
    fn parse_raw_string(&mut self) -> Option<String> {
        let range = self.strings.next().filter(|range| range.start == self.at)?;
        self.at = range.end;
        self.eat(self.quote).then(|| self.text[range.clone()].to_owned())
    }

    /// Reads a string between plain quotes, as in JSON.
    fn parse_plain_string(&mut self) -> Option<String> {
        let mut is_escaped = false;
        let end = self.rest().char_indices().skip(1).find(|(_, letter)| {
            let ends = *letter == '"' && !is_escaped;
            is_escaped = *letter == '\\' && !is_escaped;
            ends
        });
        let end = end?.0 + 1;
        let text = self.rest()[..end].to_owned();
        self.at += end;
        match parse_strict(&text).ok()? {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    fn parse_key(&mut self) -> Option<String> {
        if self.eat(self.quote) {
            return self.parse_raw_string();
        }
        if self.rest().starts_with('"') {
            return self.parse_plain_string();
        }
        let end = self.rest().find(|letter: char| ":={}()<>\n\"".contains(letter))?;
        let key = self.rest()[..end].trim().to_owned();
        self.at += end;
        (!key.is_empty()).then_some(key)
    }

    fn parse_members(&mut self, close: &str) -> Option<Json> {
        let mut seen = HashSet::new();
        let mut members = Vec::new();
        loop {
            self.skip_whitespace();
            if self.eat(close) {
                return Some(Json::Object(members));
            }
            let key = self.parse_key()?;
            self.skip_whitespace();
            if !self.eat(":") && !self.eat("=") || !seen.insert(key.clone()) {
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

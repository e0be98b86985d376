//! Lexer for calls in Python syntax: `[f(a=1), g(b="x")]`.
//!
//! The lexer also accepts JSON lists, which start with the same bracket.

use super::json_calls::JsonCalls;
use super::{
    DecodeResult, LexStatus, LexUpdate, Lexer, MAX_LOOKAHEAD_BYTES, MAX_NAME_BYTES, OpaqueJson,
    PrefixMatch, RawCall, leading_whitespace_len, undecided_start,
};
use crate::Json;
use crate::call::{RawArguments, RejectReason};
use crate::event::TextEnd;
use crate::lexer::json_scanner::MAX_DEPTH;
use crate::parse::Completeness;
use crate::tool::Tools;

/// Whether `[` can start a call: a name with a bracket or JSON follows. A list of numbers is plain
/// text.
pub(super) fn match_list_start(text: &str, max_chars: usize) -> PrefixMatch {
    let max_chars = max_chars.min(MAX_NAME_BYTES);
    let bytes = text.as_bytes();
    let first = 1 + bytes
        .iter()
        .take(max_chars)
        .skip(1)
        .take_while(|byte| b" \t\r\n".contains(byte))
        .count();
    let rest = &bytes[first..bytes.len().min(max_chars)];
    let is_plain = match rest.first() {
        // The lexer reads the name as text, but `Action:` on its own line is a marker.
        _ if bytes[1..first].contains(&b'\n') => Some(false),
        // Numbers are never a call and do not wait.
        Some(b'0'..=b'9' | b'-') => Some(
            rest.iter().find(|byte| !byte.is_ascii_digit() && !b" ,.-".contains(byte))
                == Some(&b']'),
        ),
        Some(b'{' | b'[' | b'"') => Some(false),
        Some(_) => rest
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && !b"_.-/".contains(byte))
            .map(|end| match rest[end] {
                b'(' => end == 0,
                next => {
                    next.is_ascii() && ![&b"null"[..], b"true", b"false"].contains(&&rest[..end])
                }
            }),
        None => None,
    };
    match is_plain {
        Some(true) => PrefixMatch::No,
        Some(false) => PrefixMatch::Yes,
        None => undecided_start(text, max_chars),
    }
}

#[derive(Default)]
pub(crate) struct Pythonic {
    /// The lexer for a JSON list, if the bracket starts a JSON list.
    json_list: Option<JsonCalls>,
    name: String,
    has_name: bool,
    depth: usize,
    quote: Option<char>,
    escaped: bool,
    /// Whether the list is data.
    is_opaque: bool,
}

impl Pythonic {
    /// Lexes the first name, up to its bracket.
    fn lex_head(
        &mut self,
        input: &str,
        at: &mut usize,
        update: &mut LexUpdate,
    ) -> Option<LexStatus> {
        while let Some(letter) = input[*at..].chars().next() {
            match letter {
                '(' if !self.name.is_empty() => {
                    self.has_name = true;
                    update.name = Some(self.name.clone());
                    update.in_list = true;
                    update.name_at = *at;
                    return None;
                }
                _ if self.name.len() >= MAX_NAME_BYTES => {
                    return Some(LexStatus::NotACall { used: *at });
                }
                _ if letter.is_alphanumeric() || "_.-/".contains(letter) => self.name.push(letter),
                _ => {
                    self.is_opaque = matches!(self.name.as_str(), "null" | "true" | "false");
                    return Some(LexStatus::NotACall { used: *at });
                }
            }
            *at += letter.len_utf8();
        }
        Some(LexStatus::NeedMore { held: 0 })
    }

    fn lex_body(&mut self, input: &str, at: usize) -> LexStatus {
        for (offset, letter) in input[at..].char_indices() {
            if self.escaped {
                self.escaped = false;
            } else if let Some(quote) = self.quote {
                match letter {
                    '\\' => self.escaped = true,
                    _ if letter == quote => self.quote = None,
                    _ => {}
                }
            } else {
                match letter {
                    '"' | '\'' => self.quote = Some(letter),
                    '(' | '[' | '{' if self.depth > MAX_DEPTH => {
                        return LexStatus::NotACall { used: at + offset };
                    }
                    '(' | '[' | '{' => self.depth += 1,
                    ')' | ']' | '}' => {
                        self.depth -= 1;
                        if self.depth == 0 {
                            return LexStatus::Done { used: at + offset + letter.len_utf8() };
                        }
                    }
                    _ => {}
                }
            }
        }
        LexStatus::NeedMore { held: 0 }
    }
}

impl Lexer for Pythonic {
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        if let Some(list) = &mut self.json_list {
            return list.lex(input, text_end, tools, update);
        }
        let mut at = 0;
        if self.depth == 0 {
            // The bracket, white space, then the first character of a name, or a bracket.
            let first = 1 + leading_whitespace_len(input.get(1..).unwrap_or_default());
            match input[first.min(input.len())..].chars().next() {
                _ if first > MAX_LOOKAHEAD_BYTES => return LexStatus::NotACall { used: 1 },
                None if text_end.is_some() => return LexStatus::NotACall { used: 1 },
                None => return LexStatus::NeedMore { held: input.len() },
                Some('{') => {
                    return self
                        .json_list
                        .insert(JsonCalls::bare())
                        .lex(input, text_end, tools, update);
                }
                Some('0'..='9' | '-' | '"' | '[') => {
                    self.is_opaque = true;
                    return LexStatus::NotACall { used: first };
                }
                Some(_) => at = first,
            }
            self.depth = 1;
        }
        if !self.has_name
            && let Some(status) = self.lex_head(input, &mut at, update)
        {
            return status;
        }
        self.lex_body(input, at)
    }

    fn decode<'t>(&self, text: &'t str, completeness: Completeness) -> DecodeResult<'t> {
        match &self.json_list {
            Some(list) => list.decode_values(text, completeness),
            None => PythonDecoder { text, at: 1, depth: 0 }.parse_calls().ok_or_else(|| {
                RejectReason::Malformed("the list of calls is not valid Python".to_owned())
            }),
        }
    }

    fn take_opaque_json(&mut self) -> Option<OpaqueJson> {
        match &mut self.json_list {
            Some(list) => list.take_opaque_json(),
            None => self.is_opaque.then(|| OpaqueJson::from_prefix("["))?,
        }
    }

    fn depth(&self) -> usize {
        self.json_list.as_ref().map_or(self.depth, Lexer::depth)
    }

    fn was_intended(&self) -> bool {
        self.json_list.as_ref().is_some_and(Lexer::was_intended)
    }
}

/// A decoder for the calls. The decoder rejects values that are nested too deeply.
pub(super) struct PythonDecoder<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> PythonDecoder<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// Parses calls up to the end of the text. Each may be the argument of the function `wrapper`.
    pub(super) fn parse_statements(mut self, wrapper: &str) -> Option<Vec<RawCall<'static>>> {
        let mut calls = Vec::new();
        loop {
            self.at += leading_whitespace_len(self.rest());
            if self.rest().is_empty() {
                return Some(calls);
            }
            let name = self.parse_word("(")?;
            let is_wrapped = name == wrapper;
            self.eat('(');
            let name = if is_wrapped { self.parse_word("(")? } else { name };
            if name.is_empty() || name.contains('\n') || is_wrapped && !self.eat('(') {
                return None;
            }
            let arguments = self.parse_members(')', "=")?;
            calls.push(RawCall::new(name, RawArguments::Value(Json::Object(arguments))));
            if is_wrapped && !self.eat(')') {
                return None;
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn eat(&mut self, expected: char) -> bool {
        self.at += leading_whitespace_len(self.rest());
        let matched = self.rest().starts_with(expected);
        self.at += if matched { expected.len_utf8() } else { 0 };
        matched
    }

    fn parse_calls(&mut self) -> Option<Vec<RawCall<'static>>> {
        let mut calls = Vec::new();
        while !self.eat(']') {
            let name = self.parse_word("(")?;
            if name.is_empty() || !self.eat('(') {
                return None;
            }
            let arguments = self.parse_members(')', "=")?;
            calls.push(RawCall::new(name, RawArguments::Value(Json::Object(arguments))));
            self.eat(',');
        }
        Some(calls)
    }

    /// Consumes the text up to one of the `delimiters` and returns the text trimmed.
    fn parse_word(&mut self, delimiters: &str) -> Option<String> {
        let end = self.rest().find(|letter| delimiters.contains(letter))?;
        let word = self.rest()[..end].trim().to_owned();
        self.at += end;
        Some(word)
    }

    /// Parses `key=value` or `"key": value` members, up to `close`.
    fn parse_members(&mut self, close: char, between: &str) -> Option<Vec<(String, Json)>> {
        let mut seen = std::collections::HashSet::new();
        let mut members = Vec::new();
        while !self.eat(close) {
            let key = match self.rest().chars().next()? {
                quote @ ('"' | '\'') => self.parse_string(quote)?,
                _ => self.parse_word("=:,)}")?,
            };
            if key.is_empty() || !self.eat(between.chars().next()?) || !seen.insert(key.clone()) {
                return None;
            }
            let value = self.parse_value()?;
            members.push((key, value));
            if !self.eat(',') && !self.rest().starts_with(close) {
                return None;
            }
        }
        Some(members)
    }

    fn parse_value(&mut self) -> Option<Json> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let value = self.parse_value_at_depth();
        self.depth -= 1;
        value
    }

    fn parse_value_at_depth(&mut self) -> Option<Json> {
        self.at += leading_whitespace_len(self.rest());
        match self.rest().chars().next()? {
            quote @ ('"' | '\'') => self.parse_string(quote).map(Json::String),
            '{' => {
                self.at += 1;
                self.parse_members('}', ":").map(Json::Object)
            }
            open @ ('[' | '(') => {
                self.at += 1;
                let close = if open == '[' { ']' } else { ')' };
                let mut items = Vec::new();
                while !self.eat(close) {
                    items.push(self.parse_value()?);
                    if !self.eat(',') && !self.rest().starts_with(close) {
                        return None;
                    }
                }
                Some(Json::Array(items))
            }
            _ => match self.parse_word(",)]}")?.as_str() {
                "True" | "true" => Some(Json::Bool(true)),
                "False" | "false" => Some(Json::Bool(false)),
                "None" | "null" => Some(Json::Null),
                number => match crate::parse::parse_strict(number) {
                    Ok(value @ Json::Number(_)) => Some(value),
                    Ok(_) | Err(_) => None,
                },
            },
        }
    }

    fn parse_string(&mut self, quote: char) -> Option<String> {
        let mut letters = self.rest().char_indices();
        letters.next()?;
        let mut text = String::new();
        while let Some((offset, letter)) = letters.next() {
            match letter {
                '\\' => match letters.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'x' => text.push(parse_char_code(&mut letters, 2)?),
                    'u' => text.push(parse_char_code(&mut letters, 4)?),
                    'U' => text.push(parse_char_code(&mut letters, 8)?),
                    plain @ ('\\' | '\'' | '"') => text.push(plain),
                    '\n' => {}
                    other => text.extend(['\\', other]),
                },
                _ if letter == quote => {
                    self.at += offset + letter.len_utf8();
                    return Some(text);
                }
                _ => text.push(letter),
            }
        }
        None
    }
}

/// Parses a character code with `digits` hexadecimal digits.
fn parse_char_code(
    letters: &mut impl Iterator<Item = (usize, char)>,
    digits: usize,
) -> Option<char> {
    let mut number = 0;
    for _ in 0..digits {
        number = number * 16 + letters.next()?.1.to_digit(16)?;
    }
    char::from_u32(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_in_the_name_of_a_list_is_left_to_the_lexer() {
        assert_eq!(match_list_start("[\nAction: add\n", 200), PrefixMatch::Yes);
        assert_eq!(match_list_start("[Action: add\n", 200), PrefixMatch::No);
    }
}

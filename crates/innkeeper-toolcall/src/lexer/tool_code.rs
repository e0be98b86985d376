//! Lexer for Gemma's fenced blocks `tool_code`, which contain calls in Python syntax.
//!
//! The models write one call per line, some in `print(…)`.

use super::fence::FENCE;
use super::pythonic::PythonDecoder;
use super::{DecodeResult, LexStatus, LexUpdate, Lexer, MAX_NAME_BYTES, PrefixMatch, match_prefix};
use crate::call::RejectReason;
use crate::event::TextEnd;
use crate::lexer::json_scanner::MAX_DEPTH;
use crate::parse::Completeness;
use crate::tool::Tools;

/// The function around a call that shows its result.
const PRINT: &str = "print";

/// The lexer state after the opening marker and the language.
#[derive(Debug, Default)]
pub(crate) struct ToolCode {
    /// Whether the first line has been read.
    header_read: bool,
    /// The name of the first call.
    name: String,
    has_name: bool,
    depth: usize,
    quote: Option<char>,
    is_escaped: bool,
    is_line_start: bool,
}

impl ToolCode {
    /// Lexes a character. Returns whether the block can still contain calls only.
    fn lex_letter(&mut self, letter: char, at: usize, update: &mut LexUpdate) -> bool {
        if self.is_escaped {
            self.is_escaped = false;
            return true;
        }
        if self.quote.is_some() {
            self.is_escaped = letter == '\\';
            self.quote = self.quote.filter(|quote| *quote != letter);
            return true;
        }
        match letter {
            '\n' => self.is_line_start = true,
            _ if !letter.is_whitespace() => self.is_line_start = false,
            _ => {}
        }
        match letter {
            '(' | '[' | '{' if self.depth > MAX_DEPTH => return false,
            '(' | '[' | '{' => {
                self.depth += 1;
                if !self.has_name && letter == '(' && self.name != PRINT {
                    self.has_name = true;
                    update.name = Some(self.name.clone());
                    update.in_list = true;
                    update.name_at = at;
                }
                if !self.has_name {
                    self.name.clear();
                }
            }
            ')' | ']' | '}' if self.depth == 0 => return false,
            ')' | ']' | '}' => self.depth -= 1,
            '"' | '\'' => self.quote = Some(letter),
            _ if self.has_name || letter.is_whitespace() => {}
            _ if letter.is_alphanumeric() || "_.-/".contains(letter) => self.name.push(letter),
            _ => return false,
        }
        self.name.len() <= MAX_NAME_BYTES
    }

    fn is_between_calls(&self) -> bool {
        self.has_name && self.depth == 0 && self.quote.is_none()
    }
}

impl Lexer for ToolCode {
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        _tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        for (at, letter) in input.char_indices() {
            if !self.header_read {
                match letter {
                    '\n' => self.header_read = true,
                    ' ' | '\t' | '\r' => {}
                    _ => return LexStatus::NotACall { used: at },
                }
                continue;
            }
            if self.is_line_start && self.is_between_calls() && letter == '`' {
                match match_prefix(&input[at..], FENCE) {
                    PrefixMatch::Yes => return LexStatus::Done { used: at + FENCE.len() },
                    PrefixMatch::Partial if text_end.is_none() => {
                        return LexStatus::NeedMore { held: input.len() - at };
                    }
                    PrefixMatch::Partial | PrefixMatch::No => {}
                }
            }
            if !self.lex_letter(letter, at, update) {
                return LexStatus::NotACall { used: at };
            }
        }
        if text_end == Some(TextEnd::Stop) && self.is_between_calls() {
            return LexStatus::Done { used: input.len() };
        }
        LexStatus::NeedMore { held: 0 }
    }

    fn decode<'t>(&self, text: &'t str, _end: Completeness) -> DecodeResult<'t> {
        let body = text.trim_end();
        let body = body.strip_suffix(FENCE).unwrap_or(body);
        PythonDecoder::new(body).parse_statements(PRINT).ok_or_else(|| {
            RejectReason::Malformed(
                "the block must contain calls with named arguments only".to_owned(),
            )
        })
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn was_intended(&self) -> bool {
        self.has_name
    }
}

//! Lexer for the body of a Harmony message to a tool.

use super::json_scanner::{JsonScanner, ValueStatus};
use super::{
    DecodeResult, LexStatus, LexUpdate, Lexer, PrefixMatch, RawCall, leading_whitespace_len,
    match_prefix,
};
use crate::call::RawArguments;
use crate::event::TextEnd;
use crate::parse::Completeness;
use crate::tool::Tools;

pub(crate) const END_TOKENS: &[&str] =
    &["<|call|>", "<|end|>", "<|return|>", "<|start|>", "<|channel|>"];

/// A message whose header contains a tool name.
#[derive(Debug)]
pub(crate) struct HarmonyMessage {
    name: String,
    scan: Option<JsonScanner>,
    /// Whether the body is not JSON.
    is_text: bool,
    name_reported: bool,
}

impl HarmonyMessage {
    pub(crate) fn new(recipient: &str) -> Self {
        let name = recipient.strip_prefix("functions.").unwrap_or(recipient).to_owned();
        Self { name, scan: None, is_text: false, name_reported: false }
    }

    /// Lexes a body that is not JSON, which ends at the first end token.
    fn lex_text(input: &str, text_end: Option<TextEnd>) -> LexStatus {
        let mut at = 0;
        while let Some(offset) = input[at..].find('<') {
            at += offset;
            for token in END_TOKENS {
                match match_prefix(&input[at..], token) {
                    PrefixMatch::Yes => return LexStatus::Done { used: at },
                    PrefixMatch::Partial if text_end.is_none() => {
                        return LexStatus::NeedMore { held: input.len() - at };
                    }
                    PrefixMatch::Partial | PrefixMatch::No => {}
                }
            }
            at += 1;
        }
        match text_end {
            Some(TextEnd::Stop) => LexStatus::Done { used: input.len() },
            Some(TextEnd::Length | TextEnd::Interrupted | TextEnd::Unknown) | None => {
                LexStatus::NeedMore { held: 0 }
            }
        }
    }

    fn lex_json(&mut self, input: &str, at: &mut usize, update: &mut LexUpdate) -> LexStatus {
        let Some(scan) = &mut self.scan else { return LexStatus::NotACall { used: *at } };
        match scan.scan_value(input, at, update) {
            ValueStatus::NeedMore => LexStatus::NeedMore { held: input.len() - *at },
            ValueStatus::Invalid => LexStatus::NotACall { used: *at },
            ValueStatus::Complete => LexStatus::Done { used: *at },
        }
    }
}

impl Lexer for HarmonyMessage {
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        _tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        if !self.name_reported {
            self.name_reported = true;
            update.name = Some(self.name.clone());
        }
        if self.is_text {
            return Self::lex_text(input, text_end);
        }
        let mut at = 0;
        if self.scan.is_none() {
            at = leading_whitespace_len(input);
            match input.as_bytes().get(at) {
                None => return LexStatus::NeedMore { held: 0 },
                Some(b'{') => self.scan = Some(JsonScanner::new(Some("<|"))),
                Some(_) => {
                    self.is_text = true;
                    return Self::lex_text(input, text_end);
                }
            }
        }
        self.lex_json(input, &mut at, update)
    }

    fn decode<'t>(&self, text: &'t str, _end: Completeness) -> DecodeResult<'t> {
        Ok(vec![RawCall::new(self.name.clone(), RawArguments::Text(text.trim()))])
    }

    fn lacks_only_closers(&mut self, _held: usize) -> bool {
        self.scan.is_some()
    }

    fn depth(&self) -> usize {
        self.scan.as_ref().map_or(0, JsonScanner::depth)
    }
}

//! Lexer for fenced blocks whose entire body is one or more calls.

use super::json_calls::{JsonCalls, match_value_start};
use super::{
    DecodeResult, LexStatus, LexUpdate, Lexer, MAX_CALLS, PrefixMatch, leading_whitespace_len,
    match_prefix, undecided_start,
};
use crate::event::TextEnd;
use crate::parse::Completeness;
use crate::tool::Tools;

/// The marker that opens and closes a block.
pub(crate) const FENCE: &str = "```";

/// Maximum length of the language name after the opening marker.
const MAX_LANGUAGE_CHARS: usize = 20;

/// Whether a fenced block can be a call: the opening line is complete, and a bracket with a key of
/// a call follows.
pub(super) fn match_block_start(text: &str, max_chars: usize) -> PrefixMatch {
    let undecided = undecided_start(text, max_chars);
    let mut header = text[FENCE.len()..].bytes().enumerate();
    let body = loop {
        match header.next() {
            Some((offset, b'\n')) => break &text[FENCE.len() + offset + 1..],
            Some((offset, byte)) if offset < MAX_LANGUAGE_CHARS && is_language_char(byte) => {}
            Some(_) => return PrefixMatch::No,
            None => return undecided,
        }
    };
    let body = &body[leading_whitespace_len(body)..];
    match body.as_bytes().first() {
        Some(b'{' | b'[') => match match_value_start(body) {
            PrefixMatch::Partial => undecided,
            decided => decided,
        },
        Some(_) => PrefixMatch::No,
        None => undecided,
    }
}

fn is_language_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" \t\r_+-".contains(&byte)
}

/// The lexer state after the opening marker.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    /// Whether the first line has been read.
    header_read: bool,
    language_chars: usize,
    base_offset: usize,
    /// The start position and the lexer of each call.
    calls: Vec<(usize, JsonCalls)>,
    /// Whether the last call is still open.
    in_call: bool,
}

impl Fence {
    fn lex_first_line(&mut self, input: &str, at: &mut usize) -> Option<LexStatus> {
        for (offset, byte) in input.bytes().enumerate() {
            match byte {
                b'\n' => {
                    *at = offset + 1;
                    self.header_read = true;
                    return None;
                }
                _ if is_language_char(byte) => self.language_chars += 1,
                _ => return Some(LexStatus::NotACall { used: offset }),
            }
            if self.language_chars > MAX_LANGUAGE_CHARS {
                return Some(LexStatus::NotACall { used: offset });
            }
        }
        Some(self.need_more(input, input.len()))
    }

    fn lex_between(
        &mut self,
        input: &str,
        at: &mut usize,
        text_end: Option<TextEnd>,
    ) -> Option<LexStatus> {
        *at += leading_whitespace_len(&input[*at..]);
        let rest = &input[*at..];
        if rest.is_empty() {
            let is_complete = text_end == Some(TextEnd::Stop) && !self.calls.is_empty();
            return Some(if is_complete {
                LexStatus::Done { used: *at }
            } else {
                self.need_more(input, *at)
            });
        }
        if rest.starts_with(['{', '[']) && self.calls.len() < MAX_CALLS {
            self.calls.push((self.base_offset + *at, JsonCalls::bare()));
            self.in_call = true;
            return None;
        }
        match match_prefix(rest, FENCE) {
            PrefixMatch::Yes if !self.calls.is_empty() => {
                Some(LexStatus::Done { used: *at + FENCE.len() })
            }
            PrefixMatch::Partial if text_end.is_none() && !self.calls.is_empty() => {
                Some(self.need_more(input, *at))
            }
            PrefixMatch::Yes | PrefixMatch::Partial | PrefixMatch::No => {
                Some(LexStatus::NotACall { used: *at })
            }
        }
    }

    fn need_more(&mut self, input: &str, at: usize) -> LexStatus {
        self.base_offset += at;
        LexStatus::NeedMore { held: input.len() - at }
    }
}

impl Lexer for Fence {
    fn lex(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        let mut at = 0;
        if !self.header_read
            && let Some(status) = self.lex_first_line(input, &mut at)
        {
            return status;
        }
        loop {
            if self.in_call
                && let Some((_, call)) = self.calls.last_mut()
            {
                let mut call_update = LexUpdate::default();
                let status = call.lex(&input[at..], text_end, tools, &mut call_update);
                // The block is a call only as a whole, so fragments of the arguments are not
                // reported.
                if call_update.name.is_some() && update.name.is_none() {
                    update.name = call_update.name;
                    update.name_at = at + call_update.name_at;
                    update.in_list = true;
                }
                match status {
                    LexStatus::Done { used } => {
                        at += used;
                        self.in_call = false;
                    }
                    LexStatus::NeedMore { held } => {
                        return self.need_more(input, input.len() - held);
                    }
                    LexStatus::NotACall { used } => return LexStatus::NotACall { used: at + used },
                }
            }
            if let Some(status) = self.lex_between(input, &mut at, text_end) {
                return status;
            }
        }
    }

    fn decode<'t>(&self, text: &'t str, completeness: Completeness) -> DecodeResult<'t> {
        let mut all = Vec::new();
        for (from, call) in &self.calls {
            all.extend(call.decode_values(text.get(*from..).unwrap_or_default(), completeness)?);
        }
        Ok(all)
    }

    fn depth(&self) -> usize {
        self.calls.last().map_or(0, |(_, call)| call.depth())
    }

    fn was_intended(&self) -> bool {
        self.calls.iter().any(|(_, call)| call.was_intended())
    }
}

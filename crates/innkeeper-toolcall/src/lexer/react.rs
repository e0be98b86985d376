//! Lexer for ReAct: `Action: name` and, on the next line, `Action Input: {…}`.

use super::json_scanner::{JsonScanner, ValueStatus};
use super::{
    DecodeResult, LexStatus, LexUpdate, Lexer, MAX_LOOKAHEAD_BYTES, MAX_NAME_BYTES, PrefixMatch,
    RawCall, leading_whitespace_len, match_prefix,
};
use crate::call::RawArguments;
use crate::event::TextEnd;
use crate::parse::Completeness;
use crate::tool::Tools;

const INPUT_LABEL: &str = "Action Input:";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ReactPhase {
    #[default]
    Name,
    Input,
    Body,
}

/// The lexer state after `Action:`.
#[derive(Debug, Default)]
pub(crate) struct React {
    phase: ReactPhase,
    name: String,
    scan: Option<JsonScanner>,
    base_offset: usize,
    body_start: usize,
}

impl React {
    fn lex_name(
        &mut self,
        input: &str,
        at: &mut usize,
        update: &mut LexUpdate,
    ) -> Option<LexStatus> {
        for (offset, letter) in input.char_indices() {
            if letter == '\n' {
                *at = offset;
                self.name = self.name.trim().trim_matches('`').to_owned();
                update.name = Some(self.name.clone());
                update.name_at = offset;
                self.phase = ReactPhase::Input;
                return None;
            }
            if self.name.len() >= MAX_NAME_BYTES {
                return Some(LexStatus::NotACall { used: offset });
            }
            self.name.push(letter);
        }
        Some(self.need_more(input, input.len()))
    }

    fn lex_input_label(&mut self, input: &str, at: &mut usize) -> Option<LexStatus> {
        let skipped = leading_whitespace_len(&input[*at..]);
        let rest = &input[*at + skipped..];
        match match_prefix(rest, INPUT_LABEL) {
            _ if skipped > MAX_LOOKAHEAD_BYTES => return Some(LexStatus::NotACall { used: *at }),
            PrefixMatch::No => return Some(LexStatus::NotACall { used: *at }),
            PrefixMatch::Partial => return Some(self.need_more(input, *at)),
            PrefixMatch::Yes => {}
        }
        let whitespace_len = leading_whitespace_len(&rest[INPUT_LABEL.len()..]);
        if whitespace_len > MAX_LOOKAHEAD_BYTES {
            return Some(LexStatus::NotACall { used: *at });
        }
        let after = skipped + INPUT_LABEL.len() + whitespace_len;
        match input.as_bytes()[*at + after..].first() {
            None => Some(self.need_more(input, *at)),
            Some(b'{') => {
                *at += after;
                self.body_start = self.base_offset + *at;
                self.scan = Some(JsonScanner::new(None));
                self.phase = ReactPhase::Body;
                None
            }
            Some(_) => Some(LexStatus::NotACall { used: *at }),
        }
    }

    fn lex_body(&mut self, input: &str, at: &mut usize, update: &mut LexUpdate) -> LexStatus {
        let Some(scan) = &mut self.scan else { return LexStatus::NotACall { used: *at } };
        match scan.scan_value(input, at, update) {
            ValueStatus::NeedMore => self.need_more(input, *at),
            ValueStatus::Invalid => LexStatus::NotACall { used: *at },
            ValueStatus::Complete => LexStatus::Done { used: *at },
        }
    }

    fn need_more(&mut self, input: &str, at: usize) -> LexStatus {
        self.base_offset += at;
        LexStatus::NeedMore { held: input.len() - at }
    }
}

impl Lexer for React {
    fn lex(
        &mut self,
        input: &str,
        _end: Option<TextEnd>,
        _tools: &Tools,
        update: &mut LexUpdate,
    ) -> LexStatus {
        let mut at = 0;
        loop {
            let status = match self.phase {
                ReactPhase::Name => self.lex_name(input, &mut at, update),
                ReactPhase::Input => self.lex_input_label(input, &mut at),
                ReactPhase::Body => Some(self.lex_body(input, &mut at, update)),
            };
            if let Some(status) = status {
                return status;
            }
        }
    }

    fn decode<'t>(&self, text: &'t str, _end: Completeness) -> DecodeResult<'t> {
        let arguments = text.get(self.body_start..).unwrap_or_default();
        Ok(vec![RawCall::new(self.name.clone(), RawArguments::Text(arguments))])
    }

    fn lacks_only_closers(&mut self, _held: usize) -> bool {
        self.phase == ReactPhase::Body
    }

    fn depth(&self) -> usize {
        self.scan.as_ref().map_or(0, JsonScanner::depth)
    }

    fn was_intended(&self) -> bool {
        self.phase == ReactPhase::Body
    }
}

//! Fences, white space and comments around values.

use super::Completeness;
use super::error::ExpectedSyntax;
use super::parser::{LocatedError, Parser};
use crate::repair::SyntaxSlip;

/// The language names of a fence that contains JSON.
const FENCE_LANGUAGES: &[&str] = &["", "json", "json5", "jsonc"];

/// Three back-ticks.
const FENCE: &str = "```";

impl Parser<'_> {
    /// Removes a fence around the entire text.
    pub(super) fn strip_fence(&mut self) -> Result<(), LocatedError> {
        self.trim();
        if self.rest().starts_with(FENCE) {
            self.record_slip(self.at, SyntaxSlip::Fence);
            self.at += FENCE.len();
            let word_len = self.rest().bytes().take_while(u8::is_ascii_alphanumeric).count();
            let promised = self.rest()[..word_len].to_ascii_lowercase();
            if !FENCE_LANGUAGES.contains(&promised.as_str()) {
                return self.expected_at(self.at, ExpectedSyntax::Value);
            }
            self.at += word_len;
            match self.rest().strip_suffix(FENCE) {
                Some(inside) => self.end = self.at + inside.len(),
                None if self.lenient_end == Some(Completeness::Stopped) => {
                    self.record_slip(self.end, SyntaxSlip::MissingCloser);
                }
                None => return self.expected_at(self.end, ExpectedSyntax::FenceEnd),
            }
            self.trim();
        }
        Ok(())
    }

    fn trim(&mut self) {
        let rest = self.rest();
        let from = rest.trim_start_matches(is_space);
        self.at += rest.len() - from.len();
        self.end = self.at + from.trim_end_matches(is_space).len();
    }

    /// Skips white space and comments. Returns whether they contain a line break.
    pub(super) fn skip_trivia(&mut self) -> Result<bool, LocatedError> {
        let mut saw_newline = false;
        loop {
            match self.peek() {
                Some(space) if is_space(space) => {
                    saw_newline |= space == '\n';
                    self.next();
                }
                Some('/') if !self.is_strict() => saw_newline |= self.skip_comment()?,
                _ => return Ok(saw_newline),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<bool, LocatedError> {
        let at = self.at;
        let (closer, to_line_end) = match self.rest().as_bytes().get(1) {
            Some(b'/') => ("\n", true),
            Some(b'*') => ("*/", false),
            _ => return self.expected_at(at, ExpectedSyntax::Value),
        };
        self.at += 2;
        let offset = self.rest().find(closer);
        let length = match offset {
            Some(length) => length + closer.len(),
            None if to_line_end => self.rest().len(),
            None => return self.expected_at(self.end, ExpectedSyntax::CommentEnd),
        };
        let saw_newline = self.rest()[..length].contains('\n');
        self.steps += length;
        self.at += length;
        self.record_slip(at, SyntaxSlip::Comment);
        Ok(saw_newline)
    }
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

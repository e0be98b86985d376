//! What stands around values and means nothing: fences, white space, comments.

use super::End;
use super::error::Expected;
use super::machine::{Fault, Machine};
use crate::repair::Slip;

/// The words after an opening fence that promise JSON.
const FENCED: &[&str] = &["", "json", "json5", "jsonc"];

/// Three back-ticks.
const FENCE: &str = "```";

impl Machine<'_> {
    /// Takes away what stands around the whole.
    pub(super) fn unwrap(&mut self) -> Result<(), Fault> {
        self.trim();
        if self.rest().starts_with(FENCE) {
            self.slip(self.at, Slip::Fence);
            self.at += FENCE.len();
            let word = self.rest().bytes().take_while(u8::is_ascii_alphanumeric).count();
            let promised = self.rest()[..word].to_ascii_lowercase();
            if !FENCED.contains(&promised.as_str()) {
                return self.expected_at(self.at, Expected::Value);
            }
            self.at += word;
            match self.rest().strip_suffix(FENCE) {
                Some(inside) => self.end = self.at + inside.len(),
                None if self.lenient == Some(End::Stopped) => {
                    self.slip(self.end, Slip::MissingCloser);
                }
                None => return self.expected_at(self.end, Expected::FenceEnd),
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

    /// Skips what means nothing, and tells whether a line ended in it.
    pub(super) fn skip(&mut self) -> Result<bool, Fault> {
        let mut broken = false;
        loop {
            match self.peek() {
                Some(space) if is_space(space) => {
                    broken |= space == '\n';
                    self.next();
                }
                Some('/') if !self.is_strict() => broken |= self.comment()?,
                _ => return Ok(broken),
            }
        }
    }

    fn comment(&mut self) -> Result<bool, Fault> {
        let at = self.at;
        let (closer, to_line_end) = match self.rest().as_bytes().get(1) {
            Some(b'/') => ("\n", true),
            Some(b'*') => ("*/", false),
            _ => return self.expected_at(at, Expected::Value),
        };
        self.at += 2;
        let found = self.rest().find(closer);
        let length = match found {
            Some(length) => length + closer.len(),
            None if to_line_end => self.rest().len(),
            None => return self.expected_at(self.end, Expected::CommentEnd),
        };
        let broken = self.rest()[..length].contains('\n');
        self.steps += length;
        self.at += length;
        self.slip(at, Slip::Comment);
        Ok(broken)
    }
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

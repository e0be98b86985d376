//! JSON that is no call: what looks like one inside of it is data.

use super::scan::{Scan, Token};

/// How much of it is passed over in bytes; an object that is never closed ends there.
const LENGTH: usize = 64 << 10;

/// The rest of a value, up to its last bracket.
#[derive(Debug)]
pub(crate) struct Data {
    scan: Scan,
    read: usize,
    line_ended: bool,
}

impl Data {
    pub(super) fn new(scan: Scan) -> Self {
        Self { scan, read: 0, line_ended: false }
    }

    /// How much of the input belongs to the value, and whether it ends there. Text that is no JSON
    /// any more ends it too, and so does an empty line, which no string of JSON has.
    pub(crate) fn read(&mut self, input: &str) -> (usize, bool) {
        let room = LENGTH - self.read;
        let blank = self.blank_line(input).unwrap_or(usize::MAX);
        let mut at = 0;
        let ended = loop {
            match self.scan.next(input, &mut at) {
                Token::More => break at >= room.min(blank),
                Token::Close { depth: 0 } | Token::Odd => break true,
                Token::Close { .. }
                | Token::Open { .. }
                | Token::Key { .. }
                | Token::Text { .. }
                | Token::Scalar { .. }
                | Token::Marker => {}
            }
        };
        let mut read = at.min(blank).min(room);
        while !input.is_char_boundary(read) {
            read -= 1;
        }
        self.read += read;
        self.line_ended = input[..read].ends_with('\n');
        (read, ended)
    }

    /// Where the second of two line ends is.
    fn blank_line(&self, input: &str) -> Option<usize> {
        if self.line_ended && input.starts_with('\n') {
            return Some(0);
        }
        input.find("\n\n").map(|at| at + 1)
    }
}

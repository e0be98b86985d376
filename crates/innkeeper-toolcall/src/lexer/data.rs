//! JSON that is no call: what looks like one inside of it is data.

use super::scan::{Scan, Token};

/// How much of it is passed over in bytes; an object that is never closed ends there.
const LENGTH: usize = 1 << 20;

/// The rest of a value, up to its last bracket.
#[derive(Debug)]
pub(crate) struct Data {
    scan: Scan,
    read: usize,
}

impl Data {
    pub(super) fn new(mut scan: Scan) -> Self {
        scan.strict_to(0);
        scan.end_at_blank_lines();
        Self { scan, read: 0 }
    }

    /// The value of which this much has been read, if it is one and has not ended.
    pub(crate) fn behind(text: &str) -> Option<Self> {
        let mut data = Self::new(Scan::new(None));
        let (read, ended) = data.read(text);
        (read == text.len() && !ended).then_some(data)
    }

    /// How much of the input belongs to the value, and whether it ends there. Text that is no JSON
    /// any more ends it too.
    pub(crate) fn read(&mut self, input: &str) -> (usize, bool) {
        let mut at = 0;
        loop {
            match self.scan.next(input, &mut at) {
                Token::More => {
                    self.read += at;
                    return (at, self.read >= LENGTH);
                }
                Token::Close { depth: 0 } | Token::Odd => return (at, true),
                Token::Close { .. }
                | Token::Open { .. }
                | Token::Key { .. }
                | Token::Text { .. }
                | Token::Scalar { .. }
                | Token::Marker => {}
            }
        }
    }

    /// How much may be read at once.
    pub(crate) fn room(&self) -> usize {
        (LENGTH - self.read).min(4096)
    }
}

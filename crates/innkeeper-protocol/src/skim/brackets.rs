//! Search for brackets outside of strings, 64 bytes at a time.
//!
//! In structured JSON, a search from one bracket or quote to the next stops every few bytes. This
//! module converts a block into bit masks instead, and most blocks need only a bit count. The
//! compiler can turn the comparisons into vector instructions. In a long string, a search for the
//! next quote passes over many blocks at once.

use memchr::memchr;

const BLOCK_BYTES: usize = 64;

/// Scans bytes that start outside of a string.
pub(crate) struct BracketScanner<'a> {
    rest: &'a [u8],
    /// Whether the last block was inside a string, from its first byte to its last.
    in_long_string: bool,
    /// Whether the next block starts inside a string.
    in_string: bool,
    /// Whether the first byte of the next block is escaped.
    escaped: bool,
}

/// The brackets of one block. The lowest bit is the first byte.
#[derive(Clone, Copy)]
pub(crate) struct BracketMask {
    /// The number of bytes from the start of the block to the end of the text.
    bytes_left: usize,
    pub(crate) opens: u64,
    pub(crate) closes: u64,
}

impl<'a> BracketScanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, in_long_string: false, in_string: false, escaped: false }
    }

    fn scan_block(&mut self, bytes: &[u8; BLOCK_BYTES], bytes_left: usize) -> BracketMask {
        let escaped = self.escaped_bytes(mask(bytes, |byte| byte == b'\\'));
        let quotes = mask(bytes, |byte| byte == b'"') & !escaped;
        let carry = if self.in_string { u64::MAX } else { 0 };
        let strings = parity(quotes) ^ carry;
        self.in_string = strings >> (BLOCK_BYTES - 1) == 1;
        self.in_long_string = strings == u64::MAX;
        BracketMask {
            bytes_left,
            opens: mask(bytes, |byte| byte | 0x20 == b'{') & !strings,
            closes: mask(bytes, |byte| byte | 0x20 == b'}') & !strings,
        }
    }

    /// Passes over the blocks of a string before the block with the next quote.
    fn skip_string_blocks(&mut self) {
        let quote = memchr(b'"', self.rest).unwrap_or(self.rest.len());
        let (skipped, rest) = self.rest.split_at(quote - quote % BLOCK_BYTES);
        if !skipped.is_empty() {
            let backslashes = skipped.iter().rev().take_while(|byte| **byte == b'\\').count();
            // The first backslash can itself be escaped.
            let is_escaped = self.escaped && backslashes == skipped.len();
            self.escaped = (backslashes % 2 == 1) != is_escaped;
            self.rest = rest;
        }
    }

    fn escaped_bytes(&mut self, mut backslashes: u64) -> u64 {
        let mut escaped = u64::from(self.escaped);
        backslashes &= !escaped;
        self.escaped = false;
        while backslashes != 0 {
            let backslash = backslashes & backslashes.wrapping_neg();
            self.escaped = backslash >> (BLOCK_BYTES - 1) == 1;
            escaped |= backslash << 1;
            backslashes &= !(backslash | backslash << 1);
        }
        escaped
    }
}

impl Iterator for BracketScanner<'_> {
    type Item = BracketMask;

    fn next(&mut self) -> Option<BracketMask> {
        if self.in_long_string {
            self.skip_string_blocks();
        }
        let bytes_left = self.rest.len();
        if let Some((block, rest)) = self.rest.split_first_chunk() {
            self.rest = rest;
            return Some(self.scan_block(block, bytes_left));
        }
        if self.rest.is_empty() {
            return None;
        }
        let mut block = [b' '; BLOCK_BYTES];
        block[..self.rest.len()].copy_from_slice(self.rest);
        self.rest = &[];
        Some(self.scan_block(&block, bytes_left))
    }
}

impl BracketMask {
    /// Iterates over the brackets in their order: offset in the block, and whether the bracket
    /// opens.
    pub(crate) fn iter(self) -> impl Iterator<Item = (usize, bool)> {
        let mut remaining = self.opens | self.closes;
        std::iter::from_fn(move || {
            let offset = remaining.trailing_zeros();
            let bracket = remaining & remaining.wrapping_neg();
            remaining &= !bracket;
            (bracket != 0).then_some((offset as usize, self.opens & bracket != 0))
        })
    }
}

/// Returns the end (exclusive) of the container that starts at the first byte.
pub(crate) fn container_end(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    for block in BracketScanner::new(bytes) {
        let closes = block.closes.count_ones() as usize;
        if depth > closes {
            depth = depth + block.opens.count_ones() as usize - closes;
            continue;
        }
        for (offset, opens) in block.iter() {
            if opens {
                depth += 1;
            } else {
                depth = depth.checked_sub(1)?;
            }
            if depth == 0 {
                return Some(bytes.len() - block.bytes_left + offset + 1);
            }
        }
    }
    None
}

/// Whether at most `limit` containers are nested.
pub(crate) fn depth_within(bytes: &[u8], limit: usize) -> bool {
    let mut depth = 0_usize;
    for block in BracketScanner::new(bytes) {
        let opens = block.opens.count_ones() as usize;
        if depth + opens <= limit {
            depth = (depth + opens).saturating_sub(block.closes.count_ones() as usize);
            continue;
        }
        for (_, opens) in block.iter() {
            depth = if opens { depth + 1 } else { depth.saturating_sub(1) };
            if depth > limit {
                return false;
            }
        }
    }
    true
}

/// Returns a mask with one bit per byte that satisfies `predicate`.
fn mask(bytes: &[u8; BLOCK_BYTES], predicate: impl Fn(u8) -> bool) -> u64 {
    let hits = bytes.map(|byte| u8::from(predicate(byte)));
    let (words, _) = hits.as_chunks::<8>();
    words.iter().rev().fold(0, |mask, word| {
        // Collects the lowest bits of eight bytes in the highest byte.
        let gathered = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask << 8 | gathered
    })
}

/// Computes for each bit whether the number of set bits up to and including that bit is odd.
fn parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

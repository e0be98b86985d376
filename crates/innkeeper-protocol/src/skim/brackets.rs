//! Brackets outside of strings, found 64 bytes at a time.
//!
//! A search from one bracket or quote to the next stops every few bytes in structured JSON. Here a
//! block becomes bit masks, and most blocks are settled by counting bits. The comparisons are
//! written so that the compiler makes vector instructions of them.

const BLOCK: usize = 64;

/// Walks bytes that start outside of a string.
pub(crate) struct Brackets<'a> {
    rest: &'a [u8],
    /// The next block starts inside a string.
    in_string: bool,
    /// The next block's first byte is escaped.
    escaped: bool,
}

/// The brackets of one block; the lowest bit is its first byte.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) opens: u64,
    pub(crate) closes: u64,
}

impl<'a> Brackets<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, in_string: false, escaped: false }
    }

    fn block(&mut self, bytes: &[u8; BLOCK]) -> Block {
        let escaped = self.escaped_bytes(mask(bytes, |byte| byte == b'\\'));
        let quotes = mask(bytes, |byte| byte == b'"') & !escaped;
        let carried = if self.in_string { u64::MAX } else { 0 };
        let strings = parity(quotes) ^ carried;
        self.in_string = strings >> (BLOCK - 1) == 1;
        Block {
            opens: mask(bytes, |byte| byte | 0x20 == b'{') & !strings,
            closes: mask(bytes, |byte| byte | 0x20 == b'}') & !strings,
        }
    }

    fn escaped_bytes(&mut self, mut backslashes: u64) -> u64 {
        let mut escaped = u64::from(self.escaped);
        backslashes &= !escaped;
        self.escaped = false;
        while backslashes != 0 {
            let backslash = backslashes & backslashes.wrapping_neg();
            self.escaped = backslash >> (BLOCK - 1) == 1;
            escaped |= backslash << 1;
            backslashes &= !(backslash | backslash << 1);
        }
        escaped
    }
}

impl Iterator for Brackets<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        if let Some((block, rest)) = self.rest.split_first_chunk() {
            self.rest = rest;
            return Some(self.block(block));
        }
        if self.rest.is_empty() {
            return None;
        }
        let mut block = [b' '; BLOCK];
        block[..self.rest.len()].copy_from_slice(self.rest);
        self.rest = &[];
        Some(self.block(&block))
    }
}

impl Block {
    /// The brackets in their order: offset in the block, and whether it opens.
    pub(crate) fn each(self) -> impl Iterator<Item = (usize, bool)> {
        let mut left = self.opens | self.closes;
        std::iter::from_fn(move || {
            let offset = left.trailing_zeros();
            let bracket = left & left.wrapping_neg();
            left &= !bracket;
            (bracket != 0).then_some((offset as usize, self.opens & bracket != 0))
        })
    }
}

/// Where the container that starts at the first byte ends, one past its last byte.
pub(crate) fn container_end(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, block) in Brackets::new(bytes).enumerate() {
        let closes = block.closes.count_ones() as usize;
        if depth > closes {
            depth = depth + block.opens.count_ones() as usize - closes;
            continue;
        }
        for (offset, opens) in block.each() {
            if opens {
                depth += 1;
            } else {
                depth = depth.checked_sub(1)?;
            }
            if depth == 0 {
                return Some(index * BLOCK + offset + 1);
            }
        }
    }
    None
}

/// Whether no more than `limit` containers lie in each other.
pub(crate) fn depth_within(bytes: &[u8], limit: usize) -> bool {
    let mut depth = 0_usize;
    for block in Brackets::new(bytes) {
        let opens = block.opens.count_ones() as usize;
        if depth + opens <= limit {
            depth = (depth + opens).saturating_sub(block.closes.count_ones() as usize);
            continue;
        }
        for (_, opens) in block.each() {
            depth = if opens { depth + 1 } else { depth.saturating_sub(1) };
            if depth > limit {
                return false;
            }
        }
    }
    true
}

/// One bit per byte that is `wanted`.
fn mask(bytes: &[u8; BLOCK], wanted: impl Fn(u8) -> bool) -> u64 {
    let hits = bytes.map(|byte| u8::from(wanted(byte)));
    let (words, _) = hits.as_chunks::<8>();
    words.iter().rev().fold(0, |mask, word| {
        // Gathers the lowest bits of eight bytes into the highest byte.
        let gathered = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask << 8 | gathered
    })
}

/// For each bit, whether the number of set bits up to and including it is odd.
fn parity(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

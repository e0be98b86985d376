//! Search for markers by their first two bytes, followed by a comparison.
//!
//! The search compares blocks of bytes and gives a bit per position, so that a stop does not start
//! the search again. A prefilter of a search library would stop at the same bytes, and an automaton
//! over all markers reads one byte at a time.

use std::cmp::Reverse;
use std::ops::Range;

use crate::format::{Marker, MarkerKind};
use crate::lexer::{PrefixMatch, match_prefix, may_follow};

/// Maximum number of first bytes whose markers have different second bytes or no second byte.
const MAX_SINGLES: usize = 3;

/// Maximum number of first bytes whose markers all have the same second byte.
const MAX_PAIRS: usize = 2;

/// Maximum number of groups whose markers are asked about for a single byte at the end of a chunk. With
/// more of them, as for `<`, it costs less to wait for the next byte.
const MAX_ASKED_GROUPS: u32 = 4;

/// A byte that never occurs in UTF-8, for unused slots.
const UNUSED_BYTE: u8 = 0xff;

/// Number of bytes of a block whose candidates are located together: the narrowest vector register.
const BLOCK_BYTES: usize = 16;

/// Number of blocks that are skipped together if they have no candidate.
const WIDE_BLOCKS: usize = 4;

/// The same byte in each place of a block, so that a comparison needs no preparation.
type Block = [u8; BLOCK_BYTES];

#[derive(Debug, Clone)]
pub(super) struct Markers {
    /// All markers, grouped by their first two bytes, longest first.
    all: Vec<Marker>,
    /// First bytes that are candidates without their second byte.
    singles: [Block; MAX_SINGLES],
    /// First and second bytes that together are candidates: an `A` alone occurs in every paragraph.
    pairs: [[Block; 2]; MAX_PAIRS],
    /// The ranges in `all` of the markers with the same first two bytes.
    groups: Vec<Range<usize>>,
    /// A bit per group that a first byte belongs to.
    groups_by_first: [u32; 256],
    /// A bit per group that a second byte belongs to.
    groups_by_second: [u32; 256],
}

/// The result of a marker comparison at a position.
#[derive(Debug, Clone, Copy)]
pub(super) enum MarkerMatch<'m> {
    /// This marker, and no longer marker.
    Marker(&'m Marker),
    /// The text ends before a decision.
    Partial,
    /// No marker.
    Nothing,
}

impl Markers {
    pub(super) fn new(mut all: Vec<Marker>) -> Self {
        all.retain(|marker| !marker.text.is_empty());
        all.shrink_to_fit();
        let start = |marker: &Marker| {
            let bytes = marker.text.as_bytes();
            (bytes[0], bytes.get(1).copied())
        };
        // The longest marker comes first, because the first match is used.
        all.sort_by_key(|marker| {
            let (first, second) = start(marker);
            (first, second.is_none(), second, Reverse(marker.text.len()))
        });
        let mut groups: Vec<Range<usize>> = Vec::new();
        let [mut groups_by_first, mut groups_by_second] = [[0; 256]; 2];
        let mut singles = Vec::new();
        let mut pairs = Vec::new();
        for same_first in all.chunk_by(|current, next| start(current).0 == start(next).0) {
            let single = singles.len();
            for group in same_first.chunk_by(|current, next| start(current) == start(next)) {
                let from = groups.last().map_or(0, |range| range.end);
                let bit = 1 << groups.len();
                groups.push(from..from + group.len());
                let (first, second) = start(&group[0]);
                groups_by_first[usize::from(first)] |= bit;
                let mut add = |second: u8| groups_by_second[usize::from(second)] |= bit;
                match (second, group[0].kind) {
                    (Some(second), _) => add(second),
                    (None, MarkerKind::Call(lexer_kind)) => {
                        (0..=u8::MAX).filter(|next| may_follow(lexer_kind, *next)).for_each(add);
                    }
                    (None, _) => (0..=u8::MAX).for_each(add),
                }
                match second {
                    Some(second) if group.len() == same_first.len() => pairs.push([first, second]),
                    _ => singles.push(first),
                }
            }
            singles.truncate(single + 1);
        }
        // Pairs over the limit become candidates by their first byte alone.
        while pairs.len() > MAX_PAIRS {
            singles.extend(pairs.pop().map(|[first, _]| first));
        }
        debug_assert!(singles.len() <= MAX_SINGLES, "too many first bytes of markers: {singles:?}");
        singles.resize(MAX_SINGLES, UNUSED_BYTE);
        pairs.resize(MAX_PAIRS, [UNUSED_BYTE; 2]);
        Self {
            all,
            singles: std::array::from_fn(|at| [singles[at]; BLOCK_BYTES]),
            pairs: std::array::from_fn(|at| pairs[at].map(|byte| [byte; BLOCK_BYTES])),
            groups,
            groups_by_first,
            groups_by_second,
        }
    }

    /// Returns the markers of the accepted kinds and the end markers of a section.
    pub(super) fn subset(
        &self,
        end_texts: &[&'static str],
        keep: impl Fn(MarkerKind) -> bool,
    ) -> Self {
        let retained =
            self.all.iter().filter(|marker| keep(marker.kind) && !end_texts.contains(&marker.text));
        let end_markers = end_texts.iter().map(|text| Marker {
            text,
            kind: MarkerKind::StrayReasoningEnd,
            in_prose: false,
        });
        Self::new(retained.copied().chain(end_markers).collect())
    }

    /// Returns a bit per byte of at most `BLOCK_BYTES` bytes. The last byte has no successor yet and
    /// may start a marker that continues in the next chunk.
    #[inline]
    fn last_bits(&self, bytes: &[u8]) -> u64 {
        let Some(last) = bytes.last() else { return 0 };
        // A number stays in registers.
        let block = match bytes.first_chunk() {
            Some(block) => u128::from_le_bytes(*block),
            None => bytes.iter().rev().fold(0, |block, byte| block << 8 | u128::from(*byte)),
        };
        let (block, next) = (block.to_le_bytes(), (block >> 8).to_le_bytes());
        let at_last = self.pairs.iter().any(|[first, _]| first[0] == *last);
        let bits = match self.flags(&block, &next) {
            0 => 0,
            flags => flag_bits(flags),
        };
        bits | u64::from(at_last) << (bytes.len() - 1)
    }

    /// Returns 8 bits per byte of a block, which are not 0 where a marker may start. `next` is the
    /// block one byte later. The code has no branches, so that the compiler can vectorize it.
    #[inline]
    fn flags(&self, block: &Block, next: &Block) -> u128 {
        u128::from_le_bytes(std::array::from_fn(|lane| {
            let mut hit = false;
            for single in &self.singles {
                hit |= block[lane] == single[lane];
            }
            for [first, second] in &self.pairs {
                hit |= (block[lane] == first[lane]) & (next[lane] == second[lane]);
            }
            if hit { u8::MAX } else { 0 }
        }))
    }

    /// Returns a bit per group that the first two bytes may belong to.
    #[inline]
    fn groups_of(&self, bytes: &[u8]) -> u32 {
        let groups = |by_byte: &[u32; 256], byte: Option<&u8>| {
            byte.map_or(u32::MAX, |byte| by_byte[usize::from(*byte)])
        };
        groups(&self.groups_by_first, bytes.first()) & groups(&self.groups_by_second, bytes.get(1))
    }

    /// Returns the marker at the start of `text`, among the markers that are significant at this
    /// position.
    pub(super) fn match_start(
        &self,
        text: &str,
        ended: bool,
        matters: impl Fn(&Marker) -> bool,
    ) -> MarkerMatch<'_> {
        let mut groups = self.groups_of(text.as_bytes());
        if text.len() == 1 && !ended && groups.count_ones() > MAX_ASKED_GROUPS {
            return MarkerMatch::Partial;
        }
        while let Some(range) = self.groups.get(groups.trailing_zeros() as usize) {
            groups &= groups - 1;
            for marker in &self.all[range.clone()] {
                match match_prefix(text, marker.text) {
                    PrefixMatch::Yes if matters(marker) => return MarkerMatch::Marker(marker),
                    PrefixMatch::Partial if !ended && matters(marker) => {
                        return MarkerMatch::Partial;
                    }
                    PrefixMatch::Yes | PrefixMatch::Partial | PrefixMatch::No => {}
                }
            }
        }
        MarkerMatch::Nothing
    }

    /// Iterates over all markers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Marker> {
        self.all.iter()
    }
}

/// Returns a bit per flag of a block.
#[inline]
fn flag_bits(flags: u128) -> u64 {
    const LOWEST_BITS: u64 = u64::MAX / 0xff;
    // Moves the lowest bit of each byte to the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let gather = |half: u64| (half & LOWEST_BITS).wrapping_mul(GATHER) >> 56;
    gather(flags as u64) | gather((flags >> 64) as u64) << 8
}

/// The positions in a text at which a marker may start, as far as two bytes show.
#[derive(Debug)]
pub(super) struct Candidates {
    /// A bit per byte from `start`, which is 1 for a candidate that was not returned.
    bits: u64,
    start: usize,
    /// The end of the bytes that `bits` describes.
    next: usize,
}

impl Candidates {
    /// Creates the positions at or after `at`.
    pub(super) fn from(at: usize) -> Self {
        Self { bits: 0, start: 0, next: at }
    }

    /// Returns the next position. `text` is the same text in every call.
    #[inline]
    pub(super) fn next(&mut self, markers: &Markers, text: &str) -> Option<usize> {
        let bytes = text.as_bytes();
        loop {
            while self.bits != 0 {
                let at = self.start + self.bits.trailing_zeros() as usize;
                self.bits &= self.bits - 1;
                if markers.groups_of(&bytes[at..]) != 0 {
                    return Some(at);
                }
            }
            if self.next >= bytes.len() {
                return None;
            }
            self.locate(markers, bytes);
        }
    }

    /// Locates the next candidates, without blocks that have none.
    #[inline(never)]
    fn locate(&mut self, markers: &Markers, bytes: &[u8]) {
        let mut rest = &bytes[self.next..];
        // The last byte of a block needs its successor.
        while rest.len() > WIDE_BLOCKS * BLOCK_BYTES {
            let (blocks, _) = rest.as_chunks();
            let (shifted, _) = rest[1..].as_chunks();
            let flags = |at: usize| markers.flags(&blocks[at], &shifted[at]);
            // Numbers, because the compiler compares arrays of numbers byte by byte.
            let [first, second, third, fourth] = [flags(0), flags(1), flags(2), flags(3)];
            if first | second | third | fourth != 0 {
                let bits = flag_bits(first)
                    | flag_bits(second) << BLOCK_BYTES
                    | flag_bits(third) << (2 * BLOCK_BYTES)
                    | flag_bits(fourth) << (3 * BLOCK_BYTES);
                return self.set_bits(bits, bytes.len() - rest.len(), WIDE_BLOCKS * BLOCK_BYTES);
            }
            rest = &rest[WIDE_BLOCKS * BLOCK_BYTES..];
        }
        while let (Some(block), Some(next)) = (rest.first_chunk(), rest[1..].first_chunk()) {
            let bits = flag_bits(markers.flags(block, next));
            if bits != 0 {
                return self.set_bits(bits, bytes.len() - rest.len(), BLOCK_BYTES);
            }
            rest = &rest[BLOCK_BYTES..];
        }
        self.set_bits(markers.last_bits(rest), bytes.len() - rest.len(), rest.len());
    }

    /// Sets the bits of `length` bytes from `start`.
    fn set_bits(&mut self, bits: u64, start: usize, length: usize) {
        *self = Self { bits, start, next: start + length };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    #[test]
    fn a_marker_is_found_at_every_offset_and_at_every_split() {
        for name in Format::names() {
            let markers = Markers::new(Format::from_name(name).unwrap().markers());
            for marker in markers.iter() {
                let wide = WIDE_BLOCKS * BLOCK_BYTES;
                for before in (0..4)
                    .chain(BLOCK_BYTES - 2..=BLOCK_BYTES + 2)
                    .chain(wide - 2..=wide + 2)
                    .chain([2 * wide + 3 * BLOCK_BYTES - 1])
                {
                    let text = format!("{}{}", &"An x".repeat(wide)[..before], marker.text);
                    let cuts = before + 1..=text.len();
                    for end in cuts.filter(|end| text.is_char_boundary(*end)) {
                        let candidate = Candidates::from(0).next(&markers, &text[..end]);
                        assert_eq!(candidate, Some(before), "{name}: {:?} to {end}", marker.text);
                    }
                }
            }
        }
    }

    #[test]
    fn a_first_letter_with_a_second_that_no_marker_has_is_passed_over() {
        let markers = Markers::new(Format::Detect.markers());
        assert_eq!(Candidates::from(0).next(&markers, "An A, `x` and an Ant"), None);
        assert_eq!(Candidates::from(0).next(&markers, "An A"), Some(3));
        assert_eq!(Candidates::from(1).next(&markers, "An Action"), Some(3));
    }
}

//! Search for markers by first characters, followed by a comparison.

use std::ops::Range;

use crate::format::{Marker, MarkerKind};
use crate::lexer::{PrefixMatch, match_prefix};

/// Maximum number of first bytes whose markers have different second bytes or no second byte.
const MAX_SINGLES: usize = 3;

/// Maximum number of first bytes whose markers all have the same second byte.
const MAX_PAIRS: usize = 2;

/// A byte that never occurs in UTF-8, for unused slots.
const UNUSED_BYTE: u8 = 0xff;

/// Number of bytes per block; a multiple of the width of every vector register.
const BLOCK_BYTES: usize = 64;

/// The markers of one parser mode.
#[derive(Debug, Clone)]
pub(super) struct Markers {
    /// All markers, grouped by their first byte, longest first.
    all: Vec<Marker>,
    /// First bytes that are candidates without their second byte.
    singles: [u8; MAX_SINGLES],
    /// First and second bytes that together are candidates: an `A` alone occurs in every paragraph.
    pairs: [[u8; 2]; MAX_PAIRS],
    /// The range in `all` of the markers with each first byte.
    groups: Vec<(u8, Range<usize>)>,
}

/// The result of a marker comparison at a position.
#[derive(Debug, Clone, Copy)]
pub(super) enum MarkerMatch {
    /// This marker, and no longer marker.
    Marker(Marker),
    /// The text ends before a decision.
    Partial,
    /// No marker.
    Nothing,
}

impl Markers {
    pub(super) fn new(mut all: Vec<Marker>) -> Self {
        let first = |marker: &Marker| marker.text.bytes().next();
        // The longest marker comes first, because the first match is used.
        all.sort_by_key(|marker| (first(marker), std::cmp::Reverse(marker.text.len())));
        let mut groups: Vec<(u8, Range<usize>)> = Vec::new();
        let mut at = 0;
        for group in all.chunk_by(|current, next| first(current) == first(next)) {
            let range = at..at + group.len();
            at = range.end;
            groups.extend(group.first().and_then(first).map(|letter| (letter, range)));
        }
        let (mut singles, mut pairs) = (Vec::new(), Vec::new());
        for (letter, range) in &groups {
            let mut seconds = all[range.clone()].iter().map(|marker| marker.text.as_bytes().get(1));
            let second = seconds.next().flatten();
            match second {
                Some(second) if seconds.all(|other| other == Some(second)) => {
                    pairs.push([*letter, *second]);
                }
                Some(_) | None => singles.push(*letter),
            }
        }
        // Pairs over the limit become candidates by their first byte alone.
        while pairs.len() > MAX_PAIRS {
            singles.extend(pairs.pop().map(|[letter, _]| letter));
        }
        debug_assert!(singles.len() <= MAX_SINGLES, "too many first bytes of markers: {groups:?}");
        singles.resize(MAX_SINGLES, UNUSED_BYTE);
        pairs.resize(MAX_PAIRS, [UNUSED_BYTE; 2]);
        let singles = std::array::from_fn(|at| singles[at]);
        let pairs = std::array::from_fn(|at| pairs[at]);
        Self { all, singles, pairs, groups }
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

    /// Returns the position of the first candidate at or after `from`.
    pub(super) fn find_candidate(&self, text: &str, from: usize) -> Option<usize> {
        let bytes = text.as_bytes().get(from..)?;
        let shifted = bytes.get(1..)?;
        let blocks = bytes.chunks_exact(BLOCK_BYTES).zip(shifted.chunks_exact(BLOCK_BYTES));
        let clean =
            blocks.take_while(|(block, shifted)| !self.may_start_in_block(block, shifted)).count();
        let skipped = clean * BLOCK_BYTES;
        let mut shifted = shifted[skipped..].iter();
        let mut rest = bytes[skipped..].iter();
        // The last byte has no successor yet and may start a marker that continues in the next
        // chunk.
        let hit = rest.position(|byte| self.may_start_with(*byte, shifted.next().copied()));
        hit.map(|offset| from + skipped + offset)
    }

    /// Whether a marker may start in a block. `shifted` is the block one byte later. The loop has
    /// no branches, so that the compiler can vectorize it.
    fn may_start_in_block(&self, block: &[u8], shifted: &[u8]) -> bool {
        let mut hit = false;
        for (byte, next) in block.iter().zip(shifted) {
            for single in self.singles {
                hit |= *byte == single;
            }
            for [first, second] in self.pairs {
                hit |= (*byte == first) & (*next == second);
            }
        }
        hit
    }

    fn may_start_with(&self, byte: u8, next: Option<u8>) -> bool {
        self.singles.contains(&byte)
            || self
                .pairs
                .iter()
                .any(|[first, second]| *first == byte && next.is_none_or(|next| next == *second))
    }

    /// Returns the markers with the first byte of `text`, or all markers for an empty text.
    fn candidates(&self, text: &str) -> &[Marker] {
        let Some(letter) = text.bytes().next() else { return &self.all };
        let group = self.groups.iter().find(|(first, _)| *first == letter);
        group.map_or(&[], |(_, range)| &self.all[range.clone()])
    }

    /// Returns the marker at the start of `text`, among the markers that are significant at this
    /// position.
    pub(super) fn match_start(
        &self,
        text: &str,
        ended: bool,
        matters: impl Fn(Marker) -> bool,
    ) -> MarkerMatch {
        for marker in self.candidates(text) {
            match match_prefix(text, marker.text) {
                PrefixMatch::Yes if matters(*marker) => return MarkerMatch::Marker(*marker),
                PrefixMatch::Partial if !ended && matters(*marker) => return MarkerMatch::Partial,
                PrefixMatch::Yes | PrefixMatch::Partial | PrefixMatch::No => {}
            }
        }
        MarkerMatch::Nothing
    }

    /// Iterates over all markers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Marker> {
        self.all.iter()
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
                for before in
                    (0..4).chain(BLOCK_BYTES - 2..=BLOCK_BYTES + 2).chain([3 * BLOCK_BYTES - 1])
                {
                    let text =
                        format!("{}{}", "An x".repeat(BLOCK_BYTES).split_at(before).0, marker.text);
                    let cuts = before + 1..=text.len();
                    for end in cuts.filter(|end| text.is_char_boundary(*end)) {
                        let candidate = markers.find_candidate(&text[..end], 0);
                        assert_eq!(candidate, Some(before), "{name}: {:?} to {end}", marker.text);
                    }
                }
            }
        }
    }

    #[test]
    fn a_first_letter_with_a_second_that_no_marker_has_is_passed_over() {
        let markers = Markers::new(Format::Detect.markers());
        assert_eq!(markers.find_candidate("An A, `x` and an Ant", 0), None);
        assert_eq!(markers.find_candidate("An A", 0), Some(3));
        assert_eq!(markers.find_candidate("An Action", 1), Some(3));
    }
}

//! Finds markers in text: a search for their first letters, then a comparison.

use std::ops::Range;

use crate::format::{Mark, Marker};
use crate::lexer::{Begins, begins};

/// How many first letters may have markers that go on in different ways, or end.
const SINGLES: usize = 3;

/// How many first letters may have one second letter in all their markers.
const PAIRS: usize = 2;

/// Stands in no UTF-8, and so in the places that are not needed.
const NONE: u8 = 0xff;

/// How many bytes are looked at together; a multiple of every vector register's width.
const BLOCK: usize = 64;

/// The markers to look for in one state.
#[derive(Debug, Clone)]
pub(super) struct Markers {
    /// Those with one first letter beside one another, the longest first.
    all: Vec<Marker>,
    /// First letters that are looked for alone.
    singles: [u8; SINGLES],
    /// First letters that are looked for with the second: an `A` alone stands in every paragraph.
    pairs: [[u8; 2]; PAIRS],
    /// Where in `all` the markers with each first letter are.
    groups: Vec<(u8, Range<usize>)>,
}

/// What stands at a place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found {
    /// This marker, and no longer one.
    Marker(Marker),
    /// The text ends before that is clear.
    Perhaps,
    /// No marker.
    Nothing,
}

impl Markers {
    pub(super) fn new(mut all: Vec<Marker>) -> Self {
        let first = |marker: &Marker| marker.text.bytes().next();
        // The longest first: the first that fits is the one.
        all.sort_by_key(|marker| (first(marker), std::cmp::Reverse(marker.text.len())));
        let mut groups: Vec<(u8, Range<usize>)> = Vec::new();
        let mut at = 0;
        for group in all.chunk_by(|one, next| first(one) == first(next)) {
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
        // What has no room is looked for by its first letter alone.
        while pairs.len() > PAIRS {
            singles.extend(pairs.pop().map(|[letter, _]| letter));
        }
        debug_assert!(singles.len() <= SINGLES, "the markers begin with {groups:?}");
        singles.resize(SINGLES, NONE);
        pairs.resize(PAIRS, [NONE; 2]);
        let singles = std::array::from_fn(|at| singles[at]);
        let pairs = std::array::from_fn(|at| pairs[at]);
        Self { all, singles, pairs, groups }
    }

    /// Those among them that are kept, and what ends the part they stand in.
    pub(super) fn within(&self, ends: &[&'static str], keep: impl Fn(Mark) -> bool) -> Self {
        let kept =
            self.all.iter().filter(|marker| keep(marker.mark) && !ends.contains(&marker.text));
        let ends = ends.iter().map(|text| Marker { text, mark: Mark::StrayThinkEnd, plain: false });
        Self::new(kept.copied().chain(ends).collect())
    }

    /// Where a marker may begin, at or after `from`.
    pub(super) fn next(&self, text: &str, from: usize) -> Option<usize> {
        let bytes = text.as_bytes().get(from..)?;
        let behind = bytes.get(1..)?;
        let blocks = bytes.chunks_exact(BLOCK).zip(behind.chunks_exact(BLOCK));
        let clean = blocks.take_while(|(block, behind)| !self.has_first(block, behind)).count();
        let skipped = clean * BLOCK;
        let mut behind = behind[skipped..].iter();
        let mut rest = bytes[skipped..].iter();
        // The last letter has nothing behind it yet, and may begin what goes on in the next piece.
        let hit = rest.position(|byte| self.is_first(*byte, behind.next().copied()));
        hit.map(|offset| from + skipped + offset)
    }

    /// Whether a marker may begin in a block; `behind` is the block one byte later. Without a
    /// branch inside, so that the compiler makes vector code of it.
    fn has_first(&self, block: &[u8], behind: &[u8]) -> bool {
        let mut hit = false;
        for (byte, next) in block.iter().zip(behind) {
            for single in self.singles {
                hit |= *byte == single;
            }
            for [first, second] in self.pairs {
                hit |= (*byte == first) & (*next == second);
            }
        }
        hit
    }

    fn is_first(&self, byte: u8, next: Option<u8>) -> bool {
        self.singles.contains(&byte)
            || self
                .pairs
                .iter()
                .any(|[first, second]| *first == byte && next.is_none_or(|next| next == *second))
    }

    /// The markers that `text` may begin with: all of them if it has not begun.
    fn candidates(&self, text: &str) -> &[Marker] {
        let Some(letter) = text.bytes().next() else { return &self.all };
        let group = self.groups.iter().find(|(first, _)| *first == letter);
        group.map_or(&[], |(_, range)| &self.all[range.clone()])
    }

    /// The marker that `text` begins with, of those that matter where it stands.
    pub(super) fn at(&self, text: &str, ended: bool, matters: impl Fn(Marker) -> bool) -> Found {
        for marker in self.candidates(text) {
            match begins(text, marker.text) {
                Begins::Yes if matters(*marker) => return Found::Marker(*marker),
                Begins::Perhaps if !ended && matters(*marker) => return Found::Perhaps,
                Begins::Yes | Begins::Perhaps | Begins::No => {}
            }
        }
        Found::Nothing
    }

    /// All markers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Marker> {
        self.all.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    #[test]
    fn a_marker_is_found_wherever_it_stands_and_wherever_it_is_cut() {
        for name in Format::names() {
            let markers = Markers::new(Format::named(name).unwrap().markers());
            for marker in markers.iter() {
                for before in (0..4).chain(BLOCK - 2..=BLOCK + 2).chain([3 * BLOCK - 1]) {
                    let text =
                        format!("{}{}", "An x".repeat(BLOCK).split_at(before).0, marker.text);
                    let cuts = before + 1..=text.len();
                    for cut in cuts.filter(|cut| text.is_char_boundary(*cut)) {
                        let found = markers.next(&text[..cut], 0);
                        assert_eq!(found, Some(before), "{name}: {:?} to {cut}", marker.text);
                    }
                }
            }
        }
    }

    #[test]
    fn a_first_letter_with_a_second_that_no_marker_has_is_passed_over() {
        let markers = Markers::new(Format::Detect.markers());
        assert_eq!(markers.next("An A, `x` and an Ant", 0), None);
        assert_eq!(markers.next("An A", 0), Some(3));
        assert_eq!(markers.next("An Action", 1), Some(3));
    }
}

//! Finds markers in text: a search for their first letters, then a comparison.

use crate::format::{Mark, Marker};
use crate::lexer::{Begins, begins};

/// How many different first letters the markers of all formats may have.
const FIRSTS: usize = 5;

/// How many bytes are looked at together; a multiple of every vector register's width.
const BLOCK: usize = 64;

/// The markers to look for in one state.
#[derive(Debug, Clone)]
pub(super) struct Markers {
    all: Vec<Marker>,
    /// The first letters, the last one repeated to fill the array.
    firsts: [u8; FIRSTS],
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
        // The longest first: the first that fits is the one.
        all.sort_by_key(|marker| std::cmp::Reverse(marker.text.len()));
        let mut letters: Vec<u8> =
            all.iter().filter_map(|marker| marker.text.bytes().next()).collect();
        letters.sort_unstable();
        letters.dedup();
        debug_assert!(letters.len() <= FIRSTS, "the markers begin with {letters:?}");
        let last = letters.last().copied().unwrap_or(b'<');
        let mut firsts = [last; FIRSTS];
        for (place, letter) in firsts.iter_mut().zip(letters) {
            *place = letter;
        }
        Self { all, firsts }
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
        let mut blocks = bytes.chunks_exact(BLOCK);
        let mut at = from;
        for block in &mut blocks {
            // Without a branch inside, so that the compiler makes vector code of it.
            let mut hit = false;
            for byte in block {
                hit |= self.is_first(*byte);
            }
            if hit {
                return block
                    .iter()
                    .position(|byte| self.is_first(*byte))
                    .map(|offset| at + offset);
            }
            at += BLOCK;
        }
        blocks.remainder().iter().position(|byte| self.is_first(*byte)).map(|offset| at + offset)
    }

    fn is_first(&self, byte: u8) -> bool {
        let mut hit = false;
        for first in self.firsts {
            hit |= byte == first;
        }
        hit
    }

    /// The marker that `text` begins with.
    pub(super) fn at(&self, text: &str, ended: bool) -> Found {
        let mut longest = None;
        for marker in &self.all {
            match begins(text, marker.text) {
                Begins::Yes => {
                    longest = Some(*marker);
                    break;
                }
                Begins::Perhaps if !ended => return Found::Perhaps,
                Begins::Perhaps | Begins::No => {}
            }
        }
        longest.map_or(Found::Nothing, Found::Marker)
    }

    /// The markers that `text` is the beginning of.
    pub(super) fn begun<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Marker> + 't {
        self.all.iter().filter(move |marker| begins(text, marker.text) == Begins::Perhaps).copied()
    }

    /// All markers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Marker> {
        self.all.iter()
    }
}

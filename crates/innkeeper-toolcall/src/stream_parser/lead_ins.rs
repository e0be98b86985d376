//! Texts that belong to a marker although the search for markers starts after them, such as the word
//! `functools` before `[`.

use std::ops::BitAnd;

use crate::format::Format;

/// Number of bytes at the end of a text that are looked up in a table.
const LOOKUP_BYTES: usize = 3;

#[derive(Debug)]
pub(super) struct LeadIns {
    /// Each text with the start of its marker.
    texts: &'static [(&'static str, &'static str)],
    /// The starts of the texts, of every length.
    starts: Vec<&'static [u8]>,
    /// A bit per start that a text with this byte at this distance from its end may have there. Texts
    /// that end with the last letters of a start by chance are rare with so many bytes.
    by_byte: [[u32; 256]; LOOKUP_BYTES],
    /// The bits of the complete texts.
    complete: u32,
}

impl LeadIns {
    pub(super) fn new(format: Format) -> Self {
        let texts = format.lead_ins();
        let starts =
            texts.iter().flat_map(|(text, _)| (1..=text.len()).map(|end| &text.as_bytes()[..end]));
        let starts: Vec<_> = starts.collect();
        debug_assert!(starts.len() <= 32, "a bit per start");
        let mut by_byte = [[0; 256]; LOOKUP_BYTES];
        let mut complete = 0;
        for (bit, start) in starts.iter().enumerate() {
            let is_complete = texts.iter().any(|(text, _)| text.as_bytes() == *start);
            complete |= u32::from(is_complete) << bit;
            for (distance, bits) in by_byte.iter_mut().enumerate() {
                for byte in (0..=u8::MAX).filter(|byte| fits(start, *byte, distance)) {
                    bits[usize::from(byte)] |= 1 << bit;
                }
            }
        }
        Self { texts, starts, by_byte, complete }
    }

    /// Whether the end of `text` may be the start of a lead-in, as far as its last bytes show.
    #[inline]
    pub(super) fn may_end(&self, text: &str) -> bool {
        self.bits(text) != 0
    }

    /// Returns the length of the end of `text` that may be the start of a lead-in. `before` is the
    /// byte in front of the text.
    pub(super) fn held_len(&self, text: &str, before: Option<u8>) -> usize {
        let mut bits = self.bits(text);
        let mut held = 0;
        while let Some(start) = self.starts.get(bits.trailing_zeros() as usize) {
            bits &= bits - 1;
            if start.len() > held && ends_with(text, start, before) {
                held = start.len();
            }
        }
        held
    }

    /// Returns a bit per start with which a text may end.
    #[inline]
    fn bits(&self, text: &str) -> u32 {
        match text.as_bytes().last_chunk() {
            Some(end) => self.bits_for(*end),
            None if text.is_empty() => 0,
            None => u32::MAX,
        }
    }

    #[inline]
    fn bits_for(&self, end: [u8; LOOKUP_BYTES]) -> u32 {
        let by_byte = self.by_byte.iter().zip(end.iter().rev());
        by_byte.map(|(bits, byte)| bits[usize::from(*byte)]).fold(u32::MAX, BitAnd::bitand)
    }

    /// Returns the length of the end of `fresh` that belongs to the marker that `rest` starts with, or
    /// may start with. `before` is the byte in front of `fresh`.
    #[inline]
    pub(super) fn len_before(&self, fresh: &str, rest: &str, before: Option<u8>) -> usize {
        if self.bits(fresh) & self.complete == 0 {
            return 0;
        }
        self.texts
            .iter()
            .find(|(text, start)| {
                ends_with(fresh, text.as_bytes(), before)
                    && (rest.starts_with(start) || start.starts_with(rest))
            })
            .map_or(0, |(text, _)| text.len())
    }
}

/// Whether a text that ends with `start` may have `byte` at a distance from its end.
fn fits(start: &[u8], byte: u8, distance: usize) -> bool {
    match start.len().checked_sub(distance + 1) {
        Some(at) => start[at] == byte,
        None => distance > start.len() || may_precede(byte, start),
    }
}

/// Whether `text`, which stands behind the byte `before`, ends with the start of a lead-in.
fn ends_with(text: &str, start: &[u8], before: Option<u8>) -> bool {
    text.as_bytes().strip_suffix(start).is_some_and(|rest| {
        rest.last().copied().or(before).is_none_or(|byte| may_precede(byte, start))
    })
}

/// Whether a byte may stand before a lead-in: a word does not begin within another one.
fn may_precede(before: u8, start: &[u8]) -> bool {
    !(start[0].is_ascii_alphabetic() && before.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_start_of_a_lead_in_at_the_end_of_a_text_is_held() {
        let lead_ins = LeadIns::new(Format::Detect);
        for (text, held) in [
            ("", 0),
            ("x", 0),
            ("f", 1),
            ("a list]", 1),
            ("call a fun", 3),
            ("a function", 8),
            ("functools", 9),
            ("function call", 13),
            ("a function ", 9),
            ("functio", 7),
            ("nction", 0),
            ("of", 0),
            ("if I f", 1),
            ("malfunction", 0),
        ] {
            assert_eq!(lead_ins.held_len(text, None), held, "{text}");
        }
        assert_eq!(lead_ins.held_len("functools", Some(b'y')), 0);
        assert_eq!(LeadIns::new(Format::Hermes).held_len("functools", None), 0);
    }

    #[test]
    fn a_lead_in_belongs_to_its_own_marker() {
        let lead_ins = LeadIns::new(Format::Detect);
        assert_eq!(lead_ins.len_before("I call functools", "[{", None), 9);
        assert_eq!(lead_ins.len_before("I call functools", "<|role", None), 0);
        assert_eq!(lead_ins.len_before("my_functools", "[{", None), 9);
        assert_eq!(lead_ins.len_before("myfunctools", "[{", None), 0);
        assert_eq!(lead_ins.len_before("functools", "[{", Some(b'y')), 0);
        assert_eq!(lead_ins.len_before("]", "<]mini", None), 1);
        assert_eq!(lead_ins.len_before("]", "<b>", None), 0);
    }
}

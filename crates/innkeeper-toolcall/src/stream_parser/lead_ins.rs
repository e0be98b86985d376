//! Texts that belong to a marker although the search for markers starts after them, such as the word
//! `functools` before `[`.

use crate::format::Format;

/// The lead-ins of a format.
#[derive(Debug)]
pub(super) struct LeadIns {
    /// Each text with the start of its marker.
    texts: &'static [(&'static str, &'static str)],
    /// The starts of the texts, of every length.
    starts: Vec<&'static [u8]>,
    /// A bit per start that ends with a byte, and a bit per start whose last byte follows a byte. Most
    /// texts end with two bytes that have no bit in common, so nothing is compared.
    by_last: [u32; 256],
    by_second_last: [u32; 256],
    /// The bits of the complete texts.
    complete: u32,
}

impl LeadIns {
    pub(super) fn new(format: Format) -> Self {
        let texts = format.lead_ins();
        let of_text = |text: &'static str| (1..=text.len()).map(|end| &text.as_bytes()[..end]);
        let starts: Vec<_> = texts.iter().flat_map(|(text, _)| of_text(text)).collect();
        debug_assert!(starts.len() <= 32, "a bit per start");
        let mut by_last = [0; 256];
        let mut by_second_last = [0; 256];
        let mut complete = 0;
        for (bit, start) in starts.iter().enumerate() {
            let is_complete = texts.iter().any(|(text, _)| text.as_bytes() == *start);
            complete |= u32::from(is_complete) << bit;
            match start {
                [.., second, last] => {
                    by_last[usize::from(*last)] |= 1 << bit;
                    by_second_last[usize::from(*second)] |= 1 << bit;
                }
                [only] => {
                    by_last[usize::from(*only)] |= 1 << bit;
                    by_second_last.iter_mut().for_each(|bits| *bits |= 1 << bit);
                }
                [] => {}
            }
        }
        Self { texts, starts, by_last, by_second_last, complete }
    }

    /// Returns the length of the end of `text` that may be the start of a lead-in.
    #[inline]
    pub(super) fn held_len(&self, text: &str) -> usize {
        let mut bits = self.bits(text);
        let mut longest = 0;
        while bits != 0 {
            let start = self.starts[bits.trailing_zeros() as usize];
            bits &= bits - 1;
            if start.len() > longest && text.as_bytes().ends_with(start) {
                longest = start.len();
            }
        }
        longest
    }

    /// Returns a bit per start with which a text may end.
    #[inline]
    fn bits(&self, text: &str) -> u32 {
        match text.as_bytes() {
            [.., second, last] => {
                self.by_last[usize::from(*last)] & self.by_second_last[usize::from(*second)]
            }
            [only] => self.by_last[usize::from(*only)],
            [] => 0,
        }
    }

    /// Returns the length of the end of `fresh` that belongs to the marker that `rest` starts with, or
    /// may start with.
    #[inline]
    pub(super) fn len_before(&self, fresh: &str, rest: &str) -> usize {
        if self.bits(fresh) & self.complete == 0 {
            return 0;
        }
        let belongs = |(text, start): &&(&str, &str)| {
            fresh.ends_with(text) && (rest.starts_with(start) || start.starts_with(rest))
        };
        self.texts.iter().find(belongs).map_or(0, |(text, _)| text.len())
    }
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
            ("of", 1),
        ] {
            assert_eq!(lead_ins.held_len(text), held, "{text}");
        }
        assert_eq!(LeadIns::new(Format::Hermes).held_len("functools"), 0);
    }

    #[test]
    fn a_lead_in_belongs_to_its_own_marker() {
        let lead_ins = LeadIns::new(Format::Detect);
        assert_eq!(lead_ins.len_before("I call functools", "[{"), 9);
        assert_eq!(lead_ins.len_before("I call functools", "<|role"), 0);
        assert_eq!(lead_ins.len_before("]", "<]mini"), 1);
        assert_eq!(lead_ins.len_before("]", "<b>"), 0);
    }
}

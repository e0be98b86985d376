//! How much two texts of a model say the same, from 0 to 1.
//!
//! Models word the same answer differently, so texts are compared as words: in lower case, without
//! Markdown, punctuation and blanks. The similarity is the mean of two Dice coefficients, of single
//! words and of pairs of neighbours; or, if the longer text contains the shorter one, a value between
//! 0.75 and 1 that falls with the ratio of their lengths.
//!
//! Word overlap alone would accept a wrong answer, because one wrong word in a long text changes
//! little. Therefore facts are compared on their own: numbers (by value), names (of files, of
//! identifiers, and everything in quotation marks) and negations. If both texts have a fact that the
//! other does not have, if only one text has a negation, or if the same statement has other facts, the
//! similarity is at most [`CONFLICT`]; so it is if one text has a word (`enabled`) and the other one its
//! contrary (`disabled`). It halves if both texts have a name with a capital that the other does not
//! have. If only one text has additional facts, the similarity shrinks by their share.
//!
//! The similarity errs on the side of a difference: a free paraphrase gets 0.3 to 0.7. What it cannot
//! see is another wrong word in a long text (`red` for `green`), and what a text means as a whole.

mod markdown;
mod numbers;

mod words;

mod facts;

use std::collections::HashMap;
use std::hash::Hash;

use facts::agreement;
use words::{FILLERS, Text, Token};

/// Maximum similarity of texts that contradict each other.
const CONFLICT: f64 = 0.1;

/// The weight of an article or a form of `be`, against 1 of any other word.
const FILLER_WEIGHT: f64 = 0.25;

/// Maximum length of texts whose order of words counts. Longer texts are compared as bags of words
/// and numbers, which takes a time in proportion to their length, with little memory.
const MAX_ORDERED_BYTES: usize = 64 << 10;

/// Minimum number of words of a text that may be contained in a longer one: a few words occur in texts
/// that say something else.
const MIN_CONTAINED_WORDS: usize = 8;

/// The similarity of a text and a much longer one that contains it.
const CONTAINED: f64 = 0.75;

/// Returns how much two texts say the same, from 0 (nothing) to 1. The order of the texts is not
/// important.
pub fn similarity(left: &str, right: &str) -> f64 {
    let is_ordered = left.len().max(right.len()) <= MAX_ORDERED_BYTES;
    let [left_text, right_text] = [left, right].map(Text::new);
    let [left_tokens, right_tokens] = [&left_text.tokens, &right_text.tokens];
    if left_tokens.is_empty() && right_tokens.is_empty() {
        return if left.trim() == right.trim() { 1.0 } else { 0.0 };
    }
    let words = overlap(singles(left_tokens), singles(right_tokens));
    let base = if is_ordered && left_tokens.len().max(right_tokens.len()) > 1 {
        let pairs = overlap(pairs(left_tokens), pairs(right_tokens));
        let mean = 0.5f64.mul_add(words.dice(), 0.5 * pairs.dice());
        mean.max(containment(pairs, left_tokens.len(), right_tokens.len()))
    } else {
        words.dice()
    };
    let agreement = agreement(&left_text, &right_text, is_ordered);
    (base * agreement.unwrap_or(CONFLICT)).clamp(0.0, 1.0)
}

/// Returns whether the text contains the words of another text, one after the other.
pub(crate) fn contains(text: &str, part: &str) -> bool {
    let [text_words, part_words] = [text, part].map(Text::new);
    let part_words: Vec<&str> = part_words.tokens.iter().map(|token| &*token.text).collect();
    if part_words.is_empty() {
        return text.contains(part.trim());
    }
    let text_words: Vec<&str> = text_words.tokens.iter().map(|token| &*token.text).collect();
    text_words.windows(part_words.len()).any(|window| window == part_words)
}

/// The weights of the common items of two bags, and of each bag. Weights are multiples of a power of
/// two, so their sums do not depend on the order.
#[derive(Clone, Copy)]
struct Overlap {
    common: f64,
    left: f64,
    right: f64,
}

impl Overlap {
    fn dice(self) -> f64 {
        let all = self.left + self.right;
        if all > 0.0 { 2.0 * self.common / all } else { 0.0 }
    }
}

fn singles(tokens: &[Token]) -> impl Iterator<Item = (&str, f64)> {
    tokens.iter().map(|token| {
        let is_filler = FILLERS.contains(&&*token.text);
        (&*token.text, if is_filler { FILLER_WEIGHT } else { 1.0 })
    })
}

fn pairs(tokens: &[Token]) -> impl Iterator<Item = ((&str, &str), f64)> {
    tokens.windows(2).map(|pair| ((&*pair[0].text, &*pair[1].text), 1.0))
}

fn overlap<T: Eq + Hash>(
    left: impl Iterator<Item = (T, f64)>,
    right: impl Iterator<Item = (T, f64)>,
) -> Overlap {
    let mut counts: HashMap<T, usize> = HashMap::new();
    let mut overlap = Overlap { common: 0.0, left: 0.0, right: 0.0 };
    for (item, weight) in left {
        *counts.entry(item).or_default() += 1;
        overlap.left += weight;
    }
    for (item, weight) in right {
        overlap.right += weight;
        if let Some(count) = counts.get_mut(&item).filter(|count| **count > 0) {
            *count -= 1;
            overlap.common += weight;
        }
    }
    overlap
}

/// Returns the similarity of a text and a longer one that contains it.
fn containment(pairs: Overlap, left_words: usize, right_words: usize) -> f64 {
    let shorter = left_words.min(right_words);
    let longer = left_words.max(right_words);
    if shorter < MIN_CONTAINED_WORDS {
        return 0.0;
    }
    let contained = pairs.common / (shorter - 1) as f64;
    contained * (1.0 - CONTAINED).mul_add(shorter as f64 / longer as f64, CONTAINED)
}

#[cfg(test)]
mod tests;

//! The forms of a text that rules are matched with: the text itself, and the texts encoded in it.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use super::decode::{MAX_DECODED_BYTES, TooLong, decode_embedded};
use crate::text::{plain_text, visible_text};

/// Maximum number of nested encodings that are decoded.
pub(super) const MAX_ENCODING_DEPTH: usize = 4;

/// A text after decoding one more encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NormalizedText {
    /// The text as written, without hidden characters.
    pub(super) exact: String,
    /// The text in ASCII lower case, with look-alikes replaced and white space collapsed.
    pub(super) plain: String,
}

impl NormalizedText {
    pub(super) fn new(text: &str) -> Self {
        let exact = visible_text(text);
        let plain = plain_text(&exact);
        Self { exact, plain }
    }
}

/// What a message may still decode.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodeBudget(usize);

impl Default for DecodeBudget {
    fn default() -> Self {
        Self(MAX_DECODED_BYTES)
    }
}

#[derive(Debug)]
pub(super) struct NormalizedForms {
    pub(super) forms: Vec<NormalizedText>,
    /// Why some encoded text is missing.
    pub(super) incomplete: Option<&'static str>,
}

/// Reasons of missing forms.
pub(super) const TOO_MUCH_DECODED: &str =
    "not scanned: more than 4 MiB of encoded text in one message";
pub(super) const TOO_DEEP: &str = "not scanned: more than 4 encodings inside one another";

/// Returns the text itself and the texts encoded in it.
pub(super) fn normalized_forms(text: &str, budget: &mut DecodeBudget) -> NormalizedForms {
    let mut forms = vec![NormalizedText::new(text)];
    let mut incomplete = None;
    let mut raw = std::borrow::Cow::Borrowed(text);
    for depth in 0..=MAX_ENCODING_DEPTH {
        let Some(last) = forms.last() else { break };
        match decode_embedded(&raw, &last.exact, &mut budget.0) {
            Ok(inner) if inner.is_empty() => break,
            Ok(_) if depth == MAX_ENCODING_DEPTH => incomplete = Some(TOO_DEEP),
            Ok(inner) => {
                forms.push(NormalizedText::new(&inner));
                raw = inner.into();
            }
            Err(TooLong) => {
                incomplete = Some(TOO_MUCH_DECODED);
                break;
            }
        }
    }
    let turned: Vec<NormalizedText> = forms.iter().flat_map(turned_forms).collect();
    forms.extend(turned);
    NormalizedForms { forms, incomplete }
}

/// Words of instructions backwards and after a rotation of the alphabet by 13 letters.
static BACKWARDS: LazyLock<Regex> = LazyLock::new(|| {
    compile_words(
        "erongi|dragersid|suoiverp|snoitcurtsni|tpmorp metsys|sdrowssap|slaitnederc|resu eht llet",
    )
});
static ROTATED: LazyLock<Regex> = LazyLock::new(|| {
    compile_words(
        "vtaber|qvfertneq|cerivbhf|vafgehpgvbaf|flfgrz cebzcg|cnffjbeqf|perqragvnyf|gryy gur hfre",
    )
});

fn compile_words(pattern: &str) -> Regex {
    RegexBuilder::new(pattern).unicode(false).build().expect("a test compiles the pattern")
}

/// Returns a text without the order of letters or the rotation that its words suggest.
fn turned_forms(form: &NormalizedText) -> Vec<NormalizedText> {
    let mut turned = Vec::new();
    if BACKWARDS.is_match(form.plain.as_bytes()) {
        turned.push(form.exact.chars().rev().collect::<String>());
        let words = form.exact.split_inclusive(char::is_whitespace);
        turned.push(words.flat_map(|word| word.chars().rev()).collect());
    }
    if ROTATED.is_match(form.plain.as_bytes()) {
        turned.push(form.exact.chars().map(rotate).collect());
    }
    turned.iter().map(|text| NormalizedText::new(text)).collect()
}

fn rotate(character: char) -> char {
    let first = match character {
        'a'..='z' => b'a',
        'A'..='Z' => b'A',
        other => return other,
    };
    u8::try_from(character).map_or(character, |byte| char::from((byte - first + 13) % 26 + first))
}

#[cfg(test)]
mod tests;

//! Decodes what a text contains in another encoding.

mod byte_text;
mod escapes;
mod runs;
mod tags;

use crate::text::is_variation_selector;

/// Maximum size of the decoded text of one message, in bytes.
pub(super) const MAX_DECODED_BYTES: usize = 4 << 20;

/// Minimum number of bytes in a row of variation selectors; ordinary text has one after a character.
const MIN_SELECTOR_BYTES: usize = 4;

/// Returns the texts encoded in a text, each in paragraphs of its own; empty if there are none.
/// `raw` is the text as written, and `visible` its visible form.
///
/// # Errors
///
/// Fails if the texts are longer than `remaining`, from which the length is subtracted.
pub(super) fn decode_embedded(
    raw: &str,
    visible: &str,
    remaining: &mut usize,
) -> Result<String, TooLong> {
    let mut decoded = DecodedText { text: String::new(), remaining };
    if let Some(text) = escapes::unescape(visible) {
        decoded.push(&text)?;
    }
    if let Some(text) = tags::strip_tags(visible) {
        decoded.push(&text)?;
    }
    runs::decode_runs(visible, &mut decoded)?;
    runs::decode_code_lists(visible, &mut decoded)?;
    decode_selectors(raw, &mut decoded)?;
    Ok(decoded.text)
}

/// The decoded text is longer than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Collects decoded texts within a limit.
struct DecodedText<'r> {
    text: String,
    remaining: &'r mut usize,
}

impl DecodedText<'_> {
    fn push(&mut self, text: &str) -> Result<(), TooLong> {
        *self.remaining = self.remaining.checked_sub(text.len()).ok_or(TooLong)?;
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
        Ok(())
    }

    /// Adds the readable parts of decoded bytes.
    fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        byte_text::readable_parts(bytes).iter().try_for_each(|part| self.push(part))
    }
}

/// Decodes bytes that are written as variation selectors, one for each of the 256 values.
fn decode_selectors(raw: &str, decoded: &mut DecodedText<'_>) -> Result<(), TooLong> {
    if raw.is_ascii() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    for character in raw.chars().chain(['.']) {
        let number = u32::from(character);
        let byte = match character {
            _ if !is_variation_selector(character) => None,
            '\u{fe00}'..='\u{fe0f}' => u8::try_from(number - 0xfe00).ok(),
            _ => u8::try_from(number - 0xe0100 + 16).ok(),
        };
        if let Some(byte) = byte {
            bytes.push(byte);
            continue;
        }
        if bytes.len() >= MIN_SELECTOR_BYTES {
            decoded.push_bytes(&bytes)?;
        }
        bytes.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests;

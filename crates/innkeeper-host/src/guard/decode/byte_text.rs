//! Finds the readable text in decoded bytes: UTF-8, UTF-16, and text between other bytes.

/// Minimum number of characters of text between other bytes.
const MIN_STRETCH_CHARS: usize = 24;

/// Returns the readable parts of bytes: the whole text if at most a tenth is unreadable, or else
/// each long stretch of text.
pub(super) fn readable_parts(bytes: &[u8]) -> Vec<String> {
    if let Some(text) = decode_utf16(bytes) {
        return vec![text];
    }
    let text = String::from_utf8_lossy(bytes);
    let total = text.chars().count();
    let odd = text.chars().filter(|c| !is_readable(*c)).count();
    // Binary data rarely contains so much text.
    if odd * 10 <= total {
        return vec![text.into_owned()];
    }
    let stretches = text.split(|c: char| !is_readable(c) || !c.is_ascii());
    stretches.filter(|part| part.len() >= MIN_STRETCH_CHARS).map(str::to_owned).collect()
}

fn is_readable(character: char) -> bool {
    character.is_alphanumeric() || character.is_ascii_graphic() || character.is_whitespace()
}

/// Decodes UTF-16 of mostly ASCII, in either order of bytes.
fn decode_utf16(bytes: &[u8]) -> Option<String> {
    let (pairs, _) = bytes.as_chunks::<2>();
    let order = [u16::from_le_bytes, u16::from_be_bytes].into_iter().find(|read| {
        let ascii = pairs.iter().filter(|pair| matches!(read(**pair), 0x09..0x80)).count();
        pairs.len() >= 8 && ascii * 2 > pairs.len()
    })?;
    let units = pairs.iter().map(|pair| order(*pair));
    Some(
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect(),
    )
}

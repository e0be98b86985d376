//! The bytes of JSON strings: where an escape is, and how text becomes a string.

/// Number of bytes that are compared at once within a long string.
const BLOCK_BYTES: usize = 32;

/// Number of eight-byte words of a string that are compared before its blocks: keys are shorter.
const SHORT_WORDS: usize = 2;

/// Returns the number of bytes before the first quote, backslash or control character.
pub(crate) fn plain_len(bytes: &[u8]) -> usize {
    let short = bytes.len().min(SHORT_WORDS * 8);
    let at = plain_words_len(&bytes[..short]);
    if at < short || at == bytes.len() {
        return at;
    }
    let (blocks, _) = bytes[at..].as_chunks::<BLOCK_BYTES>();
    let plain_blocks = blocks.iter().take_while(|block| !has_special_byte(block)).count();
    let at = at + plain_blocks * BLOCK_BYTES;
    at + plain_words_len(&bytes[at..])
}

/// Like [`plain_len`], for few bytes.
fn plain_words_len(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    words.len() * 8 + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

/// Without a branch, so that the loop over a block becomes vector instructions.
fn is_special(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

fn has_special_byte(block: &[u8; BLOCK_BYTES]) -> bool {
    let mut marks = [0; BLOCK_BYTES];
    for (mark, byte) in marks.iter_mut().zip(block) {
        *mark = if is_special(*byte) { u8::MAX } else { 0 };
    }
    marks.into_iter().fold(0, |all, mark| all | mark) != 0
}

/// Marks the zero bytes of a word in their highest bits. Only the lowest mark is certain.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(u64::from_le_bytes([1; 8])) & !word
}

/// Marks the special bytes of a word in their highest bits. Only the lowest mark is certain.
fn special_bytes(word: u64) -> u64 {
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    const SPACES: u64 = u64::from_le_bytes([b' '; 8]);
    const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
    const BACKSLASHES: u64 = u64::from_le_bytes([b'\\'; 8]);
    let below_space = word.wrapping_sub(SPACES) & !word;
    (below_space | zero_bytes(word ^ QUOTES) | zero_bytes(word ^ BACKSLASHES)) & HIGH
}

/// Appends text as a JSON string, with the escapes that `serde_json` writes.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut rest = text.as_bytes();
    out.reserve(rest.len() + 2);
    out.push(b'"');
    loop {
        let (plain, special) = rest.split_at(plain_len(rest));
        out.extend_from_slice(plain);
        let Some((byte, after)) = special.split_first() else { break };
        let escape = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            _ => b'u',
        };
        out.extend_from_slice(&[b'\\', escape]);
        if escape == b'u' {
            let digits = [usize::from(byte >> 4), usize::from(byte & 0xf)];
            out.extend_from_slice(b"00");
            out.extend_from_slice(&digits.map(|digit| HEX_DIGITS[digit]));
        }
        rest = after;
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_written_as_serde_json_writes_it() {
        let written = |text: &str| {
            let mut out = Vec::new();
            write_string(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        let special = (0..=0x7f_u8).map(char::from).chain(['é', '\u{2028}', '\u{1F600}']);
        for character in special {
            for at in [0, 7, 8, 31, 32, 40, 63, 64, 99] {
                let text = format!("{}{character}{}", "x".repeat(at), "y".repeat(100 - at));
                assert_eq!(written(&text), serde_json::to_string(&text).unwrap());
            }
        }
        assert_eq!(written(""), "\"\"");
    }
}

//! Decodes runs of letters and digits: base64, base32, hexadecimal digits, and lists of numbers.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::{DecodedText, TooLong};

/// Minimum length of a run in bytes: a few words cannot be an instruction.
const MIN_RUN_BYTES: usize = 24;

/// Minimum line length of a wrapped run.
const MIN_WRAPPED_LINE_LEN: usize = 16;

/// Minimum number of codes in a list.
const MIN_CODES: usize = 12;

/// Maximum number of bytes between two codes of a list, for example `, 0x`.
const MAX_CODE_GAP: usize = 4;

fn is_run_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}

/// Decodes each run, and the joined lines of wrapped runs.
pub(super) fn decode_runs(text: &str, decoded: &mut DecodedText<'_>) -> Result<(), TooLong> {
    let bytes = text.as_bytes();
    let mut start = 0;
    while start < bytes.len() {
        let length = bytes[start..].iter().take_while(|byte| is_run_byte(**byte)).count();
        if length >= MIN_RUN_BYTES {
            decode_run(&bytes[start..start + length], decoded)?;
        }
        start += length + 1;
    }
    decode_wrapped_runs(text, decoded)
}

fn decode_wrapped_runs(text: &str, decoded: &mut DecodedText<'_>) -> Result<(), TooLong> {
    let mut joined = Vec::new();
    let mut lines = 0;
    for line in text.lines().map(str::trim).chain([""]) {
        let is_single_run = line.bytes().all(is_run_byte);
        if is_single_run && line.len() >= MIN_WRAPPED_LINE_LEN && !line.ends_with('=') {
            joined.extend_from_slice(line.as_bytes());
            lines += 1;
            continue;
        }
        // The line may be the last of the block or unrelated.
        if lines > 1 {
            decode_run(&joined, decoded)?;
        }
        if lines > 0 && is_single_run && !line.is_empty() {
            joined.extend_from_slice(line.as_bytes());
            decode_run(&joined, decoded)?;
        }
        joined.clear();
        lines = 0;
    }
    Ok(())
}

/// Decodes a run, without the padding and without the names before a `=`.
fn decode_run(run: &[u8], decoded: &mut DecodedText<'_>) -> Result<(), TooLong> {
    for piece in run.split(|byte| *byte == b'=') {
        if piece.len() < MIN_RUN_BYTES {
            continue;
        }
        let before = decoded.text.len();
        if let Some(bytes) = hex::decode(piece).ok().or_else(|| decode_base32(piece)) {
            decoded.push_bytes(&bytes)?;
        }
        if let Some(bytes) = decode_base64(piece) {
            decoded.push_bytes(&bytes)?;
        }
        if decoded.text.len() > before {
            continue;
        }
        // A path before the run is not part of it.
        for part in piece.split(|byte| matches!(byte, b'/' | b'-' | b'_' | b'+')) {
            if part.len() >= MIN_RUN_BYTES
                && part.len() < piece.len()
                && let Some(bytes) = decode_base64(part)
            {
                decoded.push_bytes(&bytes)?;
            }
        }
    }
    Ok(())
}

fn decode_base32(run: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(run.len() / 8 * 5 + 5);
    let mut bits = 0_u32;
    let mut count = 0;
    for byte in run {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a',
            b'2'..=b'7' => byte - b'2' + 26,
            _ => return None,
        };
        bits = bits << 5 | u32::from(value);
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.extend(u8::try_from(bits >> count & 0xff));
        }
    }
    Some(bytes)
}

/// Decodes base64 of either alphabet, also if the end is missing.
fn decode_base64(run: &[u8]) -> Option<Vec<u8>> {
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let mut letters: Vec<u8> = run
        .iter()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        })
        .collect();
    if letters.len() % 4 == 1 {
        letters.pop();
    }
    ENGINE.decode(letters).ok()
}

type CodeReader = fn(&[u8]) -> Option<u8>;

/// Decodes lists of codes: hexadecimal pairs, decimal numbers and groups of eight bits.
pub(super) fn decode_code_lists(text: &str, decoded: &mut DecodedText<'_>) -> Result<(), TooLong> {
    const READERS: [CodeReader; 3] = [read_hex_pair, read_decimal, read_bits];
    let bytes = text.as_bytes();
    let mut lists: [Vec<u8>; 3] = Default::default();
    let mut start = 0;
    let mut last_end = 0;
    while start < bytes.len() {
        let word = &bytes[start..];
        let length = word.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        if length == 0 {
            start += 1;
            continue;
        }
        let is_near = start - last_end <= MAX_CODE_GAP;
        for (list, read) in lists.iter_mut().zip(READERS) {
            let code = read(&word[..length]);
            if code.is_none() || !is_near {
                flush_codes(list, decoded)?;
            }
            list.extend(code);
        }
        start += length;
        last_end = start;
    }
    lists.iter_mut().try_for_each(|list| flush_codes(list, decoded))
}

fn flush_codes(list: &mut Vec<u8>, decoded: &mut DecodedText<'_>) -> Result<(), TooLong> {
    if list.len() >= MIN_CODES {
        decoded.push_bytes(list)?;
    }
    list.clear();
    Ok(())
}

fn read_hex_pair(word: &[u8]) -> Option<u8> {
    let digits = word.strip_prefix(b"0x").unwrap_or(word);
    (digits.len() == 2).then(|| read_digits(digits, 16)).flatten()
}

fn read_decimal(word: &[u8]) -> Option<u8> {
    (word.len() <= 3).then(|| read_digits(word, 10)).flatten()
}

fn read_bits(word: &[u8]) -> Option<u8> {
    (word.len() == 8).then(|| read_digits(word, 2)).flatten()
}

fn read_digits(word: &[u8], radix: u32) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(word).ok()?, radix).ok()
}

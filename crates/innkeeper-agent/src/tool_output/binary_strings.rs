//! Replaces binary data in JSON by lines with its size: a model cannot read it, and pays for it.

use std::borrow::Cow;
use std::collections::HashMap;

use innkeeper_protocol::skim::{self, Token};
use serde_json::value::RawValue;

use crate::content::{ContentBlock, RawJson};

/// Minimum length of a string that counts as Base64 without saying so. Hashes, keys and tokens are
/// shorter.
const MIN_BASE64_CHARS: usize = 512;

/// Minimum length of a string that counts as a repeated medium.
const MIN_MEDIUM_CHARS: usize = 32;

/// Returns the lines of the media of these blocks, by the data.
pub(super) fn media_lines(blocks: &[ContentBlock]) -> HashMap<&str, Cow<'_, str>> {
    let media = blocks.iter().filter_map(|block| Some((block.media()?.data, block.to_text()?)));
    media.filter(|(data, _)| data.len() >= MIN_MEDIUM_CHARS).collect()
}

/// Returns a JSON text in which a line with the size replaces each string that is a known medium, a
/// data URL or long Base64; `None` without such a string.
pub(super) fn replace(json: &str, media_lines: &HashMap<&str, Cow<'_, str>>) -> Option<RawJson> {
    let mut replaced = String::new();
    let mut copied = 0;
    for token in skim::tokens(json) {
        let Token::String(raw) = token else { continue };
        if raw.len() < MIN_MEDIUM_CHARS {
            continue;
        }
        let Some(line) = skim::decode_string(raw).and_then(|text| line_of(&text, media_lines))
        else {
            continue;
        };
        // The tokens are parts of the text.
        let start = raw.as_ptr().addr() - json.as_ptr().addr();
        replaced.push_str(&json[copied..start]);
        replaced.push_str(&serde_json::Value::from(line).to_string());
        copied = start + raw.len();
    }
    if copied == 0 {
        return None;
    }
    replaced.push_str(&json[copied..]);
    RawValue::from_string(replaced).ok().map(|raw| RawJson::from(&*raw))
}

/// Returns the line that replaces a string, if the string is binary data.
fn line_of(text: &str, media_lines: &HashMap<&str, Cow<'_, str>>) -> Option<String> {
    if let Some(line) = media_lines.get(text) {
        return Some(line.clone().into_owned());
    }
    if let Some((kind, data)) =
        text.strip_prefix("data:").and_then(|url| url.split_once(";base64,"))
        && data.len() >= MIN_MEDIUM_CHARS
        && has_base64_letters(data)
    {
        return Some(format!("[data, {kind}, {} bytes]", decoded_len(data)));
    }
    let is_long = text.len() >= MIN_BASE64_CHARS;
    (is_long && is_base64(text)).then(|| format!("[Base64 data, {} bytes]", decoded_len(text)))
}

/// Whether a text has only the letters of Base64, in lines or not.
fn has_base64_letters(text: &str) -> bool {
    text.trim_end_matches(['=', '\r', '\n']).bytes().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'\r' | b'\n')
    })
}

/// Whether a long text is Base64. Long texts of few kinds of letters are not, such as sequences of
/// bases, digits or hexadecimal numbers, and neither are lists of names or paths, whose lines differ
/// in length.
fn is_base64(text: &str) -> bool {
    let is_one_alphabet = !(text.contains(['+', '/']) && text.contains(['-', '_']));
    has_base64_letters(text)
        && is_one_alphabet
        && text.bytes().any(|byte| byte.is_ascii_uppercase())
        && text.bytes().any(|byte| byte.is_ascii_lowercase())
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && has_equal_lines(text)
}

/// Whether all lines but the last one have the same length, as encoders write them.
fn has_equal_lines(text: &str) -> bool {
    let mut lines = text.lines().rev();
    let last = lines.next().unwrap_or_default();
    let width = lines.clone().next_back().unwrap_or(last).len();
    last.len() <= width && lines.all(|line| line.len() == width)
}

fn decoded_len(base64: &str) -> usize {
    base64.bytes().filter(|byte| !matches!(byte, b'=' | b'\r' | b'\n')).count() * 3 / 4
}

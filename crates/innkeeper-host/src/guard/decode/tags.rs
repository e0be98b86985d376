//! Removes tags and comments that break words: `ig<b></b>nore`.

use memchr::memchr_iter;

/// Minimum number of broken words.
const MIN_BROKEN_WORDS: usize = 3;

/// Maximum length of a tag in bytes; a longer one is text.
const MAX_TAG_BYTES: usize = 256;

/// Returns the text without its tags; `None` if tags break too few words.
pub(super) fn strip_tags(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut stripped = String::new();
    let mut copied = 0;
    let mut broken = 0;
    for start in memchr_iter(b'<', bytes) {
        if start < copied {
            continue;
        }
        let mut end = start;
        while let Some(length) = tag_length(&bytes[end..]) {
            end += length;
        }
        if end == start {
            continue;
        }
        broken += usize::from(
            bytes[..start].last().is_some_and(u8::is_ascii_alphanumeric)
                && bytes.get(end).is_some_and(u8::is_ascii_alphanumeric),
        );
        stripped.push_str(&text[copied..start]);
        copied = end;
    }
    if broken < MIN_BROKEN_WORDS {
        return None;
    }
    stripped.push_str(&text[copied..]);
    Some(stripped)
}

/// Returns the length of the tag or comment at the start.
fn tag_length(bytes: &[u8]) -> Option<usize> {
    let is_tag = bytes.first() == Some(&b'<')
        && bytes.get(1).is_some_and(|byte| byte.is_ascii_alphabetic() || b"/!?".contains(byte));
    let within = &bytes[..bytes.len().min(MAX_TAG_BYTES)];
    if within.starts_with(b"<!--") {
        return within.windows(3).position(|end| end == b"-->").map(|at| at + 3);
    }
    is_tag.then(|| within.iter().position(|byte| *byte == b'>')).flatten().map(|at| at + 1)
}

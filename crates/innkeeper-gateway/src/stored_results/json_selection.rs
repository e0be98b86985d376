//! Selection of a value of JSON text by a JSON pointer (RFC 6901).

use std::ops::Range;

use innkeeper_protocol::skim;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Maximum number of bytes of a pointer.
pub(crate) const MAX_POINTER_BYTES: usize = 4_096;

/// Maximum number of reference tokens of a pointer: each token reads the value before it once.
const MAX_POINTER_TOKENS: usize = 32;

/// Maximum number of keys of an object that are returned, and of their bytes.
const MAX_KEYS: usize = 100;
const MAX_KEY_BYTES: usize = 8 << 10;

/// Maximum number of keys of an object in an error.
const MAX_SHOWN_KEYS: usize = 10;

/// The reason why a pointer selects nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectionError {
    #[error(
        "the stored result is not JSON of at most 127 levels: use `read_result` or `search_result`"
    )]
    NotJson,
    #[error(
        "`pointer` is not a JSON pointer: it is empty or starts with `/`, has at most \
         {MAX_POINTER_TOKENS} tokens, and `~` and `/` within a token are `~0` and `~1`"
    )]
    InvalidPointer,
    #[error("no value at `{missing}`: {found} is {kind}")]
    NotFound {
        /// The start of the pointer that selects nothing.
        missing: String,
        /// The value before it.
        found: String,
        /// The type and the size of that value.
        kind: String,
    },
}

/// A value of JSON text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JsonSelection {
    /// The bytes of the value in the text.
    pub(crate) range: Range<usize>,
    /// The type in the words of JSON Schema.
    pub(crate) kind: &'static str,
    /// The number of elements or members.
    pub(crate) count: Option<usize>,
    /// The first keys of an object.
    pub(crate) keys: Option<Vec<String>>,
}

/// Selects a value. Of several members with one name, the last one counts.
pub(crate) fn select(text: &str, pointer: &str) -> Result<JsonSelection, SelectionError> {
    let tokens = parse_pointer(pointer).ok_or(SelectionError::InvalidPointer)?;
    serde_json::from_str::<IgnoredAny>(text).map_err(|_| SelectionError::NotJson)?;
    let mut value = text.trim_matches([' ', '\t', '\r', '\n']);
    // The bytes of the pointer before the current token.
    let mut read = 0;
    for (raw, token) in tokens {
        let next = match value.as_bytes().first() {
            Some(b'{') => skim::member(value, &token),
            Some(b'[') => array_index(&token).and_then(|index| skim::elements(value).nth(index)),
            _ => None,
        };
        let end = read + 1 + raw.len();
        value = next.ok_or_else(|| {
            let [found, missing] =
                [read, end].map(|end| pointer.get(..end).unwrap_or_default().to_owned());
            let found =
                if found.is_empty() { "the result".to_owned() } else { format!("`{found}`") };
            SelectionError::NotFound { missing, found, kind: kind_with_size(value) }
        })?;
        read = end;
    }
    let start = value.as_ptr().addr() - text.as_ptr().addr();
    let (kind, count, keys) = describe(value);
    Ok(JsonSelection { range: start..start + value.len(), kind, count, keys })
}

/// Returns the tokens of a pointer, each as written and decoded.
fn parse_pointer(pointer: &str) -> Option<Vec<(&str, String)>> {
    if pointer.len() > MAX_POINTER_BYTES {
        return None;
    }
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let tokens = pointer.strip_prefix('/')?.split('/');
    let tokens: Vec<_> =
        tokens.map(|raw| Some((raw, decode_token(raw)?))).collect::<Option<_>>()?;
    (tokens.len() <= MAX_POINTER_TOKENS).then_some(tokens)
}

fn decode_token(raw: &str) -> Option<String> {
    let mut parts = raw.split('~');
    let mut decoded = parts.next()?.to_owned();
    for part in parts {
        let (replaced, rest) = match part.strip_prefix('0') {
            Some(rest) => ('~', rest),
            None => ('/', part.strip_prefix('1')?),
        };
        decoded.push(replaced);
        decoded.push_str(rest);
    }
    Some(decoded)
}

/// Returns the index of a token: digits without leading zeros.
fn array_index(token: &str) -> Option<usize> {
    let is_index = token.bytes().all(|byte| byte.is_ascii_digit())
        && (token == "0" || !token.starts_with('0'));
    is_index.then(|| token.parse().ok()).flatten()
}

/// Describes a value for an error.
fn kind_with_size(value: &str) -> String {
    match describe(value) {
        (kind, Some(count), None) => format!("an {kind} with {count} elements"),
        (kind, Some(count), Some(keys)) => {
            let shown = keys.iter().take(MAX_SHOWN_KEYS);
            let shown: Vec<String> =
                shown.map(|key| Value::from(key.as_str()).to_string()).collect();
            let more = if shown.len() < count { ", …" } else { "" };
            format!("an {kind} with the keys {}{more}", shown.join(", "))
        }
        (kind, None, _) => format!("a {kind}"),
    }
}

/// Returns the type of a value, its size, and its first keys.
fn describe(value: &str) -> (&'static str, Option<usize>, Option<Vec<String>>) {
    match value.as_bytes().first() {
        Some(b'[') => ("array", Some(skim::elements(value).count()), None),
        Some(b'{') => {
            let mut keys = Vec::new();
            let mut count = 0;
            let mut bytes = 0;
            for (key, _) in skim::members(value) {
                count += 1;
                bytes += key.len();
                if keys.len() < MAX_KEYS && bytes <= MAX_KEY_BYTES {
                    keys.push(skim::decode_key(key).into_owned());
                }
            }
            ("object", Some(count), Some(keys))
        }
        Some(b'"') => ("string", None, None),
        Some(b't' | b'f') => ("boolean", None, None),
        Some(b'n') => ("null", None, None),
        _ => ("number", None, None),
    }
}

#[cfg(test)]
mod tests;

//! Canonical JSON for hashes and lock files.
//!
//! Members are sorted by the bytes of their names as written (equal names keep their order),
//! strings have the fewest escapes, numbers stay as written, and white space between tokens is
//! removed. Unreadable JSON stays as written, so that there is always a result.

use std::borrow::Cow;

use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// Maximum depth of canonicalization; deeper JSON stays as written. The same limit applies to
/// parsed values elsewhere.
const MAX_CANONICAL_DEPTH: usize = 128;

pub(super) fn hash_text(text: &str) -> String {
    format!("sha256:{:x}", Sha256::digest(text))
}

/// Hashes a JSON value; equal values have equal hashes.
pub(super) fn hash_json(value: &RawValue) -> String {
    hash_text(&compact(value.get()))
}

/// Returns the canonical form of a JSON text on one line.
pub(super) fn compact(json: &str) -> String {
    canonicalize(json, false)
}

/// Returns the canonical form of a JSON text with one member per line and a final newline.
pub(super) fn pretty(json: &str) -> String {
    let mut out = canonicalize(json, true);
    out.push('\n');
    out
}

fn canonicalize(json: &str, pretty: bool) -> String {
    let mut writer = CanonicalWriter { out: String::with_capacity(json.len()), pretty };
    writer.value(json.trim_ascii(), 0);
    writer.out
}

/// Writes the canonical form of JSON. The writer does not validate: the text is known to be JSON.
struct CanonicalWriter {
    out: String,
    pretty: bool,
}

impl CanonicalWriter {
    fn value(&mut self, json: &str, depth: usize) {
        match json.as_bytes().first() {
            Some(b'{') if depth < MAX_CANONICAL_DEPTH => self.object(json, depth),
            Some(b'[') if depth < MAX_CANONICAL_DEPTH => self.array(json, depth),
            Some(b'"') => self.out.push_str(&canonical_string(json)),
            _ => self.out.push_str(json),
        }
    }

    fn object(&mut self, json: &str, depth: usize) {
        let members = skim::members(json);
        let mut members: Vec<_> = members
            .map(|(key, value)| (canonical_string(&format!("\"{key}\"")).into_owned(), value))
            .collect();
        members.sort_by(|(one, _), (other, _)| strip_quotes(one).cmp(strip_quotes(other)));
        self.out.push('{');
        for (index, (name, value)) in members.iter().enumerate() {
            self.start_item(index, depth);
            self.out.push_str(name);
            self.out.push_str(if self.pretty { ": " } else { ":" });
            self.value(value, depth + 1);
        }
        self.close(members.is_empty(), depth, '}');
    }

    fn array(&mut self, json: &str, depth: usize) {
        let mut items = skim::elements(json).enumerate().peekable();
        let is_empty = items.peek().is_none();
        self.out.push('[');
        for (index, item) in items {
            self.start_item(index, depth);
            self.value(item, depth + 1);
        }
        self.close(is_empty, depth, ']');
    }

    fn start_item(&mut self, index: usize, depth: usize) {
        self.out.push_str(if index > 0 { "," } else { "" });
        self.write_newline(depth + 1);
    }

    fn close(&mut self, empty: bool, depth: usize, bracket: char) {
        if !empty {
            self.write_newline(depth);
        }
        self.out.push(bracket);
    }

    fn write_newline(&mut self, depth: usize) {
        if self.pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", depth));
        }
    }
}

/// Returns the canonical spelling of a string, or its spelling if it is not valid Unicode.
fn canonical_string(spelled: &str) -> Cow<'_, str> {
    if !spelled.contains('\\') {
        return Cow::Borrowed(spelled);
    }
    let unescaped = serde_json::from_str::<String>(spelled);
    let quoted = unescaped.and_then(|unescaped| serde_json::to_string(&unescaped));
    quoted.map_or(Cow::Borrowed(spelled), Cow::Owned)
}

/// Returns the spelling of a string without its quotes.
fn strip_quotes(quoted: &str) -> &str {
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or(quoted)
}

//! Canonical JSON for hashes and lock files.
//!
//! Members are sorted by the bytes of their names as written (equal names keep their order),
//! strings have the fewest escapes, numbers stay as written, and white space between tokens is
//! removed. Unreadable JSON stays as written, so that there is always a result.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// Maximum depth of canonicalization; deeper JSON stays as written. The same limit applies to
/// parsed values elsewhere.
const MAX_CANONICAL_DEPTH: usize = 128;

/// Hashes a text.
pub(super) fn hash_text(text: &str) -> String {
    let mut hash = String::from("sha256:");
    for byte in Sha256::digest(text) {
        // Writing to a string cannot fail.
        let _ = write!(hash, "{byte:02x}");
    }
    hash
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
    let out = String::with_capacity(json.len());
    let mut writer = CanonicalWriter { json, at: 0, out, pretty };
    writer.value(0);
    writer.out
}

/// A single-pass reader of JSON that writes the canonical form. The writer does not validate: the
/// text is known to be JSON.
struct CanonicalWriter<'j> {
    json: &'j str,
    at: usize,
    out: String,
    pretty: bool,
}

impl<'j> CanonicalWriter<'j> {
    fn value(&mut self, depth: usize) {
        match self.next() {
            Some(b'{') if depth < MAX_CANONICAL_DEPTH => self.object(depth),
            Some(b'[') if depth < MAX_CANONICAL_DEPTH => self.array(depth),
            Some(b'"') => {
                let text = self.string();
                self.out.push_str(&text);
            }
            Some(b'{' | b'[') => {
                let from = self.at;
                self.skip();
                self.copy(from);
            }
            Some(_) => {
                let from = self.at;
                let rest = self.json.as_bytes()[from..].iter();
                self.at += rest.take_while(|byte| !b",]} \t\r\n".contains(byte)).count().max(1);
                self.copy(from);
            }
            None => {}
        }
    }

    fn object(&mut self, depth: usize) {
        self.at += 1;
        let start = self.out.len();
        let mut members = Vec::new();
        while let Some(byte @ (b'"' | b',')) = self.next() {
            if byte == b',' {
                self.at += 1;
                continue;
            }
            let (name, from) = (self.string(), self.out.len() - start);
            self.write_newline(depth + 1);
            self.out.push_str(&name);
            self.out.push_str(if self.pretty { ": " } else { ":" });
            // The colon.
            self.next();
            self.at += 1;
            self.value(depth + 1);
            members.push((name, from..self.out.len() - start));
        }
        self.at += 1;
        members.sort_by(|one, other| strip_quotes(&one.0).cmp(strip_quotes(&other.0)));
        let unsorted = self.out.split_off(start);
        self.out.push('{');
        for (index, (_, range)) in members.iter().enumerate() {
            self.out.push_str(if index > 0 { "," } else { "" });
            self.out.push_str(&unsorted[range.clone()]);
        }
        self.close(members.is_empty(), depth, '}');
    }

    fn array(&mut self, depth: usize) {
        self.at += 1;
        self.out.push('[');
        let mut empty = true;
        while let Some(byte) = self.next().filter(|byte| *byte != b']') {
            if byte == b',' {
                self.at += 1;
                continue;
            }
            self.out.push_str(if empty { "" } else { "," });
            self.write_newline(depth + 1);
            self.value(depth + 1);
            empty = false;
        }
        self.at += 1;
        self.close(empty, depth, ']');
    }

    /// Returns the next byte that is not white space.
    fn next(&mut self) -> Option<u8> {
        let rest = self.json.as_bytes().get(self.at..)?.iter();
        self.at += rest.take_while(|byte| b" \t\r\n".contains(byte)).count();
        self.json.as_bytes().get(self.at).copied()
    }

    /// Consumes a string and returns its canonical spelling, or its spelling if it is not valid
    /// Unicode.
    fn string(&mut self) -> Cow<'j, str> {
        let from = self.at;
        self.skip();
        let spelled = self.json.get(from..self.at).unwrap_or_default();
        if !spelled.contains('\\') {
            return Cow::Borrowed(spelled);
        }
        let unescaped = serde_json::from_str::<String>(spelled);
        let quoted = unescaped.and_then(|unescaped| serde_json::to_string(&unescaped));
        quoted.map_or(Cow::Borrowed(spelled), Cow::Owned)
    }

    /// Consumes a string, or an object or array with its content.
    fn skip(&mut self) {
        let (mut open, mut within, mut escaped) = (0_usize, false, false);
        for byte in &self.json.as_bytes()[self.at..] {
            self.at += 1;
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => within = !within,
                b'{' | b'[' if !within => open += 1,
                b'}' | b']' if !within => open = open.saturating_sub(1),
                _ => {}
            }
            if open == 0 && !within {
                return;
            }
        }
    }

    fn copy(&mut self, from: usize) {
        self.out.push_str(self.json.get(from..self.at).unwrap_or_default());
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

/// Returns the spelling of a string without its quotes.
fn strip_quotes(quoted: &str) -> &str {
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or(quoted)
}

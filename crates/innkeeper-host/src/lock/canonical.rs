//! One spelling for equal JSON: what is hashed, and how a lock file is laid out.
//!
//! Members are sorted by the bytes of their names as written (equal names keep their order), strings
//! are written with the fewest escapes, numbers stay as they are spelled, and white space between
//! tokens goes. What cannot be read is taken as it is spelled, so that there is always an answer.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// How deep is looked; below, JSON is taken as it is spelled. As deep as values are read elsewhere.
const DEPTH: usize = 128;

/// The hash of a text.
pub(super) fn hash(text: &str) -> String {
    let mut words = String::from("sha256:");
    for byte in Sha256::digest(text) {
        // Writing to a string cannot fail.
        let _ = write!(words, "{byte:02x}");
    }
    words
}

/// The hash of a JSON value, the same for every spelling of it.
pub(super) fn hash_of(value: &RawValue) -> String {
    hash(&compact(value.get()))
}

/// The canonical form of a JSON text on one line.
pub(super) fn compact(json: &str) -> String {
    written(json, false)
}

/// The canonical form of a JSON text with one member a line, ended by a newline.
pub(super) fn pretty(json: &str) -> String {
    let mut out = written(json, true);
    out.push('\n');
    out
}

fn written(json: &str, pretty: bool) -> String {
    let out = String::with_capacity(json.len());
    let mut writer = Writer { json, at: 0, out, pretty };
    writer.value(0);
    writer.out
}

/// Reads a JSON text once, from front to back, and writes its canonical form. Nothing is checked:
/// the text is known to be JSON.
struct Writer<'j> {
    json: &'j str,
    at: usize,
    out: String,
    pretty: bool,
}

impl<'j> Writer<'j> {
    fn value(&mut self, depth: usize) {
        match self.next() {
            Some(b'{') if depth < DEPTH => self.object(depth),
            Some(b'[') if depth < DEPTH => self.array(depth),
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
            self.line(depth + 1);
            self.out.push_str(&name);
            self.out.push_str(if self.pretty { ": " } else { ":" });
            // The colon.
            self.next();
            self.at += 1;
            self.value(depth + 1);
            members.push((name, from..self.out.len() - start));
        }
        self.at += 1;
        members.sort_by(|one, other| inside(&one.0).cmp(inside(&other.0)));
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
            self.line(depth + 1);
            self.value(depth + 1);
            empty = false;
        }
        self.at += 1;
        self.close(empty, depth, ']');
    }

    /// The next byte that is no white space.
    fn next(&mut self) -> Option<u8> {
        let rest = self.json.as_bytes().get(self.at..)?.iter();
        self.at += rest.take_while(|byte| b" \t\r\n".contains(byte)).count();
        self.json.as_bytes().get(self.at).copied()
    }

    /// Passes a string and gives its one spelling; the given one where it is no Unicode.
    fn string(&mut self) -> Cow<'j, str> {
        let from = self.at;
        self.skip();
        let spelled = self.json.get(from..self.at).unwrap_or_default();
        if !spelled.contains('\\') {
            return Cow::Borrowed(spelled);
        }
        let meant = serde_json::from_str::<String>(spelled);
        let quoted = meant.and_then(|meant| serde_json::to_string(&meant));
        quoted.map_or(Cow::Borrowed(spelled), Cow::Owned)
    }

    /// Passes a string, or an object or array with all that is in it.
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
            self.line(depth);
        }
        self.out.push(bracket);
    }

    fn line(&mut self, depth: usize) {
        if self.pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", depth));
        }
    }
}

/// A string's spelling without its quotes.
fn inside(quoted: &str) -> &str {
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or(quoted)
}

//! One spelling for equal JSON: what is hashed, and how a lock file is laid out.
//!
//! Members are sorted by the bytes of their names (equal names keep their order), strings are
//! written with the fewest escapes, numbers stay as they are spelled, and white space between
//! tokens goes. What cannot be read is taken as it is spelled, so that there is always an answer.

use std::fmt::{self, Write};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
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

/// The canonical form on one line.
pub(super) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    Writer { out: &mut out, pretty: false }.value(json, 0);
    out
}

/// The canonical form with one member a line, ended by a newline.
pub(super) fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    Writer { out: &mut out, pretty: true }.value(json, 0);
    out.push('\n');
    out
}

struct Writer<'o> {
    out: &'o mut String,
    pretty: bool,
}

impl Writer<'_> {
    fn value(&mut self, json: &str, depth: usize) {
        let json = json.trim_matches([' ', '\t', '\r', '\n']);
        let known = match json.as_bytes().first() {
            _ if depth > DEPTH => None,
            Some(b'{') => serde_json::from_str(json).ok().map(|read| self.object(read, depth)),
            Some(b'[') => serde_json::from_str(json).ok().map(|read| self.array(read, depth)),
            Some(b'"') => serde_json::from_str(json).ok().map(|read: String| self.string(&read)),
            Some(_) | None => None,
        };
        if known.is_none() {
            self.out.push_str(json);
        }
    }

    fn object(&mut self, Members(mut members): Members<'_>, depth: usize) {
        members.sort_by(|one, other| one.0.cmp(&other.0));
        self.out.push('{');
        for (index, (name, value)) in members.iter().enumerate() {
            self.item(index, depth + 1);
            self.string(name);
            self.out.push_str(if self.pretty { ": " } else { ":" });
            self.value(value.get(), depth + 1);
        }
        self.close(members.is_empty(), depth, '}');
    }

    fn array(&mut self, items: Vec<&RawValue>, depth: usize) {
        self.out.push('[');
        let empty = items.is_empty();
        for (index, value) in items.into_iter().enumerate() {
            self.item(index, depth + 1);
            self.value(value.get(), depth + 1);
        }
        self.close(empty, depth, ']');
    }

    fn string(&mut self, text: &str) {
        match serde_json::to_string(text) {
            Ok(quoted) => self.out.push_str(&quoted),
            Err(_) => self.out.push_str(text),
        }
    }

    fn item(&mut self, index: usize, depth: usize) {
        if index > 0 {
            self.out.push(',');
        }
        self.line(depth);
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

/// The members of an object in their order, doubled names included.
struct Members<'j>(Vec<(String, &'j RawValue)>);

impl<'j> Deserialize<'j> for Members<'j> {
    fn deserialize<D: Deserializer<'j>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'j> Visitor<'j> for Reader {
    type Value = Members<'j>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

//! The searchable strings of a body or a JSON value.
//!
//! A model streams a secret in pieces: `sk-ab` in one event, `cdef` in the next. Strings at the same
//! place of consecutive events are therefore searched as one text, without knowing the provider's
//! API. A body is read as a sequence of JSON values, with or without the framing of server-sent
//! events; everything else in it is plain text.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::document::{Decoded, Document, Grouping, Leaf, LeafKind, scan};
use super::edits::{Edit, normalize};
use super::secrets::Secrets;

/// Maximum size of a value that is shown to the detector with its key.
const MAX_MEMBER_BYTES: usize = 1024;

pub(super) struct Strings<'t> {
    text: &'t str,
    leaves: Vec<Leaf>,
    /// For each grouping, the keys of all leaves; empty if no string continues another one.
    group_keys: [Vec<u64>; Grouping::ALL.len()],
    /// What is outside of JSON.
    plain: Vec<Range<usize>>,
}

/// Strings that are searched as one text.
struct Group<'t> {
    text: String,
    /// Each leaf with its position in the text.
    parts: Vec<(usize, &'t Leaf, Decoded<'t>)>,
}

impl<'t> Strings<'t> {
    /// Takes the strings of one JSON value.
    pub(super) fn from_json(text: &'t str) -> Self {
        let mut strings =
            Self { text, leaves: Vec::new(), group_keys: Default::default(), plain: Vec::new() };
        let document = scan(text.as_bytes(), 0);
        if !document.is_complete {
            strings.plain.push(0..text.len());
        }
        strings.leaves = document.leaves;
        strings
    }

    pub(super) fn from_body(text: &'t str) -> Self {
        let mut strings =
            Self { text, leaves: Vec::new(), group_keys: Default::default(), plain: Vec::new() };
        let view = mask_event_fields(text.as_bytes());
        let mut at = 0;
        let mut plain_start = 0;
        while at < view.len() {
            let byte = view[at];
            if byte.is_ascii_whitespace() {
                at += 1;
                continue;
            }
            let document =
                if matches!(byte, b'{' | b'[') { scan(&view, at) } else { Document::default() };
            if document.is_complete && ends_value(&view[document.end..]) {
                strings.plain.push(plain_start..at);
                at = document.end;
                plain_start = at;
            } else {
                let line_len = view[at..].iter().position(|byte| *byte == b'\n');
                let line_end = line_len.map_or(view.len(), |len| at + len);
                strings.push_plain_line(at..line_end);
                at = if document.end > line_end {
                    let rest = view[document.end..].iter().position(|byte| *byte == b'\n');
                    rest.map_or(view.len(), |len| document.end + len)
                } else {
                    line_end
                };
            }
            strings.push_document(&view, document);
        }
        strings.plain.push(plain_start..view.len());
        strings
    }

    fn push_document(&mut self, view: &[u8], document: Document) {
        for (grouping, keys) in Grouping::ALL.into_iter().zip(&mut self.group_keys) {
            keys.extend(document.group_keys(view, grouping));
        }
        self.leaves.extend(document.leaves);
    }

    /// Adds a line that is not JSON: such lines continue each other.
    fn push_plain_line(&mut self, raw: Range<usize>) {
        let end = raw.start + self.text[raw.clone()].trim_end().len();
        self.leaves.push(Leaf::plain(raw.start..end));
        for keys in &mut self.group_keys {
            keys.push(0);
        }
    }

    fn decode(&self, leaf: &Leaf) -> Decoded<'t> {
        let raw = &self.text[leaf.raw.clone()];
        match leaf.kind {
            LeafKind::Key | LeafKind::String => Decoded::from_json(raw),
            LeafKind::Number | LeafKind::Plain => Decoded::from_plain(raw),
        }
    }

    /// Returns the positions of the leaves that continue each other.
    fn grouped_leaves(&self, grouping: Grouping) -> Vec<Vec<usize>> {
        let keys = &self.group_keys[grouping as usize];
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut by_key = HashMap::new();
        for (at, leaf) in self.leaves.iter().enumerate() {
            match (leaf.kind, keys.get(at)) {
                (LeafKind::Number, _) => {}
                (LeafKind::String | LeafKind::Plain, Some(key)) => {
                    let group = *by_key.entry(key).or_insert_with(|| {
                        groups.push(Vec::new());
                        groups.len() - 1
                    });
                    groups[group].push(at);
                }
                (LeafKind::Key | LeafKind::String | LeafKind::Plain, _) => groups.push(vec![at]),
            }
        }
        groups
    }

    fn group<'s>(&'s self, leaves: &[usize]) -> Group<'s> {
        let mut parts = Vec::with_capacity(leaves.len());
        let mut len = 0;
        for leaf in leaves {
            let leaf = &self.leaves[*leaf];
            let decoded = self.decode(leaf);
            let begin = len;
            len += decoded.text.len();
            parts.push((begin, leaf, decoded));
        }
        let text = parts.iter().map(|(_, _, decoded)| &*decoded.text).collect();
        Group { text, parts }
    }

    /// Returns the groups of each grouping, without those of an earlier one.
    fn distinct_groups(&self) -> Vec<Vec<Vec<usize>>> {
        let mut groupings = vec![self.grouped_leaves(Grouping::Numbered)];
        if !self.group_keys.iter().all(Vec::is_empty) {
            let mut known: HashSet<Vec<usize>> =
                groupings[0].iter().filter(|leaves| leaves.len() > 1).cloned().collect();
            for grouping in [Grouping::Typed, Grouping::Path, Grouping::Name] {
                let mut groups = self.grouped_leaves(grouping);
                // One string alone is always part of a group of the first grouping.
                groups.retain(|leaves| leaves.len() > 1 && known.insert(leaves.clone()));
                groupings.push(groups);
            }
        }
        groupings
    }

    /// Returns the replacements of the first grouping that needs some.
    pub(super) fn edits(&self, secrets: &Secrets) -> Vec<Edit> {
        let mut edits = self.plain_edits(secrets);
        for groups in self.distinct_groups() {
            for leaves in groups {
                let group = self.group(&leaves);
                let matches = secrets.find(group.text.as_bytes());
                if !matches.is_empty() {
                    group.push_edits(&secrets.edits(matches), &mut edits);
                }
            }
            if !edits.is_empty() {
                break;
            }
        }
        normalize(edits)
    }

    /// Returns the replacements outside of strings.
    fn plain_edits(&self, secrets: &Secrets) -> Vec<Edit> {
        let mut edits = Vec::new();
        for range in &self.plain {
            for mut edit in secrets.edits(secrets.find(self.text[range.clone()].as_bytes())) {
                edit.range = edit.range.start + range.start..edit.range.end + range.start;
                edits.push(edit);
            }
        }
        for leaf in self.leaves.iter().filter(|leaf| leaf.kind == LeafKind::Number) {
            let number = &self.text[leaf.raw.clone()];
            if let Some(found) = secrets
                .find(number.as_bytes())
                .into_iter()
                .find(|found| found.range == (0..number.len()))
            {
                let text = format!("\"{}\"", secrets.placeholder(found.secret));
                edits.push(Edit { range: leaf.raw.clone(), text });
            }
        }
        edits
    }

    /// Shows everything to the detector; see [`Secrets::collect`].
    pub(super) fn collect(&self, secrets: &mut Secrets, known: usize) -> Option<usize> {
        let mut unreplaced = None;
        for range in &self.plain {
            unreplaced = unreplaced.or(secrets.collect(&self.text[range.clone()], known));
        }
        for leaf in self.leaves.iter().filter(|leaf| leaf.kind != LeafKind::Number) {
            let decoded = self.decode(leaf);
            unreplaced = unreplaced.or(secrets.collect(&decoded.text, known));
            if let Some(key) = leaf.member_key()
                && decoded.text.len() <= MAX_MEMBER_BYTES
            {
                let key = Decoded::from_json(&self.text[key]);
                let found = secrets.collect_member(&key.text, &decoded.text, known);
                unreplaced = unreplaced.or(found);
            }
        }
        for leaves in self.distinct_groups().iter().flatten().filter(|leaves| leaves.len() > 1) {
            unreplaced = unreplaced.or(secrets.collect(&self.group(leaves).text, known));
        }
        unreplaced
    }

    /// Returns a secret that is still there, in a string or across the text as it is written.
    pub(super) fn find_leak(&self, secrets: &Secrets) -> Option<usize> {
        let in_strings = self.distinct_groups().iter().flatten().find_map(|leaves| {
            secrets.find(self.group(leaves).text.as_bytes()).first().map(|found| found.secret)
        });
        // The first letter after a backslash belongs to an escape, and numbers are compared as a
        // whole.
        in_strings.or_else(|| {
            let as_written = secrets.find(self.text.as_bytes()).into_iter().find(|found| {
                self.text.as_bytes()[found.range.start] != b'\\' && !secrets.is_number(found.secret)
            });
            as_written.map(|found| found.secret)
        })
    }
}

impl Group<'_> {
    /// Turns replacements in the text into replacements in its leaves: the first leaf gets the
    /// placeholder, the others lose their parts.
    fn push_edits(&self, replacements: &[Edit], edits: &mut Vec<Edit>) {
        for Edit { range, text } in replacements {
            let mut placeholder = text.as_str();
            let first = self.parts.partition_point(|(begin, _, _)| *begin <= range.start);
            for (begin, leaf, decoded) in &self.parts[first.saturating_sub(1)..] {
                let start = range.start.max(*begin);
                let end = range.end.min(begin + decoded.text.len());
                if *begin >= range.end {
                    break;
                }
                if start >= end {
                    continue;
                }
                let start = leaf.raw.start + decoded.raw_position(start - begin);
                let end = leaf.raw.start + decoded.raw_position(end - begin);
                edits.push(Edit { range: start..end, text: placeholder.to_owned() });
                placeholder = "";
            }
        }
    }
}

/// Returns whether a JSON value ends where its line or the next value allows it.
fn ends_value(rest: &[u8]) -> bool {
    let next = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    matches!(next, None | Some(b'\n' | b'{' | b'['))
}

/// Replaces the framing of server-sent events by blanks, so that each position stays. A body without
/// events stays as it is.
fn mask_event_fields(text: &[u8]) -> Cow<'_, [u8]> {
    const FIELD: &[u8] = b"data:";
    const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
    let mut view = text.to_vec();
    if view.starts_with(BYTE_ORDER_MARK) {
        view[..BYTE_ORDER_MARK.len()].fill(b' ');
        // The first field begins at the start of its line.
        if view[BYTE_ORDER_MARK.len()..].starts_with(FIELD) {
            view[BYTE_ORDER_MARK.len()..BYTE_ORDER_MARK.len() + FIELD.len()].fill(b' ');
        }
    }
    // A line may end with a carriage return alone.
    for byte in view.iter_mut().filter(|byte| **byte == b'\r') {
        *byte = b'\n';
    }
    let has_events = view.split(|byte| *byte == b'\n').any(|line| line.starts_with(FIELD));
    if !has_events {
        return Cow::Owned(view);
    }
    for line in view.split_mut(|byte| *byte == b'\n') {
        let is_other_field =
            [&b":"[..], b"event:", b"id:", b"retry:"].iter().any(|field| line.starts_with(field));
        let masked = if line.starts_with(FIELD) {
            FIELD.len()
        } else if is_other_field {
            line.len()
        } else {
            0
        };
        line[..masked].fill(b' ');
    }
    Cow::Owned(view)
}

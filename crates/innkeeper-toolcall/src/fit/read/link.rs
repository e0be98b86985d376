//! What stands elsewhere or beside: `$ref` and `allOf`.

use serde_json::{Map, Value};

use super::{How, Reader};
use crate::fit::losses::Change;
use crate::fit::merge::merge;
use crate::fit::node::{Link, Node, Sub};

/// References that lead to nothing but a reference, one after the other.
const LONGEST_CHAIN: usize = 32;

impl<'a> Reader<'a, '_> {
    /// Adds to a node what its `$ref` and its `allOf` say.
    pub(super) fn link(
        &mut self,
        node: &mut Node,
        map: &'a Map<String, Value>,
        depth: usize,
        how: How,
    ) {
        let at = node.at.clone();
        let all = map.get("allOf").and_then(Value::as_array).map(Vec::as_slice);
        if map.contains_key("allOf") && all.is_none_or(<[Value]>::is_empty) {
            self.losses.add(&at, "allOf", Change::Dropped);
        }
        let mut members = all.unwrap_or_default();
        let mut reference = map.get("$ref");
        if let (None, [only]) = (reference, members)
            && let Some(inner) = bare(only)
        {
            (reference, members) = (Some(inner), &[]);
        }
        let mut parts = Vec::new();
        if let Some(reference) = reference {
            match reference.as_str().and_then(|text| self.resolve(text)) {
                None => self.losses.add(&at, "$ref", Change::Widened),
                Some((pointer, value)) => {
                    let alone = !node.asserts() && node.any_of.is_empty() && members.is_empty();
                    if !how.inline && (!how.merge || alone) {
                        node.link = Link::Definition(self.keep(&pointer));
                    } else {
                        if alone {
                            node.at.clone_from(&pointer);
                        }
                        parts.push(self.inline(value, &pointer, depth, how));
                    }
                }
            }
        }
        if how.merge {
            for (nth, member) in members.iter().enumerate() {
                let inside = How { merge: true, inline: true };
                parts.push(self.node(member, &format!("{at}/allOf/{nth}"), depth + 1, inside));
            }
        } else if !members.is_empty() {
            let list = self.list(
                &at,
                "allOf",
                map.get("allOf").unwrap_or(&Value::Null),
                depth,
                self.usual,
            );
            node.rest.push(("allOf", Sub::List(list)));
        }
        if how.merge || (!node.asserts() && node.any_of.is_empty()) {
            for part in parts {
                merge(node, part, self.losses);
            }
        } else if !parts.is_empty() {
            match node.rest.iter_mut().find(|(key, _)| *key == "allOf") {
                Some((_, Sub::List(list))) => list.extend(parts),
                Some(_) | None => node.rest.push(("allOf", Sub::List(parts))),
            }
        }
    }

    /// Reads what a reference leads to in its place, unless that is where we are.
    fn inline(&mut self, value: &'a Value, pointer: &str, depth: usize, how: How) -> Node {
        if self.open.iter().any(|open| open == pointer) {
            self.losses.add(pointer, "$ref", Change::Widened);
            return Node { link: Link::Cut, ..Node::any(pointer) };
        }
        self.open.push(pointer.to_owned());
        let node = self.node(value, pointer, depth + 1, how);
        self.open.pop();
        node
    }

    /// The number of the definition that a reference will lead to.
    fn keep(&mut self, pointer: &str) -> usize {
        if let Some(at) = self.numbers.get(pointer) {
            return *at;
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let plain = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
        let stem: String = last.chars().filter(plain).collect();
        let mut name = if stem.is_empty() { "schema".to_owned() } else { stem.clone() };
        let at = self.kept.len();
        let mut number = at;
        while !self.names.insert(name.clone()) {
            number += 1;
            name = format!("{stem}_{number}");
        }
        self.numbers.insert(pointer.to_owned(), at);
        self.kept.push((pointer.to_owned(), name));
        at
    }

    /// Where a reference leads in this schema, past what is nothing but a reference itself.
    fn resolve(&self, reference: &str) -> Option<(String, &'a Value)> {
        let mut reference = reference;
        for _ in 0..LONGEST_CHAIN {
            let (base, fragment) = reference.split_once('#')?;
            let own = ["$id", "id"].iter().find_map(|key| self.root.get(*key)?.as_str());
            if !base.is_empty() && own.map(|id| id.trim_end_matches('#')) != Some(base) {
                return None;
            }
            let decoded = decoded(fragment);
            let (pointer, value) = [fragment, &decoded]
                .into_iter()
                .find_map(|pointer| Some((pointer, self.root.pointer(pointer)?)))?;
            match bare(value).and_then(Value::as_str) {
                Some(next) => reference = next,
                None => return Some((pointer.to_owned(), value)),
            }
        }
        None
    }
}

/// The reference of a schema that is nothing else.
fn bare(schema: &Value) -> Option<&Value> {
    let map = schema.as_object().filter(|map| map.len() == 1)?;
    map.get("$ref")
}

/// The text of a fragment without its percent signs; as it is where they are wrong.
fn decoded(fragment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = fragment.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let code = code.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match (first, code) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| fragment.to_owned())
}

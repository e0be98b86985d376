//! Members of nested objects, given as `KEY.MEMBER=VALUE`.

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Nested objects by the key of their argument.
#[derive(Debug, Default)]
pub(super) struct NestedArguments(IndexMap<String, Node>);

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Node {
    Value(Box<RawValue>),
    Object(IndexMap<String, Self>),
}

impl NestedArguments {
    /// Adds a value; returns false if the path has a value, or leads through one.
    pub(super) fn insert(&mut self, path: &[&str], value: Box<RawValue>) -> bool {
        let Some((last, outer)) = path.split_last() else { return false };
        let mut members = &mut self.0;
        for key in outer {
            match members.entry((*key).to_owned()).or_insert_with(|| Node::Object(IndexMap::new()))
            {
                Node::Object(inner) => members = inner,
                Node::Value(_) => return false,
            }
        }
        let is_free = !members.contains_key(*last);
        if is_free {
            members.insert((*last).to_owned(), Node::Value(value));
        }
        is_free
    }

    /// Returns the objects as JSON text.
    pub(super) fn into_members(self) -> impl Iterator<Item = (String, Box<RawValue>)> {
        self.0.into_iter().filter_map(|(key, node)| Some((key, to_raw_value(&node).ok()?)))
    }
}

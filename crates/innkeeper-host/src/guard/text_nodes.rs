//! Walks the strings of JSON text within a budget: everything, or the front and the back.
//!
//! The walk reads the text, not a parsed value: the text is what the host forwards, and a parsed
//! value has only one of several members with the same name.

use std::borrow::Cow;
use std::ops::ControlFlow;

use innkeeper_protocol::skim;

use super::binary_members::BinaryMembers;
use crate::text::{JsonNode, PathSegment, VisibleMembers, segment_names, walk_json};

/// Maximum number of bytes scanned at the front: more than any known definition, and a long book
/// chapter.
pub(super) const MAX_FRONT_BYTES: usize = 1 << 20;

/// Maximum number of bytes scanned at the back of a longer text, where attackers append to it.
pub(super) const MAX_BACK_BYTES: usize = 16 << 10;

/// The reason for a text that does not fit.
pub(super) const TOO_LONG: &str = "not scanned: more than 1 MiB of text in one message";

/// Minimum cost of a string in bytes, which bounds a list of empty strings.
const MIN_TEXT_COST: usize = 32;

/// Minimum length of a scanned string in bytes.
const MIN_TEXT_BYTES: usize = 2;

/// One string of a value, with its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextNode<'p> {
    /// Path of the string; for a member name, the path of the object.
    pub(super) steps: &'p [PathSegment<'p>],
    pub(super) text: &'p str,
    pub(super) is_name: bool,
}

impl<'p> TextNode<'p> {
    /// Returns the innermost name on the path.
    pub(super) fn name(&self) -> &'p str {
        segment_names(self.steps).next_back().unwrap_or_default()
    }
}

/// A part of a value that a scan inspects.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScannedNode<'p> {
    Text(TextNode<'p>),
    /// The path of an object that has two members with the same name.
    DuplicateKey(&'p [PathSegment<'p>]),
    /// The path of the first text that is longer than what remains of the budget.
    NotScanned(&'p [PathSegment<'p>]),
}

/// The members that a walk skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SkippedMembers {
    /// None.
    None,
    /// Those of a definition that no model sees.
    NotModelVisible,
}

/// Passes the strings and member names of JSON text to `each`, front first, until `each` returns
/// `Break`. The walk reads every member, also several with the same name, and reports such names
/// for the entire text.
pub(super) fn walk_text_nodes(
    json: &str,
    skipped: SkippedMembers,
    mut each: impl FnMut(ScannedNode<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut total_cost = 0;
    walk_texts(json, skipped, |path, item| match item {
        TextItem::DuplicateKey => each(ScannedNode::DuplicateKey(path)),
        TextItem::Text { text, is_name } => {
            let remaining = MAX_FRONT_BYTES.saturating_sub(total_cost);
            let was_within = total_cost <= MAX_FRONT_BYTES;
            total_cost += text_cost(text);
            if was_within && total_cost > MAX_FRONT_BYTES {
                each(ScannedNode::NotScanned(path))?;
            }
            visit_text(path, head(text, remaining), is_name, &mut each)
        }
    })?;
    if total_cost <= MAX_FRONT_BYTES {
        return ControlFlow::Continue(());
    }
    let mut following_cost = total_cost;
    walk_texts(json, skipped, |path, item| match item {
        TextItem::DuplicateKey => ControlFlow::Continue(()),
        TextItem::Text { text, is_name } => {
            following_cost -= text_cost(text);
            let remaining = MAX_BACK_BYTES.saturating_sub(following_cost);
            visit_text(path, tail(text, remaining), is_name, &mut each)
        }
    })
}

fn visit_text(
    steps: &[PathSegment<'_>],
    text: &str,
    is_name: bool,
    each: &mut impl FnMut(ScannedNode<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if text.len() < MIN_TEXT_BYTES {
        return ControlFlow::Continue(());
    }
    each(ScannedNode::Text(TextNode { steps, text, is_name }))
}

fn text_cost(text: &str) -> usize {
    text.len().max(MIN_TEXT_COST)
}

/// A text of the walk, before the budget applies.
enum TextItem<'t> {
    Text { text: &'t str, is_name: bool },
    DuplicateKey,
}

/// Passes every text to `each`, except skipped members and binary data.
fn walk_texts<'j>(
    json: &'j str,
    skipped: SkippedMembers,
    mut each: impl FnMut(&[PathSegment<'j>], TextItem<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut visible = VisibleMembers::default();
    let mut binary = BinaryMembers::default();
    walk_json(json, |path, node| {
        let is_visible = skipped == SkippedMembers::None || visible.is_visible(path, node);
        match node {
            JsonNode::ObjectStart => binary.start_object(path.len()),
            JsonNode::Member { name, .. } if is_visible => {
                each(path, TextItem::Text { text: name, is_name: true })?;
            }
            JsonNode::String(raw) if is_visible && !binary.defer(path, raw) => {
                each(path, TextItem::Text { text: &decode(raw), is_name: false })?;
            }
            JsonNode::Member { .. } | JsonNode::String(_) => {}
            JsonNode::ObjectEnd { has_duplicate } => {
                if has_duplicate {
                    each(path, TextItem::DuplicateKey)?;
                }
                for (name, raw) in binary.end_object(has_duplicate) {
                    let path = [path, &[PathSegment::Name(name.into())]].concat();
                    each(&path, TextItem::Text { text: &decode(raw), is_name: false })?;
                }
            }
        }
        ControlFlow::Continue(())
    })
}

/// Decodes a string. A string that cannot be decoded counts as written.
pub(super) fn decode(raw: &str) -> Cow<'_, str> {
    skim::decode_string(raw).unwrap_or(Cow::Borrowed(raw))
}

/// Returns a text that is not JSON, or its front and its back.
pub(super) fn front_and_back(text: &str) -> impl Iterator<Item = ScannedNode<'_>> {
    let front = head(text, MAX_FRONT_BYTES);
    let rest = &text[front.len()..];
    let back = (!rest.is_empty()).then(|| root_text(tail(rest, MAX_BACK_BYTES)));
    let missing = (!rest.is_empty()).then_some(ScannedNode::NotScanned(&[]));
    missing.into_iter().chain([root_text(front)]).chain(back)
}

fn root_text(text: &str) -> ScannedNode<'_> {
    ScannedNode::Text(TextNode { steps: &[], text, is_name: false })
}

/// Returns at most `max_bytes` bytes of the start.
fn head(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// Returns at most `max_bytes` bytes of the end.
fn tail(text: &str, max_bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max_bytes))..]
}

#[cfg(test)]
mod tests;

//! The rule that the whole result is equal.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::{MAX_MISMATCHES, Mismatch};
use crate::difference::differences;
use crate::json::{Document, Node, Value};
use crate::varying::{VARYING_OUTPUT_FIELDS, VaryingKind, is_varying_in_output};

/// Returns the fields that differ, but for what differs from run to run. Ids may differ as long as
/// each one stands for the same thing in all places.
pub(super) fn find_differences(golden: &RawValue, actual: &RawValue) -> Vec<Mismatch> {
    let found = differences(golden, actual, &is_varying_in_output, MAX_MISMATCHES);
    if !found.is_empty() {
        return found.into_iter().map(Mismatch::FieldDiffers).collect();
    }
    compare_ids(&find_ids(golden), &find_ids(actual)).into_iter().collect()
}

/// An id, or the missing id in the place of one.
struct PlacedId {
    place: String,
    id: Option<String>,
}

fn find_ids(output: &RawValue) -> Vec<PlacedId> {
    let document = Document::new(output);
    let mut ids = Vec::new();
    for field in VARYING_OUTPUT_FIELDS.iter().filter(|field| field.kind == VaryingKind::Id) {
        let steps: Vec<&str> = field.pattern.split('/').skip(1).collect();
        push_ids(document.root(), &steps, "", &mut ids);
    }
    ids
}

fn push_ids(value: Value<'_>, steps: &[&str], place: &str, ids: &mut Vec<PlacedId>) {
    let Some((step, rest)) = steps.split_first() else {
        let id = match value.node() {
            Node::String(id) => Some(id),
            Node::Literal(_) | Node::Array(_) | Node::Object(_) => None,
        };
        return ids.push(PlacedId { place: place.to_owned(), id });
    };
    match value.node() {
        Node::Object(members) => {
            for (_, value) in members.iter().filter(|(key, _)| key == step) {
                push_ids(*value, rest, &format!("{place}/{step}"), ids);
            }
        }
        Node::Array(items) => {
            for (at, item) in items.enumerate() {
                push_ids(item, rest, &format!("{place}/{at}"), ids);
            }
        }
        Node::Literal(_) | Node::String(_) => {}
    }
}

/// Returns the first place whose id does not stand for what it stands for elsewhere.
fn compare_ids(golden: &[PlacedId], actual: &[PlacedId]) -> Option<Mismatch> {
    let mut actual_ids: HashMap<&str, &str> = HashMap::new();
    let mut golden_ids: HashMap<&str, &str> = HashMap::new();
    for at in 0..golden.len().max(actual.len()) {
        let expected = golden.get(at);
        let got = actual.get(at);
        let is_same = match (expected, got) {
            (Some(expected), Some(got)) if expected.place == got.place => {
                match (expected.id.as_deref(), got.id.as_deref()) {
                    (Some(expected), Some(got)) => {
                        *actual_ids.entry(expected).or_insert(got) == got
                            && *golden_ids.entry(got).or_insert(expected) == expected
                    }
                    (expected, got) => expected == got,
                }
            }
            _ => false,
        };
        if !is_same {
            let place = expected.or(got).map(|id| id.place.clone()).unwrap_or_default();
            return Some(Mismatch::IdDiffers {
                place,
                expected: expected.and_then(|id| id.id.clone()),
                actual: got.and_then(|id| id.id.clone()),
            });
        }
    }
    None
}

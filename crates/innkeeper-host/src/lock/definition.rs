//! Compares two definitions of a tool.

use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::PinnedTool;
use super::change::{ChangeClass, ChangeCollector, PinChange};
use super::compare::classify_text_change;
use super::schema_comparison::SchemaComparison;
use super::text_changes::ToolNames;

/// Annotation hints, each with its default and its harmless value.
const ANNOTATION_HINTS: [(&str, bool, bool); 4] = [
    ("readOnlyHint", false, true),
    ("destructiveHint", true, false),
    ("idempotentHint", false, true),
    ("openWorldHint", true, false),
];

/// Parses a definition; returns `None` if it cannot be parsed.
pub(super) fn parse_definition(definition: &RawValue) -> Option<Value> {
    serde_json::from_str(definition.get()).ok()
}

/// The reason of a change to a definition with ambiguous members.
pub(super) const AMBIGUOUS: &str = "two members have the same name";

/// Returns whether two members of one object have the same name. A parsed value has only the last
/// of them, but the definition is forwarded with both.
pub(super) fn has_ambiguous_members(pin: &PinnedTool) -> bool {
    skim::has_duplicate_key(pin.definition.get())
}

/// Returns the changes from `before` to `after`, the most severe first; at least one.
pub(super) fn compare_definitions(
    names: &ToolNames<'_>,
    server: &str,
    tool: &str,
    before: &PinnedTool,
    after: &PinnedTool,
) -> Vec<PinChange> {
    let mut changes = ChangeCollector { server, tool: Some(tool), list: Vec::new() };
    let old = parse_definition(&before.definition);
    let new = parse_definition(&after.definition);
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (&old, &new) {
        compare_members(names, &mut changes, old, new);
    }
    if has_ambiguous_members(after) {
        changes.add(ChangeClass::Suspicious, AMBIGUOUS, old, new);
    } else if changes.list.is_empty() {
        // The hashes differ in a detail that parsed values do not show: a number beyond precision.
        changes.add(ChangeClass::Suspicious, "definition changed", old, new);
    }
    changes.into_sorted()
}

fn compare_members(
    names: &ToolNames<'_>,
    changes: &mut ChangeCollector<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) {
    for (key, before, after) in differing_members(old, new) {
        match key {
            "title" | "description" => compare_text(names, changes, key, before, after),
            "inputSchema" | "outputSchema" => compare_schema(names, changes, key, before, after),
            "annotations" => compare_annotations(names, changes, before, after),
            other => {
                let text = format!("/{other} changed");
                changes.add(ChangeClass::Suspicious, text, before.cloned(), after.cloned());
            }
        }
    }
}

/// Returns the members that differ, in the order of the older definition.
pub(super) fn differing_members<'m>(
    old: &'m Map<String, Value>,
    new: &'m Map<String, Value>,
) -> impl Iterator<Item = (&'m str, Option<&'m Value>, Option<&'m Value>)> {
    let added = new.keys().filter(|key| !old.contains_key(*key));
    let all = old.keys().chain(added).map(|key| (key.as_str(), old.get(key), new.get(key)));
    all.filter(|(_, before, after)| before != after)
}

/// Compares text for a model or a user. New text is harmless in a title and suspicious in a
/// description.
pub(super) fn compare_text(
    names: &ToolNames<'_>,
    changes: &mut ChangeCollector<'_>,
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
) {
    let old = before.and_then(Value::as_str);
    let new = after.and_then(Value::as_str);
    let (change_class, reason) =
        if (old.is_none(), new.is_none()) == (before.is_none(), after.is_none()) {
            classify_text_change(names, changes.server, old, new)
        } else {
            (ChangeClass::Suspicious, "not a string")
        };
    let mild = ["added", "text changed"].contains(&reason) && path.ends_with("title");
    let change_class = if mild { ChangeClass::Compatible } else { change_class };
    let description = format!("/{}: {reason}", path.trim_start_matches('/'));
    changes.add(change_class, description, before.cloned(), after.cloned());
}

fn compare_schema(
    names: &ToolNames<'_>,
    changes: &mut ChangeCollector<'_>,
    key: &str,
    before: Option<&Value>,
    after: Option<&Value>,
) {
    let is_output = key == "outputSchema";
    match (before, after) {
        (Some(before), Some(after)) => {
            SchemaComparison { names, changes, is_output }.compare(
                &format!("/{key}"),
                before,
                after,
            );
        }
        (None, _) if is_output => {
            changes.add(ChangeClass::Compatible, format!("/{key} added"), None, after.cloned());
        }
        (before, after) => {
            let description =
                format!("/{key} {}", if after.is_none() { "removed" } else { "added" });
            changes.add(ChangeClass::Breaking, description, before.cloned(), after.cloned());
        }
    }
}

fn compare_annotations(
    names: &ToolNames<'_>,
    changes: &mut ChangeCollector<'_>,
    before: Option<&Value>,
    after: Option<&Value>,
) {
    let empty = Map::new();
    let [old, new] = [before, after].map(|value| value.map_or(Some(&empty), Value::as_object));
    let (Some(old), Some(new)) = (old, new) else {
        let before = before.cloned();
        let after = after.cloned();
        return changes.add(ChangeClass::Suspicious, "/annotations changed", before, after);
    };
    if old.is_empty() && new.is_empty() {
        let before = before.cloned();
        let after = after.cloned();
        return changes.add(ChangeClass::Compatible, "/annotations changed", before, after);
    }
    for (key, before, after) in differing_members(old, new) {
        if key == "title" {
            compare_text(names, changes, "annotations/title", before, after);
            continue;
        }
        let known_hint = ANNOTATION_HINTS.iter().find(|(name, _, _)| *name == key);
        let (change_class, reason) = match known_hint.map(|(_, missing, safe_value)| {
            let [old, new] =
                [before, after].map(|value| value.map_or(Some(*missing), Value::as_bool));
            (old, new, *safe_value)
        }) {
            Some((Some(old), Some(new), _)) if old == new => {
                (ChangeClass::Compatible, "equals the default")
            }
            Some((Some(_), Some(new), safe_value)) if new != safe_value => {
                (ChangeClass::Breaking, "claims to be less safe than before")
            }
            Some((Some(_), Some(_), _)) => {
                (ChangeClass::Suspicious, "claims to be safer than before")
            }
            Some(_) | None => (ChangeClass::Suspicious, "changed"),
        };
        let description = format!("/annotations/{key}: {reason}");
        changes.add(change_class, description, before.cloned(), after.cloned());
    }
}

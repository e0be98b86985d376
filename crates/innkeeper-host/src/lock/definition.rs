//! What differs between two definitions of one tool.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::PinnedTool;
use super::change::{Change, ChangeClass, Changes};
use super::compare::wording;
use super::schema::Schemas;
use super::text::Names;

/// The hints a tool gives, with what holds where one is missing and what makes it look harmless.
const HINTS: [(&str, bool, bool); 4] = [
    ("readOnlyHint", false, true),
    ("destructiveHint", true, false),
    ("idempotentHint", false, true),
    ("openWorldHint", true, false),
];

/// A definition as a value; `None` where it cannot be one.
pub(super) fn read(definition: &RawValue) -> Option<Value> {
    serde_json::from_str(definition.get()).ok()
}

/// What differs in `after` from `before`, the worst first; never nothing.
pub(super) fn changes(
    names: &Names<'_>,
    (server, tool): (&str, &str),
    before: &PinnedTool,
    after: &PinnedTool,
) -> Vec<Change> {
    let mut changes = Changes { server, tool: Some(tool), list: Vec::new() };
    let (old, new) = (read(&before.definition), read(&after.definition));
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (&old, &new) {
        members(names, &mut changes, old, new);
    }
    if changes.list.is_empty() {
        // The hashes differ in what no reading of the values shows: a number beyond precision.
        changes.tell(ChangeClass::Suspicious, "definition changed", old, new);
    }
    changes.sorted()
}

fn members(
    names: &Names<'_>,
    changes: &mut Changes<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) {
    for (key, before, after) in differing(old, new) {
        match key {
            "title" | "description" => text(names, changes, key, before, after),
            "inputSchema" | "outputSchema" => schema(names, changes, key, before, after),
            "annotations" => annotations(names, changes, before, after),
            other => {
                let what = format!("/{other} changed");
                changes.tell(ChangeClass::Suspicious, what, before.cloned(), after.cloned());
            }
        }
    }
}

/// The members that are not the same in both, those of the older one first.
pub(super) fn differing<'m>(
    old: &'m Map<String, Value>,
    new: &'m Map<String, Value>,
) -> impl Iterator<Item = (&'m str, Option<&'m Value>, Option<&'m Value>)> {
    let added = new.keys().filter(|key| !old.contains_key(*key));
    let all = old.keys().chain(added).map(|key| (key.as_str(), old.get(key), new.get(key)));
    all.filter(|(_, before, after)| before != after)
}

/// A text for a model or a person. New words in a title are harmless, in a description they are not.
pub(super) fn text(
    names: &Names<'_>,
    changes: &mut Changes<'_>,
    place: &str,
    before: Option<&Value>,
    after: Option<&Value>,
) {
    let words = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let (old, new) = (words(before), words(after));
    let (class, why) = if (old.is_none(), new.is_none()) == (before.is_none(), after.is_none()) {
        wording(names, changes.server, old.as_deref(), new.as_deref())
    } else {
        (ChangeClass::Suspicious, "is no text")
    };
    let mild = ["added", "words changed"].contains(&why) && place.ends_with("title");
    let class = if mild { ChangeClass::Compatible } else { class };
    let what = format!("/{}: {why}", place.trim_start_matches('/'));
    changes.tell(class, what, before.cloned(), after.cloned());
}

fn schema(
    names: &Names<'_>,
    changes: &mut Changes<'_>,
    key: &str,
    before: Option<&Value>,
    after: Option<&Value>,
) {
    let is_output = key == "outputSchema";
    match (before, after) {
        (Some(before), Some(after)) => {
            Schemas { names, changes, is_output }.compare(&format!("/{key}"), before, after);
        }
        (None, _) if is_output => {
            changes.tell(ChangeClass::Compatible, format!("/{key} added"), None, after.cloned());
        }
        (before, after) => {
            let what = format!("/{key} {}", if after.is_none() { "removed" } else { "added" });
            changes.tell(ChangeClass::Breaking, what, before.cloned(), after.cloned());
        }
    }
}

fn annotations(
    names: &Names<'_>,
    changes: &mut Changes<'_>,
    before: Option<&Value>,
    after: Option<&Value>,
) {
    let empty = Map::new();
    let hints = |value: Option<&'_ Value>| match value {
        None => Some(Map::new()),
        Some(value) => value.as_object().cloned(),
    };
    let (Some(old), Some(new)) = (hints(before), hints(after)) else {
        let (before, after) = (before.cloned(), after.cloned());
        return changes.tell(ChangeClass::Suspicious, "/annotations changed", before, after);
    };
    if old == empty && new == empty {
        let (before, after) = (before.cloned(), after.cloned());
        return changes.tell(ChangeClass::Compatible, "/annotations changed", before, after);
    }
    for (key, before, after) in differing(&old, &new) {
        if key == "title" {
            text(names, changes, "annotations/title", before, after);
            continue;
        }
        let hint = |value: Option<&Value>, missing| value.map_or(Some(missing), Value::as_bool);
        let known = HINTS.iter().find(|(name, _, _)| *name == key);
        let (class, why) = match known.map(|(_, missing, harmless)| {
            (hint(before, *missing), hint(after, *missing), *harmless)
        }) {
            Some((Some(old), Some(new), _)) if old == new => {
                (ChangeClass::Compatible, "says what held before")
            }
            Some((Some(_), Some(new), harmless)) if new != harmless => {
                (ChangeClass::Breaking, "claims less than before")
            }
            Some((Some(_), Some(_), _)) => {
                (ChangeClass::Suspicious, "claims to be more harmless than before")
            }
            Some(_) | None => (ChangeClass::Suspicious, "changed"),
        };
        let what = format!("/annotations/{key}: {why}");
        changes.tell(class, what, before.cloned(), after.cloned());
    }
}

//! What differs between two JSON Schemas, and whether the newer one allows more or less.
//!
//! The judgement is made keyword by keyword. Where it cannot be made, the change is taken for a
//! narrower schema.

use serde_json::{Map, Value, json};

use super::change::{ChangeClass, Changes};
use super::definition::{differing, text};
use super::text::{Names, alarm};
use crate::text::said;

/// Limits from below, those from above, and schemas that stand alone, in a list or by name.
const AT_LEAST: [&str; 6] =
    ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"];
const AT_MOST: [&str; 6] =
    ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"];
const SCHEMA: [&str; 5] =
    ["items", "additionalProperties", "additionalItems", "unevaluatedProperties", "contentSchema"];
const SCHEMA_LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const SCHEMA_MAP: [&str; 3] = ["$defs", "definitions", "patternProperties"];

/// Keywords that say something and allow nothing.
const SAYS: [&str; 8] = [
    "default",
    "examples",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
];

type Member<'v> = Option<&'v Value>;

/// Compares the schemas of one tool.
#[derive(Debug)]
pub(super) struct Schemas<'a, 'c> {
    pub(super) names: &'a Names<'a>,
    pub(super) changes: &'a mut Changes<'c>,
    /// Whether it is of results: there, whoever reads them may miss what is allowed no longer, and
    /// trip over what is allowed now.
    pub(super) is_output: bool,
}

impl Schemas<'_, '_> {
    /// Tells what differs; `place` is a JSON pointer.
    pub(super) fn compare(&mut self, place: &str, before: &Value, after: &Value) {
        if before == after {
            return;
        }
        let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else {
            let wider = *after == Value::Bool(true) || *before == Value::Bool(false);
            return self.judge(place, wider, Some(before), Some(after));
        };
        for (key, before, after) in differing(old, new) {
            let place = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
            self.keyword(&place, key, (before, after), (old, new));
        }
    }

    fn keyword(
        &mut self,
        place: &str,
        key: &str,
        (before, after): (Member<'_>, Member<'_>),
        (old, new): (&Map<String, Value>, &Map<String, Value>),
    ) {
        match key {
            "title" | "description" => text(self.names, self.changes, place, before, after),
            "properties" => self.properties(place, (before, after), new),
            "required" => self.required(place, before, after),
            "type" => {
                let wider = types(after).is_none_or(|new| {
                    types(before).is_some_and(|old| old.iter().all(|one| allows(&new, one)))
                });
                self.judge(place, wider, before, after);
            }
            "enum" => {
                let wider = match (before.and_then(Value::as_array), after) {
                    (_, None) => true,
                    (Some(old), Some(Value::Array(new))) => old.iter().all(|v| new.contains(v)),
                    (_, Some(_)) => false,
                };
                self.judge(place, wider, before, after);
            }
            _ if AT_LEAST.contains(&key) => self.limit(place, before, after, |old, new| new <= old),
            _ if AT_MOST.contains(&key) => self.limit(place, before, after, |old, new| new >= old),
            _ if SAYS.contains(&key) => self.says(place, before, after),
            _ if SCHEMA.contains(&key) => {
                let anything = Value::Bool(true);
                let (old, new) = (before.unwrap_or(&anything), after.unwrap_or(&anything));
                if old == new {
                    return self.same(place, before, after);
                }
                self.compare(place, old, new);
            }
            _ if SCHEMA_LIST.contains(&key) => self.list(place, key, before, after),
            _ if SCHEMA_MAP.contains(&key) => self.map(place, key, before, after),
            "uniqueItems" => self.judge(place, after != Some(&json!(true)), before, after),
            "const" | "pattern" | "format" | "multipleOf" | "not" => {
                self.judge(place, after.is_none(), before, after);
            }
            _ if old.contains_key("$ref") || new.contains_key("$ref") || is_rule(key) => {
                self.judge(place, false, before, after);
            }
            _ => self.says(place, before, after),
        }
    }

    /// Arguments or results by name.
    fn properties(
        &mut self,
        place: &str,
        (before, after): (Member<'_>, Member<'_>),
        new: &Map<String, Value>,
    ) {
        let empty = Map::new();
        let map = |value: Member<'_>| match value {
            None => Some(empty.clone()),
            Some(value) => value.as_object().cloned(),
        };
        let (Some(old), Some(now)) = (map(before), map(after)) else {
            return self.judge(place, false, before, after);
        };
        if old == now {
            return self.same(place, before, after);
        }
        let required = |name: &str| {
            let names = new.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|one| one == name))
        };
        for (name, before, after) in differing(&old, &now) {
            let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
            match (before, after) {
                (Some(before), Some(after)) => self.compare(&place, before, after),
                (Some(_), None) => {
                    self.tell(ChangeClass::Breaking, &place, "removed", before, None);
                }
                (None, Some(added)) => self.added(&place, name, added, required(name)),
                (None, None) => {}
            }
        }
    }

    fn added(&mut self, place: &str, name: &str, added: &Value, required: bool) {
        let text = format!("{name}\n{}", said(added));
        let (class, why) = match alarm(self.names, self.changes.server, "", &text) {
            Some(why) => (ChangeClass::Suspicious, format!("added, {why}")),
            None if self.is_output => (ChangeClass::Compatible, "added".to_owned()),
            None if required => (ChangeClass::Breaking, "added and required".to_owned()),
            None => (ChangeClass::Compatible, "added and optional".to_owned()),
        };
        self.tell(class, place, &why, None, Some(added));
    }

    fn required(&mut self, place: &str, before: Member<'_>, after: Member<'_>) {
        let list = |value: Member<'_>| match value {
            None => Some(Vec::new()),
            Some(value) => value.as_array().cloned(),
        };
        let (Some(old), Some(new)) = (list(before), list(after)) else {
            return self.judge(place, false, before, after);
        };
        let more = new.iter().any(|name| !old.contains(name));
        let fewer = old.iter().any(|name| !new.contains(name));
        let worse = if self.is_output { fewer } else { more };
        let class = if worse { ChangeClass::Breaking } else { ChangeClass::Compatible };
        let why = match (more, fewer) {
            (true, true) => "others are required",
            (true, false) => "more is required",
            (false, true) => "less is required",
            (false, false) => "order changed",
        };
        self.tell(class, place, why, before, after);
    }

    fn limit(
        &mut self,
        place: &str,
        before: Member<'_>,
        after: Member<'_>,
        wider: impl Fn(f64, f64) -> bool,
    ) {
        let number = |value: Member<'_>| value.and_then(Value::as_f64);
        let wider = match (number(before), number(after)) {
            (Some(old), Some(new)) => wider(old, new),
            (_, None) => after.is_none(),
            (None, Some(_)) => false,
        };
        self.judge(place, wider, before, after);
    }

    /// What allows nothing more or less and may move a model.
    fn says(&mut self, place: &str, before: Member<'_>, after: Member<'_>) {
        self.tell(ChangeClass::Suspicious, place, "changed", before, after);
    }

    fn list(&mut self, place: &str, key: &str, before: Member<'_>, after: Member<'_>) {
        match (before.and_then(Value::as_array), after.and_then(Value::as_array)) {
            (Some(old), Some(new)) if old.len() == new.len() => {
                for (index, (before, after)) in old.iter().zip(new).enumerate() {
                    self.compare(&format!("{place}/{index}"), before, after);
                }
            }
            (Some(old), Some(new)) => {
                let (fewer, more) = if key == "allOf" { (new, old) } else { (old, new) };
                let wider =
                    ["anyOf", "allOf"].contains(&key) && fewer.iter().all(|one| more.contains(one));
                self.judge(place, wider, before, after);
            }
            (_, None) => self.judge(place, after.is_none(), before, after),
            (None, Some(_)) => self.judge(place, false, before, after),
        }
    }

    fn map(&mut self, place: &str, key: &str, before: Member<'_>, after: Member<'_>) {
        let empty = json!({});
        let (old, new) = (before.unwrap_or(&empty), after.unwrap_or(&empty));
        let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
            return self.judge(place, false, before, after);
        };
        if old == new {
            return self.same(place, before, after);
        }
        for (name, before, after) in differing(old, new) {
            let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
            match (before, after) {
                (Some(before), Some(after)) => self.compare(&place, before, after),
                // A definition nobody pointed to before; what points to it now is told there.
                (None, Some(added)) if key != "patternProperties" => {
                    self.added(&place, name, added, false);
                }
                (before, after) => self.judge(&place, false, before, after),
            }
        }
    }

    /// Tells that what went without saying is said now, or no longer.
    fn same(&mut self, place: &str, before: Member<'_>, after: Member<'_>) {
        self.tell(ChangeClass::Compatible, place, "says what held before", before, after);
    }

    /// Tells a change that allows more or less. Of results, either can break their reader.
    fn judge(&mut self, place: &str, wider: bool, before: Member<'_>, after: Member<'_>) {
        let news = after.map(said).unwrap_or_default();
        let olds = before.map(said).unwrap_or_default();
        let alarmed = alarm(self.names, self.changes.server, &olds, &news);
        let (class, why) = match (alarmed, wider) {
            (Some(why), _) => (ChangeClass::Suspicious, why),
            (None, true) if self.is_output => (ChangeClass::Breaking, "allows more"),
            (None, true) => (ChangeClass::Compatible, "allows no less"),
            (None, false) => (ChangeClass::Breaking, "allows less"),
        };
        self.tell(class, place, why, before, after);
    }

    fn tell(
        &mut self,
        class: ChangeClass,
        place: &str,
        why: &str,
        before: Member<'_>,
        after: Member<'_>,
    ) {
        self.changes.tell(class, format!("{place}: {why}"), before.cloned(), after.cloned());
    }
}

/// Keywords with rules that are not judged one by one.
fn is_rule(key: &str) -> bool {
    key.starts_with('$')
        || key.starts_with("dependent")
        || ["if", "then", "else", "contains", "propertyNames", "unevaluatedItems"].contains(&key)
}

/// The types that are allowed; `None` for all.
fn types(value: Member<'_>) -> Option<Vec<&str>> {
    match value? {
        Value::String(one) => Some(vec![one]),
        Value::Array(several) => Some(several.iter().filter_map(Value::as_str).collect()),
        _ => Some(Vec::new()),
    }
}

fn allows(types: &[&str], one: &str) -> bool {
    types.contains(&one) || one == "integer" && types.contains(&"number")
}

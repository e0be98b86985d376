//! Compares two JSON Schemas by the values that they allow.
//!
//! The comparison works keyword by keyword. A change that cannot be judged counts as a narrower
//! schema.

use serde_json::{Map, Value, json};

use super::change::{ChangeClass, ChangeCollector};
use super::definition::{compare_text, differing_members};
use super::text_changes::{ToolNames, new_warning};
use crate::text::model_visible_text;

/// Keywords by structure: lower bounds, upper bounds, single schemas, lists of schemas, maps of
/// schemas.
const LOWER_BOUND_KEYWORDS: [&str; 6] =
    ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"];
const UPPER_BOUND_KEYWORDS: [&str; 6] =
    ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"];
const SCHEMA_KEYWORDS: [&str; 5] =
    ["items", "additionalProperties", "additionalItems", "unevaluatedProperties", "contentSchema"];
const SCHEMA_LIST_KEYWORDS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const SCHEMA_MAP_KEYWORDS: [&str; 3] = ["$defs", "definitions", "patternProperties"];

/// Keywords without an effect on validation.
const ANNOTATION_KEYWORDS: [&str; 8] = [
    "default",
    "examples",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
];

type KeywordValue<'v> = Option<&'v Value>;

#[derive(Debug)]
pub(super) struct SchemaComparison<'a, 'c> {
    pub(super) names: &'a ToolNames<'a>,
    pub(super) changes: &'a mut ChangeCollector<'c>,
    /// Whether the schema describes results: a consumer may need values that are no longer allowed,
    /// and may not handle values that are newly allowed.
    pub(super) is_output: bool,
}

impl SchemaComparison<'_, '_> {
    /// Reports the differences; `path` is a JSON pointer.
    pub(super) fn compare(&mut self, path: &str, before: &Value, after: &Value) {
        if before == after {
            return;
        }
        let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else {
            let wider = *after == Value::Bool(true) || *before == Value::Bool(false);
            return self.report_constraint(path, wider, Some(before), Some(after));
        };
        for (key, _, _) in differing_members(old, new) {
            let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
            self.compare_keyword(&path, key, old, new);
        }
    }

    fn compare_keyword(
        &mut self,
        path: &str,
        key: &str,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
    ) {
        let before = old.get(key);
        let after = new.get(key);
        match key {
            "title" | "description" => compare_text(self.names, self.changes, path, before, after),
            "properties" => self.compare_properties(path, before, after, new),
            "required" => self.compare_required(path, before, after),
            "type" => {
                let wider = types(after).is_none_or(|new| {
                    types(before).is_some_and(|old| old.iter().all(|name| allows(&new, name)))
                });
                self.report_constraint(path, wider, before, after);
            }
            "enum" => {
                let wider = match (before.and_then(Value::as_array), after) {
                    (_, None) => true,
                    (Some(old), Some(Value::Array(new))) => old.iter().all(|v| new.contains(v)),
                    (_, Some(_)) => false,
                };
                self.report_constraint(path, wider, before, after);
            }
            _ if LOWER_BOUND_KEYWORDS.contains(&key) => {
                self.compare_limit(path, before, after, |old, new| new <= old);
            }
            _ if UPPER_BOUND_KEYWORDS.contains(&key) => {
                self.compare_limit(path, before, after, |old, new| new >= old);
            }
            _ if ANNOTATION_KEYWORDS.contains(&key) => self.report_annotation(path, before, after),
            _ if SCHEMA_KEYWORDS.contains(&key) => {
                let anything = Value::Bool(true);
                let old = before.unwrap_or(&anything);
                let new = after.unwrap_or(&anything);
                if old == new {
                    return self.report_equivalent(path, before, after);
                }
                self.compare(path, old, new);
            }
            _ if SCHEMA_LIST_KEYWORDS.contains(&key) => self.compare_list(path, key, before, after),
            _ if SCHEMA_MAP_KEYWORDS.contains(&key) => self.compare_map(path, key, before, after),
            "uniqueItems" => {
                self.report_constraint(path, after != Some(&json!(true)), before, after);
            }
            "const" | "pattern" | "format" | "multipleOf" | "not" => {
                self.report_constraint(path, after.is_none(), before, after);
            }
            _ if old.contains_key("$ref") || new.contains_key("$ref") || is_assertion(key) => {
                self.report_constraint(path, false, before, after);
            }
            _ => self.report_annotation(path, before, after),
        }
    }

    /// Compares arguments or result members by name.
    fn compare_properties(
        &mut self,
        path: &str,
        before: KeywordValue<'_>,
        after: KeywordValue<'_>,
        new: &Map<String, Value>,
    ) {
        let empty = Map::new();
        let [old, now] = [before, after].map(|value| value.map_or(Some(&empty), Value::as_object));
        let (Some(old), Some(now)) = (old, now) else {
            return self.report_constraint(path, false, before, after);
        };
        if old == now {
            return self.report_equivalent(path, before, after);
        }
        let required = new.get("required").and_then(Value::as_array);
        for (name, before, after) in differing_members(old, now) {
            let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            match (before, after) {
                (Some(before), Some(after)) => self.compare(&path, before, after),
                (Some(_), None) => {
                    self.add_change(ChangeClass::Breaking, &path, "removed", before, None);
                }
                (None, Some(added)) => {
                    let is_required =
                        required.is_some_and(|names| names.iter().any(|other| other == name));
                    self.report_added_property(&path, name, added, is_required);
                }
                (None, None) => {}
            }
        }
    }

    fn report_added_property(&mut self, path: &str, name: &str, added: &Value, required: bool) {
        let text = format!("{name}\n{}", model_visible_text(&added.to_string()));
        let (change_class, reason) = match new_warning(self.names, self.changes.server, "", &text) {
            Some(reason) => (ChangeClass::Suspicious, format!("added, {reason}")),
            None if self.is_output => (ChangeClass::Compatible, "added".to_owned()),
            None if required => (ChangeClass::Breaking, "added and required".to_owned()),
            None => (ChangeClass::Compatible, "added and optional".to_owned()),
        };
        self.add_change(change_class, path, &reason, None, Some(added));
    }

    fn compare_required(&mut self, path: &str, before: KeywordValue<'_>, after: KeywordValue<'_>) {
        let empty = Vec::new();
        let [old, new] = [before, after].map(|value| value.map_or(Some(&empty), Value::as_array));
        let (Some(old), Some(new)) = (old, new) else {
            return self.report_constraint(path, false, before, after);
        };
        let more = new.iter().any(|name| !old.contains(name));
        let fewer = old.iter().any(|name| !new.contains(name));
        let worse = if self.is_output { fewer } else { more };
        let change_class = if worse { ChangeClass::Breaking } else { ChangeClass::Compatible };
        let reason = match (more, fewer) {
            (true, true) => "different properties required",
            (true, false) => "more properties required",
            (false, true) => "fewer properties required",
            (false, false) => "order changed",
        };
        self.add_change(change_class, path, reason, before, after);
    }

    fn compare_limit(
        &mut self,
        path: &str,
        before: KeywordValue<'_>,
        after: KeywordValue<'_>,
        wider: impl Fn(f64, f64) -> bool,
    ) {
        let wider = match (before.and_then(Value::as_f64), after.and_then(Value::as_f64)) {
            (Some(old), Some(new)) => wider(old, new),
            (_, None) => after.is_none(),
            (None, Some(_)) => false,
        };
        self.report_constraint(path, wider, before, after);
    }

    /// Reports a change without an effect on validation that may influence a model.
    fn report_annotation(&mut self, path: &str, before: KeywordValue<'_>, after: KeywordValue<'_>) {
        self.add_change(ChangeClass::Suspicious, path, "changed", before, after);
    }

    fn compare_list(
        &mut self,
        path: &str,
        key: &str,
        before: KeywordValue<'_>,
        after: KeywordValue<'_>,
    ) {
        match (before.and_then(Value::as_array), after.and_then(Value::as_array)) {
            (Some(old), Some(new)) if old.len() == new.len() => {
                for (index, (before, after)) in old.iter().zip(new).enumerate() {
                    self.compare(&format!("{path}/{index}"), before, after);
                }
            }
            (Some(old), Some(new)) => {
                let (fewer, more) = if key == "allOf" { (new, old) } else { (old, new) };
                let wider = ["anyOf", "allOf"].contains(&key)
                    && fewer.iter().all(|schema| more.contains(schema));
                self.report_constraint(path, wider, before, after);
            }
            (_, None) => self.report_constraint(path, after.is_none(), before, after),
            (None, Some(_)) => self.report_constraint(path, false, before, after),
        }
    }

    fn compare_map(
        &mut self,
        path: &str,
        key: &str,
        before: KeywordValue<'_>,
        after: KeywordValue<'_>,
    ) {
        let empty = json!({});
        let old = before.unwrap_or(&empty);
        let new = after.unwrap_or(&empty);
        let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
            return self.report_constraint(path, false, before, after);
        };
        if old == new {
            return self.report_equivalent(path, before, after);
        }
        for (name, before, after) in differing_members(old, new) {
            let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            match (before, after) {
                (Some(before), Some(after)) => self.compare(&path, before, after),
                // A new definition has no effect by itself; a new reference to the definition is
                // reported at the reference.
                (None, Some(added)) if key != "patternProperties" => {
                    self.report_added_property(&path, name, added, false);
                }
                (before, after) => self.report_constraint(&path, false, before, after),
            }
        }
    }

    /// Reports an added or removed keyword with its default value.
    fn report_equivalent(&mut self, path: &str, before: KeywordValue<'_>, after: KeywordValue<'_>) {
        self.add_change(ChangeClass::Compatible, path, "equals the default", before, after);
    }

    /// Reports a change that allows more or fewer values. In results, either can break a consumer.
    fn report_constraint(
        &mut self,
        path: &str,
        wider: bool,
        before: KeywordValue<'_>,
        after: KeywordValue<'_>,
    ) {
        let [olds, news] = [before, after].map(|value| {
            value.map(|value| model_visible_text(&value.to_string())).unwrap_or_default()
        });
        let alarmed = new_warning(self.names, self.changes.server, &olds, &news);
        let (change_class, reason) = match (alarmed, wider) {
            (Some(reason), _) => (ChangeClass::Suspicious, reason),
            (None, true) if self.is_output => (ChangeClass::Breaking, "allows more values"),
            (None, true) => (ChangeClass::Compatible, "allows all previous values"),
            (None, false) => (ChangeClass::Breaking, "allows fewer values"),
        };
        self.add_change(change_class, path, reason, before, after);
    }

    fn add_change(
        &mut self,
        change_class: ChangeClass,
        path: &str,
        reason: &str,
        before: KeywordValue<'_>,
        after: KeywordValue<'_>,
    ) {
        self.changes.add(
            change_class,
            format!("{path}: {reason}"),
            before.cloned(),
            after.cloned(),
        );
    }
}

/// Returns whether a keyword constrains values and has no comparison of its own.
fn is_assertion(key: &str) -> bool {
    key.starts_with('$')
        || key.starts_with("dependent")
        || ["if", "then", "else", "contains", "propertyNames", "unevaluatedItems"].contains(&key)
}

/// Returns the allowed types; `None` for all types.
fn types(value: KeywordValue<'_>) -> Option<Vec<&str>> {
    match value? {
        Value::String(name) => Some(vec![name]),
        Value::Array(several) => Some(several.iter().filter_map(Value::as_str).collect()),
        _ => Some(Vec::new()),
    }
}

fn allows(types: &[&str], name: &str) -> bool {
    types.contains(&name) || name == "integer" && types.contains(&"number")
}

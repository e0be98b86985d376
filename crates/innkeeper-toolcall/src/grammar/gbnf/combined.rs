//! Schemas made of others: `anyOf`, `oneOf`, `allOf`, and references with more beside them.

use serde_json::{Map, Value};

use super::convert::Converter;
use super::rules::Shared;
use crate::grammar::reference::{deeper, merged, pointer, says_more};
use crate::grammar::weight::weight;
use crate::grammar::{Effect, TOO_MUCH};

impl Converter<'_> {
    /// The alternatives of a schema, each together with what stands beside them; none where the
    /// schema is not made of others.
    pub(super) fn combined(&mut self, schema: &Map<String, Value>, at: &str) -> Option<String> {
        let is_list = |keyword: &&str| matches!(schema.get(*keyword), Some(Value::Array(_)));
        let keyword = *["allOf", "anyOf", "oneOf"].iter().find(|keyword| is_list(keyword))?;
        let mut beside = schema.clone();
        let Some(Value::Array(parts)) = beside.shift_remove(keyword) else { return None };
        let alone = !says_more(&beside, "");
        if keyword == "allOf" {
            return Some(self.all_of(beside, &parts, at));
        }
        let mut ways: Vec<String> = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            let at = deeper(&deeper(at, keyword), &place.to_string());
            let way = match part {
                Value::Object(part) if !alone => {
                    let part = self.resolved(part, &at);
                    self.both(&part, &beside, &at)
                }
                Value::Bool(true) => self.schema(&Value::Object(beside.clone()), &at),
                part => self.schema(part, &at),
            };
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        if keyword == "oneOf" && parts.len() > 1 && !self.are_apart(&parts) {
            self.lose(at, keyword, Effect::Dropped);
        }
        if ways.is_empty() {
            self.lose(at, keyword, Effect::Dropped);
            return Some(self.rules.shared(Shared::Value));
        }
        Some(format!("({})", ways.join(" | ")))
    }

    /// All parts at once, as far as they do not speak of the same thing differently.
    fn all_of(&mut self, beside: Map<String, Value>, parts: &[Value], at: &str) -> String {
        if let ([part], false) = (parts, says_more(&beside, "")) {
            return self.schema(part, &deeper(&deeper(at, "allOf"), "0"));
        }
        let mut all = beside;
        for (place, part) in parts.iter().enumerate() {
            let at = deeper(&deeper(at, "allOf"), &place.to_string());
            match part {
                Value::Object(part) => {
                    let part = self.resolved(part, &at);
                    all = self.join(&all, &part, &at);
                }
                Value::Bool(true) => {}
                other => self.lose(&at, &other.to_string(), Effect::Dropped),
            }
        }
        self.schema(&Value::Object(all), at)
    }

    /// A reference with more beside it: the target's words with the others added.
    pub(super) fn reference_with_more(
        &mut self,
        target: Option<&str>,
        schema: &Map<String, Value>,
        at: &str,
    ) -> String {
        let mut beside = schema.clone();
        beside.shift_remove("$ref");
        match target.and_then(|target| self.target(target)) {
            Some(Value::Object(target)) => self.both(target, &beside, at),
            Some(Value::Bool(true)) => self.schema(&Value::Object(beside), at),
            _ => {
                self.lose(at, "$ref", Effect::Dropped);
                self.schema(&Value::Object(beside), at)
            }
        }
    }

    fn both(&mut self, one: &Map<String, Value>, other: &Map<String, Value>, at: &str) -> String {
        let both = self.join(one, other, at);
        self.schema(&Value::Object(both), at)
    }

    /// Two schemas as one; what they disagree on is reported. Joining is paid for by size, since a
    /// schema may join itself again and again.
    fn join(
        &mut self,
        one: &Map<String, Value>,
        other: &Map<String, Value>,
        at: &str,
    ) -> Map<String, Value> {
        let size = |schema: &Map<String, Value>| schema.values().map(weight).sum::<usize>();
        if !self.spend(size(one) + size(other)) {
            self.lose(at, TOO_MUCH, Effect::Dropped);
            return Map::new();
        }
        let (both, conflicts) = merged(one, other);
        for conflict in conflicts {
            self.lose(at, &conflict, Effect::Dropped);
        }
        // Items are those behind the listed ones, and of a schema that lists none they are all.
        let lists = |schema: &Map<String, Value>| schema.contains_key("prefixItems");
        let all = |schema: &Map<String, Value>| !lists(schema) && schema.contains_key("items");
        if lists(one) && all(other) || all(one) && lists(other) {
            self.lose(at, "items", Effect::Dropped);
        }
        both
    }

    /// A schema with its own reference followed once.
    fn resolved(&mut self, schema: &Map<String, Value>, at: &str) -> Map<String, Value> {
        let Some(reference) = schema.get("$ref") else { return schema.clone() };
        let target = reference.as_str().and_then(pointer).and_then(|it| self.target(it));
        let mut beside = schema.clone();
        match target {
            Some(Value::Object(target)) => {
                beside.shift_remove("$ref");
                self.join(target, &beside, at)
            }
            _ => beside,
        }
    }

    /// Whether no value fits two of these schemas, as far as their types or a constant tell.
    fn are_apart(&self, parts: &[Value]) -> bool {
        let mut seen: Vec<Mark> = Vec::new();
        for part in parts {
            let target = part.get("$ref").and_then(Value::as_str).and_then(pointer);
            let part = target.and_then(|it| self.target(it)).unwrap_or(part);
            let Some(mark) = mark(part) else { return false };
            if seen.iter().any(|other| !other.is_apart_from(&mark)) {
                return false;
            }
            seen.push(mark);
        }
        true
    }
}

/// What tells a schema's values from those of others: their one type, and a constant that a required
/// property of an object has.
struct Mark {
    of: String,
    constant: Option<(String, Value)>,
}

impl Mark {
    fn is_apart_from(&self, other: &Self) -> bool {
        let is_number = |mark: &Self| mark.of == "number" || mark.of == "integer";
        if is_number(self) && is_number(other) {
            return false;
        }
        match (&self.constant, &other.constant) {
            (Some((name, value)), Some((theirs, other))) => name == theirs && value != other,
            _ => self.of != other.of,
        }
    }
}

fn mark(schema: &Value) -> Option<Mark> {
    let of = schema.get("type")?.as_str()?.to_owned();
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let constant = properties.filter(|_| of == "object").and_then(|properties| {
        properties.iter().find_map(|(name, schema)| {
            let known = required?.iter().any(|it| it == name.as_str());
            let only =
                schema.get("const").or(match schema.get("enum")?.as_array()?.as_slice() {
                    [only] => Some(only),
                    _ => None,
                })?;
            known.then(|| (name.clone(), only.clone()))
        })
    });
    Some(Mark { of, constant })
}

//! The few questions that reading and repairing ask of a schema.

use serde_json::Value;

use crate::json::Json;

/// The most references followed one after the other.
pub(super) const REFERENCES: usize = 16;

/// A whole schema, in which references are looked up.
#[derive(Clone, Copy)]
pub(super) struct Root<'s>(pub(super) &'s Value);

impl<'s> Root<'s> {
    /// Where the reference of `schema` leads, if it is one: `Some(None)` is nowhere.
    ///
    /// What stands beside a reference counts in some drafts only, so it is left to validation.
    #[expect(clippy::option_option, reason = "no reference and one that leads nowhere differ")]
    pub(super) fn target(self, schema: &'s Value) -> Option<Option<&'s Value>> {
        let mut reference = schema.get("$ref")?;
        for _ in 0..REFERENCES {
            let pointer = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
            let Some(target) = pointer.and_then(|pointer| self.0.pointer(pointer)) else {
                return Some(None);
            };
            match target.get("$ref") {
                Some(next) => reference = next,
                None => return Some(Some(target)),
            }
        }
        Some(None)
    }

    /// The types that `schema` allows, also through references and alternatives; `None` if it says
    /// nothing about types.
    pub(super) fn kinds(self, schema: &'s Value, nested: usize) -> Option<Kinds> {
        if nested >= REFERENCES {
            return None;
        }
        if let Some(target) = self.target(schema) {
            return self.kinds(target?, nested + 1);
        }
        if let Some(kinds) = Kinds::own(schema) {
            return Some(kinds);
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = list(schema, keyword);
            if !branches.is_empty() {
                let kinds = branches.iter().map(|branch| self.kinds(branch, nested + 1));
                return kinds.reduce(|all, one| Some(all?.or(one?))).flatten();
            }
        }
        let parts = list(schema, "allOf").iter();
        parts.filter_map(|part| self.kinds(part, nested + 1)).reduce(Kinds::and)
    }

    /// Whether a branch may be the one that is meant by a value that fits none: it allows the
    /// value's type, or something else than null where the value is no array or object.
    pub(super) fn may_mean(self, branch: &'s Value, json: &Json) -> bool {
        let Some(kinds) = self.kinds(branch, 0) else { return true };
        match json {
            Json::Array(_) | Json::Object(_) => kinds.admit(json),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => kinds != Kinds::NULL,
        }
    }
}

/// A set of JSON's types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const NUMBER: Self = Self(8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);

    /// The types that the schema itself states, by `type`, or else by the values it lists. A type
    /// that JSON Schema does not know makes all of it unknown.
    pub(super) fn own(schema: &Value) -> Option<Self> {
        let values = match (schema.get("type"), schema.get("enum"), schema.get("const")) {
            (Some(Value::Array(names)), _, _) => {
                return names.iter().map(Self::named).reduce(|all, one| Some(all?.or(one?)))?;
            }
            (Some(name), _, _) => return Self::named(name),
            (None, Some(Value::Array(values)), _) => values.as_slice(),
            (None, _, Some(value)) => std::slice::from_ref(value),
            (None, _, None) => return None,
        };
        values.iter().map(Self::of_listed).reduce(Self::or)
    }

    fn named(name: &Value) -> Option<Self> {
        match name.as_str()? {
            "null" => Some(Self::NULL),
            "boolean" => Some(Self::BOOLEAN),
            "integer" => Some(Self::INTEGER),
            "number" => Some(Self::NUMBER),
            "string" => Some(Self::STRING),
            "array" => Some(Self::ARRAY),
            "object" => Some(Self::OBJECT),
            _ => None,
        }
    }

    fn of_listed(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn and(self, other: Self) -> Self {
        Self(self.with_integers().0 & other.with_integers().0)
    }

    /// Integers are numbers.
    fn with_integers(self) -> Self {
        if self.has(Self::NUMBER) { self.or(Self::INTEGER) } else { self }
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a value of these types may be `json`.
    pub(super) fn admit(self, json: &Json) -> bool {
        match json {
            Json::Null => self.has(Self::NULL),
            Json::Bool(_) => self.has(Self::BOOLEAN),
            Json::Number(text) => self.admit_number(text),
            Json::String(_) => self.has(Self::STRING),
            Json::Array(_) => self.has(Self::ARRAY),
            Json::Object(_) => self.has(Self::OBJECT),
        }
    }

    /// Whether a number may be written like this. With an exponent it may be an integer.
    pub(super) fn admit_number(self, text: &str) -> bool {
        let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
        let integral = text.contains(['e', 'E']) || fraction.bytes().all(|digit| digit == b'0');
        self.has(Self::NUMBER) || self.has(Self::INTEGER) && integral
    }
}

/// The subschemas of a keyword that has a list of them.
pub(super) fn list<'s>(schema: &'s Value, keyword: &str) -> &'s [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The schema of one member, if there is one.
pub(super) fn member<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let stated = schema.get("properties").and_then(|properties| properties.get(key));
    stated.or_else(|| {
        let patterns = schema.get("patternProperties").is_some();
        schema.get("additionalProperties").filter(|_| !patterns)
    })
}

/// The schema of one item, if there is one.
pub(super) fn item(schema: &Value, at: usize) -> Option<&Value> {
    let items = schema.get("items");
    let tuple = schema.get("prefixItems").or(items).and_then(Value::as_array);
    match tuple {
        Some(tuple) if at < tuple.len() => tuple.get(at),
        _ => items.filter(|items| !items.is_array()),
    }
}

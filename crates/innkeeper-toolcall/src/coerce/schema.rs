//! Schema lookups for coercion: types, references and subschemas.

use serde_json::Value;

use crate::json::Json;

/// Maximum number of references followed in a row.
pub(super) const MAX_REFERENCES: usize = 16;

/// A complete schema, which resolves references.
#[derive(Clone, Copy)]
pub(super) struct RootSchema<'s>(pub(super) &'s Value);

impl<'s> RootSchema<'s> {
    /// Resolves the reference of `schema`, if the schema is a reference. `Some(None)` means an
    /// unresolvable reference.
    ///
    /// Some drafts ignore the siblings of a reference, so validation handles them.
    #[expect(clippy::option_option, reason = "no reference and an unresolvable reference differ")]
    pub(super) fn resolve_reference(self, schema: &'s Value) -> Option<Option<&'s Value>> {
        let mut reference = schema.get("$ref")?;
        for _ in 0..MAX_REFERENCES {
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

    /// Returns the types that `schema` allows, including references and alternatives. `None` if the
    /// schema does not restrict types.
    ///
    /// Each schema on the way takes one of `remaining_visits`. At zero the types count as
    /// unrestricted, because references and alternatives in turn form a tree whose size is not
    /// bounded by the schema.
    pub(super) fn allowed_types(
        self,
        schema: &'s Value,
        nested: usize,
        remaining_visits: &mut usize,
    ) -> Option<TypeSet> {
        *remaining_visits = remaining_visits.saturating_sub(1);
        if *remaining_visits == 0 || nested >= MAX_REFERENCES {
            return None;
        }
        if let Some(target) = self.resolve_reference(schema) {
            return self.allowed_types(target?, nested + 1, remaining_visits);
        }
        if let Some(kinds) = TypeSet::from_schema(schema) {
            return Some(kinds);
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = subschemas(schema, keyword);
            if let Some((first, others)) = branches.split_first() {
                let kinds = self.allowed_types(first, nested + 1, remaining_visits)?;
                return others.iter().try_fold(kinds, |kinds, branch| {
                    let more = self.allowed_types(branch, nested + 1, remaining_visits)?;
                    Some(kinds.union(more))
                });
            }
        }
        let all_of = subschemas(schema, "allOf").iter();
        all_of
            .filter_map(|subschema| self.allowed_types(subschema, nested + 1, remaining_visits))
            .reduce(TypeSet::intersection)
    }

    /// Whether a value that matches no branch may be intended for this branch: the branch allows
    /// the value's type, or allows a type other than null and the value is neither an array nor an
    /// object.
    pub(super) fn may_be_intended(
        self,
        branch: &'s Value,
        json: &Json,
        remaining_visits: &mut usize,
    ) -> bool {
        let Some(kinds) = self.allowed_types(branch, 0, remaining_visits) else { return true };
        match json {
            Json::Array(_) | Json::Object(_) => kinds.accepts(json),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
                kinds != TypeSet::NULL
            }
        }
    }
}

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TypeSet(u8);

impl TypeSet {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const NUMBER: Self = Self(8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);

    /// Returns the types that the schema states by `type`, or else by its listed values. `None` if
    /// one of the types is unknown.
    pub(super) fn from_schema(schema: &Value) -> Option<Self> {
        let values = match (schema.get("type"), schema.get("enum"), schema.get("const")) {
            (Some(Value::Array(names)), _, _) => {
                return names
                    .iter()
                    .map(Self::from_name)
                    .reduce(|all, next| Some(all?.union(next?)))?;
            }
            (Some(name), _, _) => return Self::from_name(name),
            (None, Some(Value::Array(values)), _) => values.as_slice(),
            (None, _, Some(value)) => std::slice::from_ref(value),
            (None, _, None) => return None,
        };
        values.iter().map(Self::from_value).reduce(Self::union)
    }

    fn from_name(name: &Value) -> Option<Self> {
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

    fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn intersection(self, other: Self) -> Self {
        Self(self.with_integers().0 & other.with_integers().0)
    }

    /// Adds integers to numbers.
    fn with_integers(self) -> Self {
        if self.contains(Self::NUMBER) { self.union(Self::INTEGER) } else { self }
    }

    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a value of these types may be `json`.
    pub(super) fn accepts(self, json: &Json) -> bool {
        match json {
            Json::Null => self.contains(Self::NULL),
            Json::Bool(_) => self.contains(Self::BOOLEAN),
            Json::Number(text) => self.accepts_number(text),
            Json::String(_) => self.contains(Self::STRING),
            Json::Array(_) => self.contains(Self::ARRAY),
            Json::Object(_) => self.contains(Self::OBJECT),
        }
    }

    /// Whether these types include a number written like this. With an exponent, an integer is
    /// possible.
    pub(super) fn accepts_number(self, text: &str) -> bool {
        let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
        let integral = text.contains(['e', 'E']) || fraction.bytes().all(|digit| digit == b'0');
        self.contains(Self::NUMBER) || self.contains(Self::INTEGER) && integral
    }
}

/// Returns the subschemas of a keyword that has a list of schemas.
pub(super) fn subschemas<'s>(schema: &'s Value, keyword: &str) -> &'s [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn member_schema<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let stated = schema.get("properties").and_then(|properties| properties.get(key));
    stated.or_else(|| {
        let patterns = schema.get("patternProperties").is_some();
        schema.get("additionalProperties").filter(|_| !patterns)
    })
}

pub(super) fn item_schema(schema: &Value, at: usize) -> Option<&Value> {
    let items = schema.get("items");
    let tuple = schema.get("prefixItems").or(items).and_then(Value::as_array);
    match tuple {
        Some(tuple) if at < tuple.len() => tuple.get(at),
        _ => items.filter(|items| !items.is_array()),
    }
}

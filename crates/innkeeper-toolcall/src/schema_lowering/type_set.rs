//! The JSON types that a schema accepts.

use innkeeper_schema::{ANY_TYPE, standard_type_name};
use serde_json::Value;

/// A set of JSON types. Integers and other numbers are separate types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TypeSet(u8);

const NON_INTEGER: TypeSet = TypeSet(1 << 3);

impl TypeSet {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(1 << 1);
    pub(super) const INTEGER: Self = Self(1 << 2);
    pub(super) const NUMBER: Self = Self(Self::INTEGER.0 | NON_INTEGER.0);
    pub(super) const STRING: Self = Self(1 << 4);
    pub(super) const ARRAY: Self = Self(1 << 5);
    pub(super) const OBJECT: Self = Self(1 << 6);
    pub(super) const NONE: Self = Self(0);
    pub(super) const ANY: Self = Self((1 << 7) - 1);

    /// Returns the type of a name, and whether the name is from JSON Schema. Some programs and
    /// benchmarks use type names of Python and Java.
    pub(super) fn from_name(name: &str) -> Option<(Self, bool)> {
        let standard = standard_type_name(name)?;
        let types = match standard {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::ANY,
        };
        Some((types, name == standard && standard != ANY_TYPE))
    }

    pub(super) fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_f64() => {
                if number.as_f64().is_some_and(|float| float.fract() == 0.0) {
                    Self::INTEGER
                } else {
                    NON_INTEGER
                }
            }
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(super) const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn intersects(self, other: Self) -> bool {
        self.intersection(other) != Self::NONE
    }

    /// Returns the types one by one; integer and other numbers together are one type.
    pub(super) fn named_types(self) -> Vec<(Self, &'static str)> {
        let mut all = Vec::new();
        for (type_bit, name) in [
            (Self::STRING, "string"),
            (Self::NUMBER, "number"),
            (Self::INTEGER, "integer"),
            (Self::BOOLEAN, "boolean"),
            (Self::OBJECT, "object"),
            (Self::ARRAY, "array"),
            (Self::NULL, "null"),
        ] {
            let is_covered = type_bit == Self::INTEGER && self.intersects(NON_INTEGER);
            if !is_covered
                && self.intersects(type_bit)
                && (type_bit != Self::NUMBER || self.intersects(NON_INTEGER))
            {
                all.push((type_bit, name));
            }
        }
        all
    }
}

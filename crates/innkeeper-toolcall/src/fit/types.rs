//! The JSON types a schema accepts.

use serde_json::Value;

/// A set of JSON types. Numbers are two: the integers, and those that are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

const FRACTION: Types = Types(1 << 3);

impl Types {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(1 << 1);
    pub(super) const INTEGER: Self = Self(1 << 2);
    pub(super) const NUMBER: Self = Self(Self::INTEGER.0 | FRACTION.0);
    pub(super) const STRING: Self = Self(1 << 4);
    pub(super) const ARRAY: Self = Self(1 << 5);
    pub(super) const OBJECT: Self = Self(1 << 6);
    pub(super) const NONE: Self = Self(0);
    pub(super) const ANY: Self = Self((1 << 7) - 1);

    /// The type of this name, and whether it is JSON Schema's name. Benchmarks and programs write
    /// those of Python and Java.
    pub(super) fn named(name: &str) -> Option<(Self, bool)> {
        let own = match name {
            "null" => Some(Self::NULL),
            "boolean" => Some(Self::BOOLEAN),
            "integer" => Some(Self::INTEGER),
            "number" => Some(Self::NUMBER),
            "string" => Some(Self::STRING),
            "array" => Some(Self::ARRAY),
            "object" => Some(Self::OBJECT),
            _ => None,
        };
        if let Some(own) = own {
            return Some((own, true));
        }
        let foreign = match name.to_ascii_lowercase().as_str() {
            "null" | "none" | "nonetype" => Self::NULL,
            "bool" | "boolean" => Self::BOOLEAN,
            "int" | "integer" | "long" | "short" | "byte" => Self::INTEGER,
            "number" | "float" | "double" | "decimal" => Self::NUMBER,
            "string" | "str" | "char" => Self::STRING,
            "array" | "list" | "arraylist" | "tuple" | "set" => Self::ARRAY,
            "object" | "dict" | "map" | "hashmap" => Self::OBJECT,
            "any" | "" => Self::ANY,
            _ => return None,
        };
        Some((foreign, false))
    }

    /// The type of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_f64() => {
                if number.as_f64().is_some_and(|it| it.fract() == 0.0) {
                    Self::INTEGER
                } else {
                    FRACTION
                }
            }
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.and(other) != Self::NONE
    }

    /// Its types, one by one; a number is one, whether it may be a fraction or not.
    pub(super) fn each(self) -> Vec<(Self, &'static str)> {
        let mut all = Vec::new();
        for (one, name) in [
            (Self::STRING, "string"),
            (Self::NUMBER, "number"),
            (Self::INTEGER, "integer"),
            (Self::BOOLEAN, "boolean"),
            (Self::OBJECT, "object"),
            (Self::ARRAY, "array"),
            (Self::NULL, "null"),
        ] {
            let known = one == Self::INTEGER && self.meets(FRACTION);
            if !known && self.meets(one) && (one != Self::NUMBER || self.meets(FRACTION)) {
                all.push((one, name));
            }
        }
        all
    }
}

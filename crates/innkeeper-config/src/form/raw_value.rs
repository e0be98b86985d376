//! Values with several JSON types, or possibly the wrong type.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

use crate::settings::inherited_environment::InheritedEnvironment;

/// An element of a list of strings; `None` for an element of another type, which was reported.
#[derive(Clone, Debug)]
pub(crate) struct StringElement(pub(crate) Option<String>);

impl<'de> Deserialize<'de> for StringElement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Self(value.as_str().map(str::to_owned)))
    }
}

impl JsonSchema for StringElement {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

/// An environment value; `None` removes the variable.
///
/// The file may contain numbers and booleans; an earlier step converts them to strings.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct EnvValue(pub(crate) Option<String>);

impl JsonSchema for EnvValue {
    fn schema_name() -> Cow<'static, str> {
        "EnvValue".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // `null` comes first: at the end, the generator would read `null` as the mark of an
        // optional key.
        json_schema!({"type": ["null", "string", "number", "boolean"]})
    }
}

/// The variables that a server inherits: a boolean or `"strict"`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InheritEnv(pub(crate) InheritedEnvironment);

impl<'de> Deserialize<'de> for InheritEnv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let inherited = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Bool(false) => InheritedEnvironment::Standard,
            serde_json::Value::Bool(true) => InheritedEnvironment::Complete,
            serde_json::Value::String(text) if text == "strict" => InheritedEnvironment::Strict,
            _ => return Err(de::Error::custom("expected `false`, `true` or `strict`")),
        };
        Ok(Self(inherited))
    }
}

impl JsonSchema for InheritEnv {
    fn schema_name() -> Cow<'static, str> {
        "InheritEnv".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"enum": [false, true, "strict"]})
    }
}

/// A number of bytes, written as a number or with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) u64);

/// Units; a unit precedes every unit that is its suffix.
const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// Maximum size, one tebibyte: more memory than one server gets on any machine.
const MAX_BYTES: u64 = 1 << 40;

/// Minimum size, one kibibyte: a smaller size lacks its unit.
const MIN_BYTES: u64 = 1 << 10;

impl ByteSize {
    /// Returns the size if it is within the limits.
    pub(crate) fn bytes(self) -> Option<u64> {
        (MIN_BYTES..=MAX_BYTES).contains(&self.0).then_some(self.0)
    }

    /// Parses a size with its unit.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (number, unit) =
            UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
        let number: u64 = number.trim_end_matches(' ').parse().ok()?;
        Some(Self(number.saturating_mul(*unit)))
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum RawByteSize {
            Number(u64),
            Text(String),
        }
        match RawByteSize::deserialize(deserializer)? {
            RawByteSize::Number(bytes) => Some(Self(bytes)),
            RawByteSize::Text(text) => Self::parse(&text),
        }
        .ok_or_else(|| de::Error::custom("expected a size such as `512 MiB`"))
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "minimum": MIN_BYTES,
            "maximum": MAX_BYTES,
            "pattern": "^[1-9][0-9]{0,11} ?(KiB|MiB|GiB|kB|MB|GB|B)$",
        })
    }
}

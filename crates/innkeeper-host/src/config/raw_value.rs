//! The values of a file that are more than one JSON type, or may turn out to be the wrong one.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

/// An element of a list of texts; `None` was something else and has been refused.
#[derive(Clone, Debug)]
pub(super) struct Text(pub(super) Option<String>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Self(value.as_str().map(str::to_owned)))
    }
}

impl JsonSchema for Text {
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

/// An environment value; `None` takes the variable away.
///
/// Numbers and truth values may be typed; they have become their text before this type is read.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct EnvValue(pub(super) Option<String>);

impl JsonSchema for EnvValue {
    fn schema_name() -> Cow<'static, str> {
        "EnvValue".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // `null` stands first: at the end it would be taken for the generator's mark of an
        // optional key.
        json_schema!({"type": ["null", "string", "number", "boolean"]})
    }
}

/// A number of bytes, typed as a number or with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteSize(pub(super) u64);

/// The units, longest first where one is the end of another.
const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// One tebibyte: more than any machine this runs on would give to one server.
const MAX_BYTES: u64 = 1 << 40;

/// One kibibyte: a smaller size is a forgotten unit.
const MIN_BYTES: u64 = 1 << 10;

impl ByteSize {
    /// The size, unless it is none that a machine could have.
    pub(super) fn bytes(self) -> Option<u64> {
        (MIN_BYTES..=MAX_BYTES).contains(&self.0).then_some(self.0)
    }

    /// A size with its unit.
    pub(super) fn parse(text: &str) -> Option<Self> {
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
        enum Typed {
            Number(u64),
            Text(String),
        }
        match Typed::deserialize(deserializer)? {
            Typed::Number(bytes) => Some(Self(bytes)),
            Typed::Text(text) => Self::parse(&text),
        }
        .ok_or_else(|| de::Error::custom("not a size"))
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

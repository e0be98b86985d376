//! Serialization of durations as seconds, with a fraction if needed.

use std::time::Duration;

use indexmap::IndexMap;
use serde::Serializer;

pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(value.as_secs_f64())
}

/// Serializes a duration that may be absent.
pub(crate) fn serialize_option<S: Serializer>(
    value: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serialize(value, serializer),
        None => serializer.serialize_none(),
    }
}

pub(crate) fn serialize_map<S: Serializer>(
    values: &IndexMap<String, Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, value.as_secs_f64())))
}

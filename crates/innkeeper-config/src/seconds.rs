//! Serialization of durations as seconds, with a fraction if needed.

use std::time::Duration;

use serde::Serializer;

pub(super) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(value.as_secs_f64())
}

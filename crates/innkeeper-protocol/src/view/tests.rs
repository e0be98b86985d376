//! Views of whole and of broken parts.

mod asks;
mod check;
mod offers;
mod results;
mod task;
mod template;

use serde_json::value::RawValue;

/// A literal as raw JSON.
fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap_or_else(|error| panic!("{json}: {error}"))
}

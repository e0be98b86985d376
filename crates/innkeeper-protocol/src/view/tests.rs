//! Tests of the views on valid and invalid JSON.

mod check;
mod input_required;
mod listings;
mod results;
mod task;
mod template;

use serde_json::value::RawValue;

/// Parses a literal as raw JSON.
fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap_or_else(|error| panic!("{json}: {error}"))
}

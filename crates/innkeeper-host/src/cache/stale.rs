//! Marks a stale result with `_meta.stale` and `_meta.ageSeconds`.

use std::time::Duration;

use indexmap::IndexMap;
use innkeeper_protocol::skim;
use serde_json::value::{RawValue, to_raw_value};

/// Adds the mark and the age in whole seconds to `_meta`. All other bytes stay the same.
pub(super) fn mark_stale(result: &RawValue, age: Duration) -> Box<RawValue> {
    let text = result.get();
    let old = skim::member(text, "_meta");
    let mut meta: IndexMap<String, Box<RawValue>> =
        old.and_then(|meta| serde_json::from_str(meta).ok()).unwrap_or_default();
    let fields = [("stale", to_raw_value(&true)), ("ageSeconds", to_raw_value(&age.as_secs()))];
    for (name, value) in fields {
        // Serialization of a boolean and of a number cannot fail.
        meta.extend(value.ok().map(|value| (name.to_owned(), value)));
    }
    let meta = serde_json::to_string(&meta).unwrap_or_default();
    let marked = match old {
        Some(old) => {
            let at = old.as_ptr() as usize - text.as_ptr() as usize;
            [&text[..at], &meta, &text[at + old.len()..]].concat()
        }
        None => {
            let inside = text.find('{').map_or(0, |brace| brace + 1);
            let comma = if skim::members(text).next().is_some() { "," } else { "" };
            [&text[..inside], r#""_meta":"#, &meta, comma, &text[inside..]].concat()
        }
    };
    // A result is an object, so the marked text is an object too.
    RawValue::from_string(marked).unwrap_or_else(|_| result.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stale_mark_is_added_and_nothing_else_is_touched() {
        for (result, expected) in [
            (r#"{}"#, r#"{"_meta":{"stale":true,"ageSeconds":7}}"#),
            (r#"{ }"#, r#"{"_meta":{"stale":true,"ageSeconds":7} }"#),
            (
                r#"{ "contents" : [1.0e400, "\u00e9"]}"#,
                r#"{"_meta":{"stale":true,"ageSeconds":7}, "contents" : [1.0e400, "\u00e9"]}"#,
            ),
            (
                r#"{"a":1, "_meta": {"big": 123456789012345678901234567890, "x":{"_meta":1}} ,"b":2}"#,
                r#"{"a":1, "_meta": {"big":123456789012345678901234567890,"x":{"_meta":1},"stale":true,"ageSeconds":7} ,"b":2}"#,
            ),
            (
                r#"{"_meta":{"ageSeconds":"old","stale":false,"z":1}}"#,
                r#"{"_meta":{"ageSeconds":7,"stale":true,"z":1}}"#,
            ),
            (r#"{"_meta":null}"#, r#"{"_meta":{"stale":true,"ageSeconds":7}}"#),
            (
                r#"{"_meta":{"a":1},"_meta":{"b":2}}"#,
                r#"{"_meta":{"a":1},"_meta":{"b":2,"stale":true,"ageSeconds":7}}"#,
            ),
        ] {
            let result = RawValue::from_string(result.to_owned()).unwrap();
            assert_eq!(mark_stale(&result, Duration::from_millis(7900)).get(), expected);
        }
    }
}

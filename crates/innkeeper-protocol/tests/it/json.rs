//! Strategies for JSON trees and JSON text with and without white space.

use proptest::prelude::*;
use serde_json::{Map, Value};

/// Generates text with quotes, brackets and escapes that can confuse a scanner.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        "[ -~]{0,12}",
        Just("\\".to_owned()),
        Just("\"".to_owned()),
        Just("}]".to_owned()),
        Just("[{\"id\":1,".to_owned()),
        Just("\n\u{0}\u{1b}".to_owned()),
        Just("ä\u{1F600}\u{2028}".to_owned()),
        Just("x".repeat(70)),
    ];
    prop::collection::vec(fragment, 0..5).prop_map(|fragments| fragments.concat())
}

/// Generates a shallow JSON tree.
pub(crate) fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..6)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

/// Serializes a tree, compact or over several lines.
pub(crate) fn written(value: &Value, pretty: bool) -> String {
    let text =
        if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.expect("a tree can be written")
}

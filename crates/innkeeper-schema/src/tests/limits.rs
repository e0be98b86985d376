//! Tests at the limits and one past them, on the smallest expected stack where depth matters.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{fits, limit_message, only_message};
use crate::limits::{MAX_DEPTH, MAX_SCHEMA_DEPTH};
use crate::schema::Schema;
use crate::schema_size::is_certainly_small;

/// Runs a function on the smallest expected stack.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

/// Returns a value with one argument of that many nested arrays.
fn nested(levels: usize) -> Value {
    json!({"a": (0..levels).fold(json!([]), |inner, _| json!([inner]))})
}

#[test]
fn values_inside_one_another_are_taken_up_to_the_limit() {
    let schema = |around: usize| (0..around).fold(json!({}), |inner, _| json!({ "not": inner }));
    on_a_small_stack(move || {
        // A text that deep is more than the JSON parser reads.
        let deepest = Schema::from_value(schema(MAX_SCHEMA_DEPTH - 1));
        assert_eq!(deepest.check_limits(), Ok(()));
        assert!(!deepest.violations(&json!({})).unwrap().is_empty());
        let even = Schema::from_value(schema(MAX_SCHEMA_DEPTH - 2));
        assert_eq!(even.violations(&json!({})), Ok(Vec::new()));
        let deeper = Schema::from_value(schema(MAX_SCHEMA_DEPTH)).check_limits();
        assert_eq!(deeper.unwrap_err().to_string(), "more than 128 levels of nested values");
    });
}

#[test]
fn only_a_short_text_without_references_patterns_and_large_numbers_shows_its_limits() {
    let text = |schema: &str| RawValue::from_string(schema.to_owned()).unwrap();
    let tool =
        r#"{"type":"object","properties":{"e":{"type":"number","maximum":1.5}},"required":["e"]}"#;
    assert!(is_certainly_small(tool));
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(is_certainly_small(&nested(100)) && !is_certainly_small(&nested(101)));
    let digits = |count: usize| format!(r#"{{"maximum":{}}}"#, "9".repeat(count));
    assert!(is_certainly_small(&digits(300)) && !is_certainly_small(&digits(301)));
    assert_eq!(Schema::from_text(text(&digits(300))).to_value().map(drop), Ok(()));
    for other in [
        r##"{"$ref":"#/a"}"##,
        r#"{"\u0024ref":"https://example.com"}"#,
        r#"{"maximum":1e400}"#,
        r#"{"maximum":1E400}"#,
        r#"{"properties":{"a":{"pattern":"("}}}"#,
        r#"{"patternProperties":{"(":true}}"#,
        r#"{"unevaluatedItems":false}"#,
        &format!(r#"{{"title":"{}"}}"#, "x".repeat(5_000)),
    ] {
        assert!(!is_certainly_small(other), "{other}");
    }
    let unusable = Schema::from_text(text(r##"{"$ref":"#/a"}"##));
    assert!(unusable.check_limits().is_err());
}

#[test]
fn references_written_out_are_taken_up_to_the_limit() {
    let with = |members: usize| {
        let uses = vec![json!({"$ref": "#/$defs/a"}); 999];
        let members = (0..members).map(|index| (index.to_string(), json!(true)));
        let target = json!({"allOf": vec![true; 78]});
        json!({"allOf": uses, "properties": members.collect::<Value>(), "$defs": {"a": target}})
    };
    // A use costs 1, the target 1 + 78 / 4 for itself and 78 for its parts, a member 1, and the root
    // 1 + (999 + 679) / 4.
    assert!(fits(&with(679), &json!({})));
    assert!(limit_message(&with(680)).ends_with("references exceeds 100000"));
}

#[test]
fn a_value_is_followed_into_a_recursion_up_to_the_limit() {
    // Four nested subschemas for each of 192 levels of the value.
    let list = json!({"$defs": {"l": {"items": {"allOf": [{"anyOf": [{"$ref": "#/$defs/l"}]}]}}},
        "additionalProperties": {"$ref": "#/$defs/l"}});
    on_a_small_stack(move || {
        assert!(fits(&list, &nested(190)));
        assert_eq!(
            only_message(&list, &nested(191)),
            "nested too deeply to be checked against the schema",
        );
    });
}

#[test]
fn a_chain_of_references_fits_on_a_small_stack() {
    let mut definitions: Map<String, Value> = (1..MAX_DEPTH - 1)
        .map(|link| (link.to_string(), json!({"$ref": format!("#/$defs/{}", link + 1)})))
        .collect();
    definitions.insert((MAX_DEPTH - 1).to_string(), json!({"type": "object"}));
    let chain = json!({"$ref": "#/$defs/1", "$defs": definitions});
    on_a_small_stack(move || assert!(fits(&chain, &json!({}))));
}

/// The smallest size of a compiled expression is 4 KiB, and a match has at most 2^32 steps.
#[test]
fn a_pattern_is_matched_against_texts_up_to_the_limit() {
    let schema = json!({"properties": {"a": {"pattern": "^b"}}});
    let with = |bytes: usize| json!({"a": "b".repeat(bytes)});
    assert!(fits(&schema, &with((1 << 20) - 1)));
    assert_eq!(only_message(&schema, &with(1 << 20)), "too large to be checked against the schema");
}

#[test]
fn names_of_members_count_towards_the_limit_of_texts() {
    let schema = json!({"patternProperties": {"^b": true}});
    let with = |bytes: usize| json!({"b".repeat(bytes): 1});
    assert!(fits(&schema, &with((1 << 20) - 1)));
    assert_eq!(only_message(&schema, &with(1 << 20)), "too large to be checked against the schema");
}

#[test]
fn patterns_of_any_size_up_to_the_limit_are_compiled() {
    let schema =
        |count: usize| json!({"properties": {"a": {"pattern": format!("^b{{{count}}}$")}}});
    // The first compiles at the size of a small expression, the second above.
    for count in [10, 3_000] {
        assert!(fits(&schema(count), &json!({"a": "b".repeat(count)})), "{count}");
        assert!(!fits(&schema(count), &json!({"a": "b".repeat(count + 1)})), "{count}");
    }
}

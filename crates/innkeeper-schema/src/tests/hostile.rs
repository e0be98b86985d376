//! Tests of hostile schemas, which are rejected before compilation.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{check, fits, limit_message, read};
use crate::compiled::CompiledSchema;
use crate::value_size::ValueSize;

/// Returns the shortest of three runs, to exclude the load of the machine.
#[expect(clippy::disallowed_methods, reason = "the time a computation takes is what is tested")]
fn time(run: impl Fn()) -> Duration {
    let once = || {
        let start = std::time::Instant::now();
        run();
        start.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap()
}

/// Returns definitions `a0` to `a{count}`, each built from a reference to the next; the last
/// accepts anything.
fn chain(count: usize, part: impl Fn(Value) -> Value) -> Value {
    let next = |index: usize| json!({"$ref": format!("#/$defs/a{}", index + 1)});
    let mut parts: Map<String, Value> =
        (0..count).map(|index| (format!("a{index}"), part(next(index)))).collect();
    parts.insert(format!("a{count}"), json!(true));
    json!({"$defs": parts, "$ref": "#/$defs/a0"})
}

/// Attack: data | a schema of 2 kB doubles through references 30 times | the schema is rejected
/// within 10 ms | No unbounded wait
/// Proves: FR4.5
#[test]
fn a_short_schema_that_doubles_thirty_times_is_refused_within_ten_milliseconds() {
    let schema = chain(30, |next| json!({"allOf": [next, next]}));
    assert!(schema.to_string().len() < 2_000);
    assert!(time(|| drop(read(&schema).unwrap_err())) < Duration::from_millis(10));
    assert!(limit_message(&schema).ends_with("references exceeds 100000"));
    let mild = chain(10, |next| json!({"allOf": [next, next]}));
    assert!(fits(&mild, &json!({})));
}

#[test]
fn doubling_through_properties_is_refused_as_well() {
    let schema = chain(30, |next| json!({"properties": {"a": next, "b": next}}));
    assert!(limit_message(&schema).ends_with("references exceeds 100000"));
}

/// Attack: data | a recursive schema doubles through references | the schema is rejected | No
/// unbounded wait
#[test]
fn doubling_within_a_recursion_is_refused_as_well() {
    let mut schema = chain(30, |next| json!({"allOf": [next, next]}));
    schema["$defs"]["a30"] = json!({"properties": {"again": {"$ref": "#"}}});
    assert!(limit_message(&schema).ends_with("references exceeds 100000"));
}

/// Attack: data | 16 nested levels of `unevaluatedProperties` | the schema is rejected | No
/// unbounded wait
#[test]
fn asking_at_every_level_what_was_not_evaluated_is_refused() {
    let mut schema = json!({"properties": {"a": true}});
    for _ in 0..16 {
        schema = json!({"anyOf": [schema], "unevaluatedProperties": {"type": "integer"}});
    }
    assert!(limit_message(&schema).ends_with("references exceeds 100000"));
    let once = json!({"anyOf": [{"properties": {"a": true}}], "unevaluatedProperties": false});
    assert_eq!(check(&once, &json!({"a": 1, "b": 2}))[0].0, "/b");
}

#[test]
fn a_chain_of_references_is_followed_up_to_a_depth() {
    let longest = chain(766, |next| next);
    assert!(fits(&longest, &json!({})));
    let longer = chain(767, |next| next);
    assert!(limit_message(&longer).contains("nested subschemas"));
}

/// Attack: data | a subschema refers to itself directly | the schema is rejected | No unbounded
/// wait
#[test]
fn a_part_that_is_itself_is_refused() {
    let circles = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [true, {"$ref": "#/$defs/a"}]}}}),
        json!({"$dynamicAnchor": "me", "not": {"$dynamicRef": "#me"}}),
    ];
    for circle in circles {
        assert!(limit_message(&circle).contains("infinite self-reference"), "{circle}");
    }
}

/// Attack: data | a schema refers to a URL or a file | the schema is rejected, and no connection is
/// opened | Foreign text stays text
/// Proves: FR4.5
#[test]
fn a_reference_out_of_the_schema_is_refused_and_nothing_is_fetched() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let outside = [
        format!("http://{address}/schema.json"),
        "https://example.com/schema.json#/$defs/a".to_owned(),
        "file:///etc/passwd".to_owned(),
        "other.json".to_owned(),
        "/other".to_owned(),
        String::new(),
    ];
    for reference in outside {
        for keyword in ["$ref", "$dynamicRef"] {
            let schema = json!({"properties": {"a": {keyword: reference}}});
            assert!(limit_message(&schema).ends_with("points outside the schema"), "{schema}");
        }
    }
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

/// The validator ignores the text of such a reference.
#[test]
fn a_recursive_reference_is_one_to_the_whole_schema_whatever_it_says() {
    let reference = json!({"$recursiveRef": "#/$defs/t"});
    let mut doubling = json!({
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$defs": {"t": true},
        "properties": {"x": {"allOf": [reference, reference]}, "n": {"type": "string"}},
    });
    let mut nested = json!({"n": 1});
    for _ in 0..40 {
        nested = json!({"x": nested});
    }
    let problem = check(&doubling, &nested);
    assert_eq!(problem.len(), 1);
    assert_eq!(problem[0].0, "", "{problem:?}");
    doubling["properties"]["x"] = json!({"$recursiveRef": "#/nowhere"});
    assert_eq!(check(&doubling, &json!({"x": {"n": 1}}))[0].0, "/x/n");
}

/// Attack: data | 1,200 anchors have one name, and 1,200 references name it | the schema is
/// rejected within 100 ms | No unbounded wait
#[test]
fn a_name_that_a_thousand_anchors_share_is_refused_before_it_is_followed() {
    let anchors = vec![json!({"$dynamicAnchor": "m"}); 1_200];
    let references = vec![json!({"$dynamicRef": "#m"}); 1_200];
    let schema = json!({"allOf": anchors, "anyOf": references});
    assert!(time(|| drop(read(&schema).unwrap_err())) < Duration::from_millis(100));
    assert!(limit_message(&schema).ends_with("more than 10000 anchors of the same name"));
}

#[test]
fn what_is_granted_grows_with_the_arguments_up_to_a_limit() {
    let parts = vec![json!({"minimum": 0}); 900];
    let schema = json!({"properties": {"a": {"items": {"allOf": parts}}}});
    let schema = CompiledSchema::new(&schema).unwrap();
    assert!(!schema.is_cheap);
    let granted =
        |values| schema.visit_budget(ValueSize { values, ..ValueSize::measure(&json!({})) });
    assert_eq!(granted(1_000), (1 << 20) + (1_000 << 10));
    assert_eq!(granted(1_000_000), 1 << 24);
}

#[test]
fn a_reference_that_leads_nowhere_is_refused() {
    for reference in ["#/$defs/b", "#name", "#/%FF", "#/%+f", "#/properties/0"] {
        let schema = json!({"$defs": {"a": true}, "properties": {"a": {"$ref": reference}}});
        assert!(limit_message(&schema).ends_with("has no target"), "{reference}");
    }
}

#[test]
fn references_are_refused_where_a_nested_part_has_a_base_of_its_own() {
    let part = json!({"$id": "https://example.com/part", "properties": {"a": {"$ref": "#"}}});
    assert!(limit_message(&json!({"properties": {"p": part}})).contains("nested `$id`"));
    let alone = json!({"properties": {"p": {"$id": "part", "type": "string"}}});
    assert_eq!(check(&alone, &json!({"p": 1}))[0].0, "/p");
}

#[test]
fn a_name_that_looks_like_a_keyword_is_a_name() {
    let schema = json!({
        "properties": {"$ref": {"type": "string"}, "$id": {"const": {"$ref": "http://a/b"}}},
        "default": {"$ref": "http://a/b"},
    });
    assert!(fits(&schema, &json!({"$ref": "x", "$id": {"$ref": "http://a/b"}})));
}

/// Attack: data | a schema has 5,000 properties or a description of 1 MiB | the schema is rejected
/// | No unbounded memory
#[test]
fn a_schema_too_large_is_refused_by_values_and_by_bytes() {
    let named = |count: usize| -> Value {
        let names = (0..count).map(|index| (format!("p{index}"), json!(true)));
        json!({"properties": names.collect::<Value>()})
    };
    assert!(read(&named(4_998)).is_ok());
    assert!(limit_message(&named(4_999)).ends_with("more than 5000 values"));
    assert!(limit_message(&named(50_000)).ends_with("longer than 262144 bytes"));
    let wordy = json!({"description": "x".repeat(1 << 20)});
    assert!(limit_message(&wordy).ends_with("longer than 262144 bytes"));
}

/// The validator (jsonschema 0.60.2) panics on this schema; a hostile schema must not cause a
/// panic.
/// Attack: data | a schema that makes the validator panic | the check reports one problem |
/// Libraries change no global state
#[test]
fn a_schema_that_makes_the_validator_panic_is_one_problem() {
    let to = |part: &str| json!({"$ref": format!("#/$defs/{part}")});
    let schema = json!({"properties": {"x": to("a")}, "$defs": {
        "a": to("b"), "b": to("c"), "c": to("d"), "d": to("e"),
        "e": {"oneOf": [to("f")], "unevaluatedProperties": {}},
        "f": to("g"), "g": to("h"), "h": to("i"),
        "i": {"patternProperties": {"^y": to("j")}}, "j": to("b"),
    }});
    assert_eq!(
        check(&schema, &json!({"x": {"y": []}})),
        [(String::new(), "cannot be checked against the schema".to_owned())],
    );
}

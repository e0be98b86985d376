//! Tests of older dialects, by `$schema` or by their own keywords.

use serde_json::json;

use super::{check, fits, limit_message, only_message, pointers};

/// Proves: FR4.5
#[test]
fn draft_07_has_items_by_place_and_definitions() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"name": {"$id": "#name", "type": "string"}},
        "properties": {"row": {
            "items": [{"$ref": "#/definitions/name"}, {"$ref": "#name"}], "additionalItems": false,
        }},
        "dependencies": {"row": ["of"]},
    });
    assert!(fits(&schema, &json!({"row": ["a", "b"], "of": 1})));
    assert_eq!(pointers(&schema, &json!({"row": ["a", 1, 2]})), ["", "/row", "/row/1"],);
}

#[test]
fn draft_07_passes_over_what_stands_beside_a_reference() {
    let beside = json!({"$ref": "#/definitions/any", "type": "string"});
    let mut schema = json!({"definitions": {"any": true}, "properties": {"a": beside}});
    assert!(!fits(&schema, &json!({"a": 1})));
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    assert!(fits(&schema, &json!({"a": 1})));
}

#[test]
fn items_by_place_are_understood_without_a_declared_dialect() {
    let schema =
        json!({"properties": {"row": {"items": [{"type": "string"}, {"type": "number"}]}}});
    assert!(fits(&schema, &json!({"row": ["a", 1]})));
    assert_eq!(pointers(&schema, &json!({"row": [1, "a"]})), ["/row/0", "/row/1"]);
}

#[test]
fn the_oldest_dialect_says_whether_a_limit_is_exclusive_by_a_boolean() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"n": {"minimum": 1, "exclusiveMinimum": true}},
    });
    assert!(fits(&schema, &json!({"n": 2})));
    assert_eq!(
        check(&schema, &json!({"n": 1})),
        [("/n".to_owned(), "must be more than 1".to_owned())],
    );
}

#[test]
fn a_recursive_reference_leads_to_the_whole_schema() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "properties": {"next": {"$recursiveRef": "#"}, "n": {"type": "integer"}},
    });
    assert_eq!(pointers(&schema, &json!({"next": {"next": {"n": "1"}}})), ["/next/next/n"]);
}

#[test]
fn an_unknown_dialect_is_refused_by_name() {
    let schema = json!({"$schema": "https://example.com/mine"});
    assert_eq!(limit_message(&schema), "unknown dialect `https://example.com/mine`",);
}

#[test]
fn a_schema_that_does_not_compile_is_one_problem_that_says_where() {
    let schema = json!({"properties": {"a": {"type": "text"}}});
    assert_eq!(
        only_message(&schema, &json!({})),
        "the schema is unusable: invalid at `/properties/a/type`",
    );
}

//! Tests of JSON Schema 2020-12, the default dialect.

use serde_json::{Value, json};

use super::{check, fits, pointers};

/// Proves: FR4.5
#[test]
fn a_part_kept_among_definitions_applies_where_it_is_referred_to() {
    let schema = json!({
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/point"}, "to": {"$ref": "#there"}},
        "$defs": {
            "point": {"$anchor": "there", "type": "object", "required": ["x"], "properties": {
                "x": {"type": "number"},
            }},
        },
    });
    assert!(fits(&schema, &json!({"from": {"x": 1}, "to": {"x": 2.5}})));
    assert_eq!(pointers(&schema, &json!({"from": {"x": "1"}, "to": {}})), ["/from/x", "/to"]);
}

/// Proves: FR4.5
#[test]
fn a_definition_is_found_through_an_escaped_pointer() {
    let schema = json!({
        "properties": {"a": {"$ref": "#/$defs/x~1y%20z"}},
        "$defs": {"x/y z": {"type": "string"}},
    });
    assert!(fits(&schema, &json!({"a": "text"})));
    assert_eq!(pointers(&schema, &json!({"a": 1})), ["/a"]);
}

/// Proves: FR4.5
#[test]
fn a_value_is_one_of_those_listed() {
    let schema =
        json!({"properties": {"unit": {"enum": ["celsius", "kelvin"]}, "v": {"const": 2}}});
    assert!(fits(&schema, &json!({"unit": "kelvin", "v": 2})));
    assert_eq!(pointers(&schema, &json!({"unit": "fahrenheit", "v": 3})), ["/unit", "/v"]);
}

/// Proves: FR4.5
#[test]
fn exactly_one_alternative_has_to_fit() {
    let schema = json!({"properties": {"n": {"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}}});
    assert!(fits(&schema, &json!({"n": 4})));
    assert_eq!(pointers(&schema, &json!({"n": 5})), ["/n"]);
    assert_eq!(pointers(&schema, &json!({"n": 6})), ["/n"]);
}

/// Proves: FR4.5
#[test]
fn properties_that_are_not_named_can_be_excluded() {
    let schema = json!({
        "properties": {"a": true},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": false,
    });
    assert!(fits(&schema, &json!({"a": 1, "x-b": "text"})));
    assert_eq!(pointers(&schema, &json!({"b": 1, "x-c": 1})), ["/b", "/x-c"]);
}

/// Proves: FR4.5
#[test]
fn the_first_elements_can_have_schemas_of_their_own() {
    let schema = json!({"properties": {"row": {
        "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "boolean"},
    }}});
    assert!(fits(&schema, &json!({"row": ["a", 1, true]})));
    assert_eq!(pointers(&schema, &json!({"row": [1, "a", 2]})), ["/row/0", "/row/1", "/row/2"]);
}

/// Proves: FR4.5
#[test]
fn one_property_can_make_others_required() {
    let schema = json!({
        "dependentRequired": {"card": ["address"]},
        "if": {"properties": {"kind": {"const": "loud"}}, "required": ["kind"]},
        "then": {"required": ["volume"]},
    });
    assert!(fits(&schema, &json!({"card": 1, "address": "x"})));
    assert!(!fits(&schema, &json!({"card": 1})));
    assert!(!fits(&schema, &json!({"kind": "loud"})));
}

/// Proves: FR4.5
#[test]
fn a_schema_may_contain_itself() {
    let schema = json!({
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "key": {"type": "integer"}},
        "required": ["key"],
    });
    let mut tree = json!({"key": 0});
    for key in 1..100 {
        tree = json!({"key": key, "left": tree, "right": {"key": key}});
    }
    assert!(fits(&schema, &tree));
    assert_eq!(
        pointers(&schema, &json!({"key": 1, "left": {"key": 2, "right": {}}})),
        ["/left/right"],
    );
}

/// Proves: FR4.6
#[test]
fn two_mistakes_in_one_call_are_two_pointers() {
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "options": {"type": "object", "properties": {
            "depth": {"type": "integer", "minimum": 1},
        }}},
        "required": ["path"],
    });
    assert_eq!(
        check(&schema, &json!({"path": 7, "options": {"depth": 0}})),
        [
            ("/options/depth".to_owned(), "must be at least 1".to_owned()),
            ("/path".to_owned(), "expected string, found number".to_owned()),
        ],
    );
}

/// Proves: FR4.6
#[test]
fn the_first_32_problems_are_reported_sorted_by_pointer() {
    let schema = json!({"additionalProperties": {"type": "null"}});
    let arguments: Value = (100..150).map(|number| (format!("p{number}"), json!(1))).collect();
    let pointers = pointers(&schema, &arguments);
    assert_eq!(pointers.len(), 32);
    assert!(pointers.is_sorted());
    assert_eq!((pointers[0].as_str(), pointers[31].as_str()), ("/p100", "/p131"));
}

#[test]
fn a_format_is_an_annotation() {
    let schema = json!({"properties": {"to": {"type": "string", "format": "email"}}});
    assert!(fits(&schema, &json!({"to": "nobody"})));
}

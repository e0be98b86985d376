//! What is read, and what stays an invalid schema.

use serde_json::{Value, json};

use crate::error::CheckError;
use crate::schema::Schema;

/// Returns whether `schema` accepts `value`.
fn accepts(schema: &Value, value: &Value) -> bool {
    match Schema::from_value(schema.clone()).violations(value) {
        Ok(violations) => violations.is_empty(),
        Err(error) => panic!("{schema}: {error}"),
    }
}

fn is_unusable(schema: &Value) -> bool {
    let result = Schema::from_value(schema.clone()).violations(&json!({}));
    matches!(result, Err(CheckError::UnusableSchema(_)))
}

#[test]
fn null_stands_for_an_absent_keyword() {
    let keywords = [
        "required",
        "properties",
        "additionalProperties",
        "description",
        "type",
        "enum",
        "$schema",
        "anyOf",
        "items",
        "minLength",
        "pattern",
        "$defs",
        "title",
        "format",
        "patternProperties",
    ];
    for keyword in keywords {
        assert!(accepts(&json!({ keyword: null }), &json!({"n": 1})), "{keyword}");
        let nested = json!({"properties": {"n": { keyword: null }}});
        assert!(accepts(&nested, &json!({"n": 1})), "{keyword}");
    }
    let constant = json!({"required": null, "properties": {"n": {"const": null, "default": null}}});
    assert!(accepts(&constant, &json!({"n": null})));
    assert!(!accepts(&constant, &json!({"n": 1})));
}

#[test]
fn an_empty_list_stands_for_an_empty_object() {
    for keyword in ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"] {
        let schema = json!({"type": "object", keyword: []});
        assert!(accepts(&schema, &json!({"n": 1})), "{keyword}");
        assert!(!accepts(&schema, &json!(1)), "{keyword}");
    }
    let nested =
        json!({"properties": {"a": [], "b": {"type": "string"}}, "additionalProperties": []});
    assert!(accepts(&nested, &json!({"a": 1, "b": "x", "c": 2})));
    assert!(!accepts(&nested, &json!({"b": 1})));
}

#[test]
fn a_flag_of_a_property_has_a_meaning_in_draft_3_only() {
    let schema = json!({"properties": {
        "name": {"type": "string", "required": true},
        "note": {"type": "any", "required": false},
        "inner": {"type": "object", "properties": {"x": {"required": "true"}}},
    }});
    let mut declared = schema.clone();
    declared["$schema"] = json!("http://json-schema.org/draft-03/schema#");
    assert!(accepts(&declared, &json!({"name": "a", "note": [1], "inner": {"x": 1}})));
    assert!(!accepts(&declared, &json!({})));
    assert!(!accepts(&declared, &json!({"name": "a", "inner": {}})));
    for mut other in [json!("draft-04"), json!("draft-07"), json!(null)].map(|dialect| {
        let uri = dialect.as_str().map(|name| format!("http://json-schema.org/{name}/schema#"));
        let mut other = schema.clone();
        other["$schema"] = json!(uri);
        other
    }) {
        assert!(accepts(&other, &json!({"inner": {}})), "{other}");
        assert!(!accepts(&other, &json!({"name": 1})), "{other}");
        other["required"] = json!(["name"]);
        assert!(!accepts(&other, &json!({})), "{other}");
    }
}

#[test]
fn an_exclusive_limit_is_read_in_the_form_of_any_draft() {
    let boolean =
        json!({"minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false});
    let number = json!({"exclusiveMinimum": 0, "maximum": 9});
    for mut schema in [boolean, number] {
        for dialect in [None, Some("draft-04"), Some("draft-06"), Some("draft-07")] {
            if let Some(dialect) = dialect {
                schema["$schema"] = format!("http://json-schema.org/{dialect}/schema#").into();
            }
            assert!(accepts(&schema, &json!(1)) && accepts(&schema, &json!(9)), "{schema}");
            assert!(!accepts(&schema, &json!(0)) && !accepts(&schema, &json!(10)), "{schema}");
        }
    }
}

#[test]
fn values_of_another_type_are_read_if_they_have_one_meaning() {
    for (schema, valid, invalid) in [
        (json!({"maxLength": "3"}), json!("abc"), json!("abcd")),
        (json!({"minimum": "1.5"}), json!(2), json!(1)),
        (json!({"required": "n"}), json!({"n": 1}), json!({})),
        (json!({"required": ["n", "n"]}), json!({"n": 1}), json!({})),
        (json!({"additionalProperties": "false"}), json!({}), json!({"n": 1})),
        (json!({"properties": {"n": "str"}}), json!({"n": ""}), json!({"n": 1})),
        (json!({"type": "OBJECT"}), json!({}), json!(1)),
        (json!({"type": ["STRING", "None"]}), json!(null), json!(1)),
        (json!({"uniqueItems": "true"}), json!([1]), json!([1, 1])),
        (json!({"minLength": -1, "maxLength": 3, "title": 5}), json!(""), json!("abcd")),
    ] {
        assert!(accepts(&schema, &valid), "{schema}");
        assert!(!accepts(&schema, &invalid), "{schema}");
    }
}

#[test]
fn a_keyword_with_two_meanings_is_not_guessed() {
    for schema in [
        json!({"type": "text"}),
        json!({"maxLength": -1}),
        json!({"anyOf": []}),
        json!({"not": []}),
        json!({"properties": {"n": "the name of the file"}}),
        json!({"required": {"n": true}}),
        json!({"enum": "a"}),
    ] {
        assert!(is_unusable(&schema), "{schema}");
    }
}

#[test]
fn the_names_of_properties_are_not_keywords() {
    let schema =
        json!({"required": null, "properties": {"required": {"type": "boolean"}, "type": {}}});
    assert!(accepts(&schema, &json!({"required": true, "type": null})));
    assert!(!accepts(&schema, &json!({"required": "yes"})));
}

#[test]
fn a_message_names_the_place_in_the_corrected_schema() {
    let schema = json!({"additionalProperties": "false", "properties": {"path": null}});
    let violations = Schema::from_value(schema).violations(&json!({"pth": 1})).unwrap();
    let message = violations[0].to_string();
    assert!(message.contains("unknown property `pth`") && message.contains("`path`"), "{message}");
}

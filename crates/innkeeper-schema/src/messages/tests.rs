//! Tests of validation messages.

use jsonschema::Validator;
use serde_json::{Value, json};

use super::violations;

/// Returns the messages for `value`, one per line, with the pointer first.
fn messages(schema: &Value, value: &Value) -> Vec<String> {
    let validator = Validator::new(schema).unwrap();
    let all = violations(schema, validator.iter_errors(value));
    all.into_iter().map(|one| format!("{} {}", one.pointer, one.message)).collect()
}

/// Proves: FR4.6
#[test]
fn every_keyword_has_its_own_message() {
    let cases = [
        (json!({"type": "string"}), json!(1), "expected string, found number"),
        (json!({"type": "integer"}), json!(1.5), "expected integer, found number"),
        (json!({"type": ["string", "null"]}), json!([]), "expected null or string, found array"),
        (json!({"const": "a"}), json!("b"), "expected \"a\""),
        (json!({"enum": ["a", 2, null]}), json!(true), "expected one of \"a\", 2, null"),
        (json!({"minimum": 1}), json!(0), "must be at least 1"),
        (json!({"maximum": 1}), json!(2), "must be at most 1"),
        (json!({"exclusiveMinimum": 1}), json!(1), "must be more than 1"),
        (json!({"exclusiveMaximum": 1}), json!(1), "must be less than 1"),
        (json!({"multipleOf": 5}), json!(4), "must be a multiple of 5"),
        (json!({"minLength": 1}), json!(""), "must have at least 1 character"),
        (json!({"maxLength": 2}), json!("abc"), "must have at most 2 characters"),
        (json!({"pattern": "^a"}), json!("b"), "must match the pattern `^a`"),
        (json!({"minItems": 2}), json!([]), "must have at least 2 items"),
        (json!({"maxItems": 1}), json!([1, 2]), "must have at most 1 item"),
        (json!({"uniqueItems": true}), json!([1, 1]), "must not have duplicate items"),
        (
            json!({"contains": {"type": "string"}}),
            json!([1]),
            "has too few or too many items that match `contains`",
        ),
        (json!({"unevaluatedItems": false}), json!([1]), "has unexpected items"),
        (json!({"minProperties": 1}), json!({}), "must have at least 1 properties"),
        (json!({"maxProperties": 0}), json!({"a": 1}), "must have at most 0 properties"),
        (json!({"required": ["a"]}), json!({}), "missing required property `a`"),
        (json!({"not": {}}), json!(1), "must not match the excluded schema"),
        (json!(false), json!(1), "is not allowed"),
        (json!({"oneOf": [true, true]}), json!(1), "matches more than one of the alternatives"),
    ];
    for (schema, value, message) in cases {
        assert_eq!(messages(&schema, &value), [format!(" {message}")], "{schema}");
    }
}

#[test]
fn a_misspelt_property_is_reported_with_its_pointer_and_a_suggestion() {
    let schema = json!({
        "properties": {"path": {}, "pattern": {}, "a/b": {}},
        "required": ["path"],
        "additionalProperties": false,
    });
    assert_eq!(
        messages(&schema, &json!({"pth": 1, "a~c/": 2})),
        [
            " missing required property `path`",
            "/a~0c~1 unknown property `a~c/`",
            "/pth unknown property `pth`; did you mean `path`?",
        ],
    );
}

#[test]
fn suggestions_come_from_the_subschema_that_rejects() {
    let schema = json!({
        "$defs": {"inner": {"properties": {"depth": {}}, "unevaluatedProperties": false}},
        "properties": {"inner": {"$ref": "#/$defs/inner"}, "width": {}},
    });
    assert_eq!(
        messages(&schema, &json!({"inner": {"dept": 1, "widt": 1}})),
        [
            "/inner/dept unknown property `dept`; did you mean `depth`?",
            "/inner/widt unknown property `widt`",
        ],
    );
}

#[test]
fn a_misspelt_value_is_reported_with_a_suggestion() {
    let schema = json!({"enum": ["celsius", "fahrenheit"]});
    assert_eq!(
        messages(&schema, &json!("celcius")),
        [" expected one of \"celsius\", \"fahrenheit\"; did you mean `celsius`?"],
    );
}

#[test]
fn a_property_name_is_reported_at_the_property() {
    let schema = json!({"propertyNames": {"maxLength": 2}});
    assert_eq!(
        messages(&schema, &json!({"abc": 1})),
        ["/abc the property name must have at most 2 characters"],
    );
}

#[test]
fn alternatives_of_other_types_are_reported_as_one_expectation() {
    let schema = json!({"anyOf": [{"type": "string"}, {"const": 1}, {"type": "null"}]});
    assert_eq!(messages(&schema, &json!([])), [" expected string, 1 or null, found array"]);
}

/// Proves: FR4.6
#[test]
fn of_several_alternatives_the_one_of_the_right_kind_is_explained() {
    let schema = json!({"properties": {"at": {"anyOf": [
        {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["y"]},
        {"type": "null"},
    ]}}});
    assert_eq!(
        messages(&schema, &json!({"at": {"x": "1"}})),
        ["/at missing required property `y`", "/at/x expected number, found string"],
    );
}

#[test]
fn of_several_alternatives_the_one_with_the_right_tag_is_explained() {
    let shape = |kind: &str, size: &str| json!({"properties": {"kind": {"const": kind}, size: {"type": "number"}}, "required": [size]});
    let schema = json!({"oneOf": [shape("circle", "radius"), shape("square", "side")]});
    assert_eq!(
        messages(&schema, &json!({"kind": "square"})),
        [" missing required property `side`"],
    );
    assert_eq!(
        messages(&schema, &json!({"kind": "cube"})),
        ["/kind expected one of \"circle\", \"square\""],
    );
}

#[test]
fn alternatives_that_cannot_be_distinguished_are_reported_together() {
    let either = json!({"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]});
    assert_eq!(messages(&either, &json!({})), [" missing required property `a` or `b` and `c`"]);
    let numbers = json!({"anyOf": [{"minimum": 5}, {"multipleOf": 2}]});
    assert_eq!(messages(&numbers, &json!(3)), [" matches none of the alternatives"]);
}

#[test]
fn of_a_long_list_the_first_values_are_reported() {
    let many: Vec<Value> = (0..20).map(Value::from).collect();
    assert_eq!(
        messages(&json!({"enum": many}), &json!("x")),
        [" expected one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more"],
    );
}

#[test]
fn values_given_are_never_repeated() {
    let schema =
        json!({"properties": {"key": {"type": "string", "pattern": "^sk-", "maxLength": 3}}});
    let message = messages(&schema, &json!({"key": "hunter2"})).concat();
    assert!(!message.contains("hunter2"), "{message}");
}

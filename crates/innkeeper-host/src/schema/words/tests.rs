//! Tests of what is said.

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{problems, quoted};

/// Everything said of `value`, one line each, the pointer first.
fn said(schema: &Value, value: &Value) -> Vec<String> {
    let validator = Validator::new(schema).unwrap();
    let problems = problems(schema, validator.iter_errors(value));
    problems.into_iter().map(|one| format!("{} {}", one.pointer, one.message)).collect()
}

/// Proves: FR4.6
#[test]
fn every_keyword_has_words_of_its_own() {
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
        (json!({"pattern": "^a"}), json!("b"), "must match the pattern \"^a\""),
        (json!({"minItems": 2}), json!([]), "must have at least 2 items"),
        (json!({"maxItems": 1}), json!([1, 2]), "must have at most 1 item"),
        (json!({"uniqueItems": true}), json!([1, 1]), "must not have the same item twice"),
        (
            json!({"contains": {"type": "string"}}),
            json!([1]),
            "has too few or too many items of the kind asked for",
        ),
        (json!({"unevaluatedItems": false}), json!([1]), "has items that are not expected"),
        (json!({"minProperties": 1}), json!({}), "must have at least 1 properties"),
        (json!({"maxProperties": 0}), json!({"a": 1}), "must have at most 0 properties"),
        (json!({"required": ["a"]}), json!({}), "missing required property \"a\""),
        (json!({"not": {}}), json!(1), "must not be what is excluded here"),
        (json!(false), json!(1), "must not be given"),
        (json!({"oneOf": [true, true]}), json!(1), "matches more than one of the alternatives"),
    ];
    for (schema, value, words) in cases {
        assert_eq!(said(&schema, &value), [format!(" {words}")], "{schema}");
    }
}

#[test]
fn a_misspelt_property_is_told_where_it_is_and_what_may_be_meant() {
    let schema = json!({
        "properties": {"path": {}, "pattern": {}, "a/b": {}},
        "required": ["path"],
        "additionalProperties": false,
    });
    assert_eq!(
        said(&schema, &json!({"pth": 1, "a~c/": 2})),
        [
            " missing required property \"path\"",
            "/a~0c~1 unknown property \"a~c/\"",
            "/pth unknown property \"pth\"; did you mean \"path\"?",
        ],
    );
}

#[test]
fn what_may_be_meant_is_looked_for_in_the_part_that_refuses() {
    let schema = json!({
        "$defs": {"inner": {"properties": {"depth": {}}, "unevaluatedProperties": false}},
        "properties": {"inner": {"$ref": "#/$defs/inner"}, "width": {}},
    });
    assert_eq!(
        said(&schema, &json!({"inner": {"dept": 1, "widt": 1}})),
        [
            "/inner/dept unknown property \"dept\"; did you mean \"depth\"?",
            "/inner/widt unknown property \"widt\"",
        ],
    );
}

#[test]
fn a_misspelt_value_is_told_what_may_be_meant() {
    let schema = json!({"enum": ["celsius", "fahrenheit"]});
    assert_eq!(
        said(&schema, &json!("celcius")),
        [" expected one of \"celsius\", \"fahrenheit\"; did you mean \"celsius\"?"],
    );
}

#[test]
fn a_property_name_is_told_at_the_property() {
    let schema = json!({"propertyNames": {"maxLength": 2}});
    assert_eq!(
        said(&schema, &json!({"abc": 1})),
        ["/abc the property name must have at most 2 characters"],
    );
}

#[test]
fn alternatives_of_other_kinds_are_told_as_one_expectation() {
    let schema = json!({"anyOf": [{"type": "string"}, {"const": 1}, {"type": "null"}]});
    assert_eq!(said(&schema, &json!([])), [" expected string, 1 or null, found array"]);
}

/// Proves: FR4.6
#[test]
fn of_several_alternatives_the_one_of_the_right_kind_is_explained() {
    let schema = json!({"properties": {"at": {"anyOf": [
        {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["y"]},
        {"type": "null"},
    ]}}});
    assert_eq!(
        said(&schema, &json!({"at": {"x": "1"}})),
        ["/at missing required property \"y\"", "/at/x expected number, found string"],
    );
}

#[test]
fn of_several_alternatives_the_one_with_the_right_tag_is_explained() {
    let shape = |kind: &str, size: &str| json!({"properties": {"kind": {"const": kind}, size: {"type": "number"}}, "required": [size]});
    let schema = json!({"oneOf": [shape("circle", "radius"), shape("square", "side")]});
    assert_eq!(said(&schema, &json!({"kind": "square"})), [" missing required property \"side\""],);
    assert_eq!(
        said(&schema, &json!({"kind": "cube"})),
        ["/kind expected one of \"circle\", \"square\""],
    );
}

#[test]
fn alternatives_that_cannot_be_told_apart_are_told_together() {
    let either = json!({"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]});
    assert_eq!(said(&either, &json!({})), [" missing required property \"a\" or \"b\" and \"c\""]);
    let numbers = json!({"anyOf": [{"minimum": 5}, {"multipleOf": 2}]});
    assert_eq!(said(&numbers, &json!(3)), [" matches none of the alternatives"]);
}

#[test]
fn long_and_strange_texts_are_shortened_and_escaped() {
    let long = "ä".repeat(100);
    assert_eq!(quoted(&long), format!("\"{}\"…", "ä".repeat(60)));
    assert_eq!(quoted("\u{1b}[31m\u{202e}\n\""), r#""\u{1b}[31m\u{202e}\n\"""#);
    let many: Vec<Value> = (0..20).map(Value::from).collect();
    assert_eq!(
        said(&json!({"enum": many}), &json!("x")),
        [" expected one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more"],
    );
}

#[test]
fn values_given_are_never_repeated() {
    let schema =
        json!({"properties": {"key": {"type": "string", "pattern": "^sk-", "maxLength": 3}}});
    let said = said(&schema, &json!({"key": "hunter2"})).concat();
    assert!(!said.contains("hunter2"), "{said}");
}

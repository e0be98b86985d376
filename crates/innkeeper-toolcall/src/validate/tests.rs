//! Tests of violations and of arguments without a verdict.

use serde_json::json;

use super::*;
use crate::parse::parse_strict;
use crate::tool::Tool;

fn check(schema: Value, arguments: &str) -> Result<Vec<String>, NotValidated> {
    check_json(schema, parse_strict(arguments).unwrap())
}

fn check_json(schema: Value, arguments: Json) -> Result<Vec<String>, NotValidated> {
    let tools: Tools = [Tool::new("t", "", schema)].into_iter().collect();
    let call = ResolvedCall { name: "t".to_owned(), arguments, repairs: Vec::new() };
    let violations = ToolValidator::new(tools).violations(&call)?;
    Ok(violations.iter().map(Violation::to_string).collect())
}

fn joined_messages(schema: Value, arguments: &str) -> String {
    check(schema, arguments).unwrap().join("; ")
}

fn schema_error(schema: Value) -> String {
    match check(schema, "{}") {
        Err(NotValidated::UnusableSchema { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

fn too_costly() -> NotValidated {
    NotValidated::TooCostly { tool: "t".to_owned() }
}

#[test]
fn every_violation_is_reported_with_its_pointer() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "u": {"enum": ["c", "f"]},
            "l": {"type": "array", "maxItems": 1, "items": {"type": "string", "pattern": "^a"}},
        },
        "required": ["city"],
        "additionalProperties": false,
    });
    let violations = check(schema, r#"{"n": 0, "u": "k", "l": ["b", 1], "x": 1}"#).unwrap();
    assert_eq!(
        violations,
        [
            "missing required property `city`",
            "`/l`: must have at most 1 item",
            "`/l/0`: must match the pattern `^a`",
            "`/l/1`: expected string, found number",
            "`/n`: must be at least 1",
            "`/u`: expected one of \"c\", \"f\"",
            "`/x`: unknown property `x`",
        ]
    );
}

#[test]
fn of_alternatives_the_types_or_the_intended_one_are_reported() {
    let either = json!({"properties": {"a": {"anyOf": [
        {"type": "object", "properties": {"n": {"type": "integer"}}}, {"type": "null"},
    ]}}});
    assert_eq!(
        joined_messages(either.clone(), r#"{"a": 1}"#),
        "`/a`: expected object or null, found number"
    );
    assert_eq!(
        joined_messages(either, r#"{"a": {"n": "x"}}"#),
        "`/a/n`: expected integer, found string"
    );
}

#[test]
fn large_numbers_are_integers_and_limits_still_hold() {
    let schema = json!({"properties": {"n": {"type": "integer", "maximum": 10}}});
    let too_large = "`/n`: must be at most 10";
    assert_eq!(
        joined_messages(schema.clone(), r#"{"n": 123456789012345678901234567890}"#),
        too_large
    );
    assert_eq!(joined_messages(schema.clone(), r#"{"n": 10.0}"#), "");
    assert_eq!(joined_messages(schema, r#"{"n": -1e300}"#), "");
}

#[test]
fn each_number_that_cannot_be_checked_is_a_violation_under_every_schema() {
    let message = "cannot be checked: number outside a 64-bit float's range or precision";
    for schema in [json!({}), json!({"properties": {"n": {"maximum": 10}}}), json!({"type": 7})] {
        for (arguments, pointer) in [
            (r#"{"n": 1e400}"#, "/n"),
            (r#"{"n": -1e400}"#, "/n"),
            (r#"{"a/~": [0, {"b": 1e309}]}"#, "/a~1~0/1/b"),
        ] {
            let expected = format!("`{pointer}`: {message}");
            assert_eq!(joined_messages(schema.clone(), arguments), expected);
        }
    }
    assert_eq!(joined_messages(json!({}), r#"{"n": [1.7976931348623157e308, 1e-300]}"#), "");
    for (count, expected) in
        [(MAX_VIOLATIONS, MAX_VIOLATIONS), (MAX_VIOLATIONS + 1, MAX_VIOLATIONS)]
    {
        let arguments = format!(r#"{{"n": [{}]}}"#, vec!["1e400"; count].join(","));
        assert_eq!(check(json!({}), &arguments).unwrap().len(), expected);
    }
}

#[test]
fn nothing_outside_the_schema_is_asked_for() {
    let reason = schema_error(json!({"$ref": "https://example.com/schema.json"}));
    assert_eq!(reason, "reference `https://example.com/schema.json` points outside the schema");
    let dialect = schema_error(json!({"$schema": "https://example.com/dialect"}));
    assert_eq!(dialect, "unknown dialect `https://example.com/dialect`");
    assert_eq!(
        schema_error(json!({"items": {"$dynamicRef": "#a"}})),
        "reference `#a` has no target"
    );
    assert_eq!(schema_error(json!({"type": "thing"})), "invalid at `/type`");
    assert_eq!(schema_error(json!({"pattern": "("})), "pattern `(` is invalid or too large");
    assert_eq!(schema_error(json!(7)), "invalid at the root");
}

#[test]
fn a_nested_base_is_usable_without_references() {
    let nested = json!({"$defs": {"a": {"$id": "b"}}, "required": ["x"]});
    assert_eq!(joined_messages(nested, "{}"), "missing required property `x`");
    let referring = json!({"$defs": {"a": {"$id": "b"}}, "items": {"$ref": "#/$defs/a"}});
    assert!(schema_error(referring).contains("nested `$id`"));
}

#[test]
fn a_schema_that_applies_itself_to_the_same_value_is_unusable() {
    for schema in [json!({"$ref": "#"}), json!({"allOf": [{"$ref": "#"}]})] {
        assert_eq!(schema_error(schema), "infinite self-reference");
    }
}

#[test]
fn a_recursive_schema_is_refused_for_deep_values_alone() {
    let mut schema = json!({"properties": {"a": {"$ref": "#"}}});
    for _ in 0..20 {
        schema = json!({"allOf": [schema]});
    }
    let nested = |levels: usize| format!("{}{{}}{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    assert_eq!(check(schema.clone(), &nested(30)), Ok(Vec::new()));
    assert_eq!(check(schema, &nested(60)), Err(too_costly()));
}

#[test]
fn a_pattern_that_is_costly_is_not_applied_to_a_long_text() {
    let linear = json!({"properties": {"a": {"pattern": "^(\\w{1,20}-)*$"}}});
    assert_eq!(joined_messages(linear, r#"{"a": "b-c-"}"#), "");
    let around = json!({"properties": {"a": {"pattern": "^(?=.*\\d)(?:a+)+$"}}});
    assert_eq!(
        joined_messages(around.clone(), r#"{"a": "b"}"#),
        "`/a`: must match the pattern `^(?=.*\\d)(?:a+)+$`"
    );
    let long = format!(r#"{{"a": "{}"}}"#, "a".repeat(100_000));
    assert_eq!(check(around, &long), Err(too_costly()));
}

#[test]
fn a_panic_of_the_validator_is_no_verdict() {
    let to = |part: &str| json!({"$ref": format!("#/$defs/{part}")});
    let schema = json!({"properties": {"x": to("a")}, "$defs": {
        "a": to("b"), "b": to("c"), "c": to("d"), "d": to("e"),
        "e": {"oneOf": [to("f")], "unevaluatedProperties": {}},
        "f": to("g"), "g": to("h"), "h": to("i"),
        "i": {"patternProperties": {"^y": to("j")}}, "j": to("b"),
    }});
    assert_eq!(check(schema, r#"{"x": {"y": []}}"#), Err(too_costly()));
}

#[test]
fn messages_about_long_names_and_long_lists_are_short() {
    let schema = json!({"additionalProperties": {"enum": (0..20).collect::<Vec<_>>()}});
    let message = joined_messages(schema, &format!(r#"{{"{}": "x"}}"#, "é".repeat(5_000)));
    assert!(message.len() < 300, "{message}");
    assert!(message.ends_with("9, 10, 11 and 8 more"), "{message}");
}

#[test]
fn arguments_deeper_than_a_call_may_be_are_not_checked() {
    let nested = |levels: usize| (0..levels).fold(Json::Null, |all, _| Json::Array(vec![all]));
    assert!(check_json(json!(true), nested(MAX_DEPTH)).is_ok());
    assert_eq!(check_json(json!(true), nested(MAX_DEPTH + 1)), Err(too_costly()));
}

#[test]
fn an_argument_in_another_spelling_of_one_that_is_left_out_does_not_fit() {
    let schema = json!({"properties": {"user_id": {}, "id": {}}});
    let expected = "`/userId`: unknown property; did you mean `user_id`?";
    assert_eq!(joined_messages(schema.clone(), r#"{"userId": 1, "more": 2}"#), expected);
    for fits in [r#"{"userId": 1, "user_id": 2}"#, r#"{"uid": 1}"#, r#"{"_": 1}"#, "{}"] {
        assert_eq!(joined_messages(schema.clone(), fits), "", "{fits}");
    }
    let open = json!({"properties": {"id": {}}, "additionalProperties": true});
    assert_eq!(joined_messages(open, r#"{"ID": 1}"#), "");
    let members: String = (0..100).map(|at| format!("\"{}\": 0, ", spelling(at))).collect();
    let arguments = format!("{{{members}\"z\": 0}}");
    let count = check(json!({"properties": {"abcdefg": {}}}), &arguments).unwrap().len();
    assert_eq!(count, MAX_VIOLATIONS);
}

/// A spelling of `abcdefg`.
fn spelling(number: usize) -> String {
    let upper = |at: usize| ((number + 1) >> at) & 1 == 1;
    "abcdefg"
        .char_indices()
        .map(|(at, character)| if upper(at) { character.to_ascii_uppercase() } else { character })
        .collect()
}

#[test]
fn an_unknown_tool_is_named() {
    let call = ResolvedCall { name: "x".to_owned(), arguments: Json::Null, repairs: Vec::new() };
    let error = ToolValidator::default().violations(&call).unwrap_err();
    assert_eq!(error.to_string(), "there is no tool `x`");
}

#[test]
fn a_validator_can_be_shared_between_threads() {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<ToolValidator>();
}

#[test]
fn a_number_beyond_a_limit_is_a_violation_although_a_float_rounds_it_to_the_limit() {
    let schema = || json!({"properties": {"n": {"type": "integer", "maximum": 100}}});
    for number in ["100.00000000000000000001", "99.99999999999999999"] {
        let violations = joined_messages(schema(), &format!(r#"{{"n": {number}}}"#));
        assert!(violations.contains("`/n`: expected integer, found number"), "{violations}");
    }
    assert_eq!(joined_messages(schema(), r#"{"n": 100.0}"#), "");
    let unlimited = json!({"properties": {"n": {"type": "integer"}}});
    assert_eq!(joined_messages(unlimited, r#"{"n": 123456789012345678901234567890}"#), "");
}

#[test]
fn a_number_that_cannot_be_checked_is_a_violation() {
    for number in ["1e400", "-1e400", "100000000000000000000000000000.5"] {
        let violations = joined_messages(json!({}), &format!(r#"{{"a/b": [0, {number}]}}"#));
        assert!(violations.starts_with("`/a~1b/1`: cannot be checked: number"), "{violations}");
    }
}

//! Tests of violations and of hostile schemas.

use serde_json::json;

use super::compile::{MAX_EXPLAINED_VISITS, MAX_SCHEMA_DEPTH, MAX_VIOLATIONS};
use super::cost::{MAX_SCHEMA_NESTING, MAX_VISITS};
use super::messages::MAX_POINTER_BYTES;
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
    let mut violations = check(schema, r#"{"n": 0, "u": "k", "l": ["b", 1], "x": 1}"#).unwrap();
    violations.sort();
    assert_eq!(
        violations,
        [
            "`/l/0`: must match the pattern `^a`",
            "`/l/1`: expected string, found number",
            "`/l`: must have 1 items or fewer",
            "`/n`: must be at least 1",
            "`/u`: expected one of `c`, `f`",
            "arguments: missing required property `city`",
            "arguments: unknown property `x`",
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
    assert_eq!(joined_messages(schema.clone(), r#"{"n": 1e400}"#), too_large);
    assert_eq!(joined_messages(schema, r#"{"n": -1e400}"#), "");
}

#[test]
fn nothing_outside_the_schema_is_asked_for() {
    let reason = schema_error(json!({"$ref": "https://example.com/schema.json"}));
    assert_eq!(reason, "unresolved reference `https://example.com/schema.json`");
    let dialect = schema_error(json!({"$schema": "https://example.com/dialect"}));
    assert_eq!(dialect, "unknown dialect `https://example.com/dialect`");
    assert!(schema_error(json!({"$defs": {"a": {"$id": "b"}}})).contains("nested `$id`"));
    assert!(schema_error(json!({"items": {"$dynamicRef": "#a"}})).contains("dynamic reference"));
    assert!(schema_error(json!({"type": "thing"})).contains("`/type`"));
    assert!(schema_error(json!({"pattern": "("})).contains("invalid at"));
    assert_eq!(schema_error(json!([])), "not an object");
}

#[test]
fn a_draft_07_schema_that_does_not_say_so_is_used() {
    let tuple = json!({"properties": {"a": {"items": [{"type": "integer"}]}}});
    assert_eq!(joined_messages(tuple, r#"{"a": ["x"]}"#), "`/a/0`: expected integer, found string");
}

#[test]
fn values_in_a_schema_up_to_the_limit_are_taken_and_one_past_it_is_not() {
    let with = |values: usize| json!({"enum": vec![1; values - 2]});
    assert!(check(with(5_000), "{}").is_ok());
    assert_eq!(schema_error(with(5_001)), "more than 5000 values");
    let patterns = |count: usize| {
        let members: Vec<Value> = (0..count).map(|_| json!({"pattern": "a"})).collect();
        json!({"allOf": members})
    };
    assert!(check(patterns(64), "{}").is_ok());
    assert_eq!(schema_error(patterns(65)), "more than 64 patterns");
}

#[test]
fn references_that_double_are_refused_before_they_are_compiled() {
    let mut definitions = json!({"x40": {}});
    for level in 0..40 {
        let below = json!({"$ref": format!("#/$defs/x{}", level + 1)});
        definitions[format!("x{level}")] = json!({"allOf": [below, below]});
    }
    let reason = schema_error(json!({"$ref": "#/$defs/x0", "$defs": definitions}));
    assert_eq!(reason, "references expand to more than 100000 values");
}

#[test]
fn a_schema_that_applies_itself_to_the_same_value_is_refused() {
    for schema in [json!({"$ref": "#"}), json!({"allOf": [{"$ref": "#"}]})] {
        assert_eq!(check(schema, "{}"), Err(NotValidated::TooCostly { tool: "t".to_owned() }));
    }
}

#[test]
fn a_schema_that_branches_into_itself_is_refused_for_deep_values_alone() {
    let schema = json!({"type": ["object", "array"], "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        "additionalProperties": {"$ref": "#"}});
    let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(check(schema.clone(), &nested(8)), Ok(Vec::new()));
    let result = check(schema, &nested(60));
    assert_eq!(result, Err(NotValidated::TooCostly { tool: "t".to_owned() }));
}

#[test]
fn arguments_at_the_limit_of_visits_are_checked_and_one_past_it_are_not() {
    let schema = json!({"additionalProperties": {"items": true}});
    let with = |visits: usize| {
        let items = vec![Json::Null; visits - 2];
        check_json(schema.clone(), Json::Object(vec![("a".to_owned(), Json::Array(items))]))
    };
    assert_eq!(with(MAX_VISITS), Ok(Vec::new()));
    assert!(with(MAX_VISITS + 1).is_err());
}

#[test]
fn violations_up_to_a_limit_are_reported_and_of_large_arguments_the_first() {
    let schema = json!({"additionalProperties": {"items": {"type": "string"}}});
    let with = |wrong: usize, all: usize| {
        let mut items = vec![Json::Null; wrong];
        items.resize(all, Json::String(String::new()));
        let arguments = Json::Object(vec![("a".to_owned(), Json::Array(items))]);
        check_json(schema.clone(), arguments).unwrap().len()
    };
    assert_eq!(with(MAX_VIOLATIONS, MAX_VIOLATIONS), MAX_VIOLATIONS);
    assert_eq!(with(MAX_VIOLATIONS + 1, MAX_VIOLATIONS + 1), MAX_VIOLATIONS);
    assert_eq!(with(2, MAX_EXPLAINED_VISITS - 2), 2);
    assert_eq!(with(2, MAX_EXPLAINED_VISITS - 1), 1);
}

#[test]
fn messages_about_long_names_and_long_lists_are_short() {
    let schema = json!({"additionalProperties": {"enum": (0..20).collect::<Vec<_>>()}});
    let message = joined_messages(schema, &format!(r#"{{"{}": "x"}}"#, "é".repeat(5_000)));
    assert!(message.len() < 300, "{message}");
    assert!(message.ends_with("9, 10, 11 and others"), "{message}");
}

#[test]
fn a_pointer_at_the_limit_is_whole_and_of_a_longer_one_the_end_is_left_out() {
    let pointer = |key: String| {
        let schema =
            json!({"additionalProperties": false, "patternProperties": {"": {"type": "null"}}});
        let tools: Tools = [Tool::new("t", "", schema)].into_iter().collect();
        let arguments = Json::Object(vec![(key, Json::Bool(true))]);
        let call = ResolvedCall { name: "t".to_owned(), arguments, repairs: Vec::new() };
        ToolValidator::new(tools).violations(&call).unwrap().remove(0).pointer
    };
    let longest = "x".repeat(MAX_POINTER_BYTES - 1);
    assert_eq!(pointer(longest.clone()), format!("/{longest}"));
    assert_eq!(pointer(format!("{longest}y")), format!("/{longest}…"));
}

#[test]
fn arguments_deeper_than_a_call_may_be_are_not_checked() {
    let nested = |levels: usize| (0..levels).fold(Json::Null, |all, _| Json::Array(vec![all]));
    assert!(check_json(json!(true), nested(MAX_DEPTH)).is_ok());
    assert!(check_json(json!(true), nested(MAX_DEPTH + 1)).is_err());
}

/// Runs a function on the smallest expected stack.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn values_inside_one_another_are_taken_up_to_the_limit() {
    let nested = |around: usize| (0..around).fold(json!({}), |schema, _| json!({ "not": schema }));
    on_a_small_stack(move || {
        assert_eq!(check(nested(MAX_SCHEMA_DEPTH - 2), "{}"), Ok(Vec::new()));
        assert!(check(nested(MAX_SCHEMA_DEPTH - 1), "{}").is_ok());
        let reason = schema_error(nested(MAX_SCHEMA_DEPTH));
        assert_eq!(reason, "more than 128 levels of nested values");
    });
}

#[test]
fn a_chain_of_references_is_followed_up_to_the_limit() {
    let chain = |links: usize| {
        let mut definitions = json!({});
        for link in 1..links {
            definitions[link.to_string()] = json!({"$ref": format!("#/$defs/{}", link + 1)});
        }
        definitions[links.to_string()] = json!({"type": "object"});
        json!({"$ref": "#/$defs/1", "$defs": definitions})
    };
    on_a_small_stack(move || {
        // The last link and its `type` also count.
        assert_eq!(check(chain(MAX_SCHEMA_NESTING - 2), "{}"), Ok(Vec::new()));
        let reason = schema_error(chain(MAX_SCHEMA_NESTING - 1));
        assert_eq!(reason, "more than 256 nested subschemas");
    });
}

#[test]
fn a_value_is_followed_into_a_recursion_up_to_the_limit() {
    let list = json!({"$defs": {"l": {"items": {"allOf": [{"anyOf": [{"$ref": "#/$defs/l"}]}]}}},
        "additionalProperties": {"$ref": "#/$defs/l"}});
    let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    on_a_small_stack(move || {
        assert_eq!(check(list.clone(), &nested(64)), Ok(Vec::new()));
        assert!(check(list, &nested(65)).is_err());
    });
}

#[test]
fn references_written_out_are_taken_up_to_the_limit() {
    let with = |more: usize| {
        let uses = vec![json!({"$ref": "#/$defs/a"}); 998];
        json!({"allOf": uses, "$defs": {"a": {"examples": vec![0; 96]}}, "examples": vec![0; 98 + more]})
    };
    assert_eq!(check(with(0), "{}"), Ok(Vec::new()));
    let reason = schema_error(with(1));
    assert_eq!(reason, "references expand to more than 100000 values");
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
    assert_eq!(check(around, &long), Err(NotValidated::TooCostly { tool: "t".to_owned() }));
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

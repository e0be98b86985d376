//! Tests of arguments that would cost too much with a harmless schema.

use serde_json::{Map, Value, json};

use super::{check, fits, limit_message, only_message, pointers, read};

const UNLOCATED_MESSAGE: &str =
    "does not match the schema; the value is too large or too deep to locate the problem";

const TOO_LARGE: &str = "too large to be checked against the schema";

/// Returns `innermost` nested in `depth` objects.
fn nested(depth: usize, innermost: Value) -> Value {
    (0..depth).fold(innermost, |inner, _| json!({"x": inner}))
}

/// Returns a schema that applies itself twice to the same member.
fn fanning() -> Value {
    json!({"type": "object", "properties": {"x": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}})
}

#[test]
fn a_recursion_that_fans_out_is_checked_at_any_depth_when_all_fits() {
    assert!(fits(&fanning(), &nested(120, json!({}))));
}

/// Proves: FR4.6
#[test]
fn a_recursion_that_fans_out_is_explained_up_to_a_depth() {
    assert_eq!(pointers(&fanning(), &nested(14, json!(1))), ["/x".repeat(14)]);
    assert_eq!(only_message(&fanning(), &nested(15, json!(1))), UNLOCATED_MESSAGE);
    assert_eq!(only_message(&fanning(), &nested(120, json!(1))), UNLOCATED_MESSAGE);
}

#[test]
fn an_ordinary_recursion_is_explained_at_any_depth() {
    let list = json!({"type": "object", "properties": {"x": {"$ref": "#"}}});
    assert_eq!(pointers(&list, &nested(120, json!(1))), ["/x".repeat(120)]);
    let any = json!({
        "properties": {"x": {"$ref": "#/$defs/any"}},
        "$defs": {"any": {"anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": {"$ref": "#/$defs/any"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/any"}},
        ]}},
    });
    assert!(fits(&any, &nested(120, json!([1, "a", {"b": null}]))));
}

#[test]
fn documents_of_many_kinds_of_parts_within_parts_are_checked_at_any_depth() {
    let kinds = ["doc", "list", "item", "quote", "table", "row", "cell", "panel"];
    let any: Vec<Value> =
        kinds.iter().map(|kind| json!({"$ref": format!("#/$defs/{kind}")})).collect();
    let parts: Map<String, Value> = kinds
        .iter()
        .map(|kind| {
            let part = json!({"type": "object", "required": ["kind"], "properties": {
                "kind": {"const": kind}, "content": {"type": "array", "items": {"anyOf": any}},
            }});
            ((*kind).to_owned(), part)
        })
        .collect();
    let schema = json!({"$defs": parts, "properties": {"doc": {"anyOf": any}}});
    let document = |depth: usize, innermost: &str| {
        let part = |inner: Value, level| json!({"kind": kinds[level % 8], "content": [inner]});
        json!({"doc": (0..depth).fold(json!({"kind": innermost}), part)})
    };
    assert!(fits(&schema, &document(50, "cell")));
    assert_eq!(
        check(&schema, &document(2, "sell")),
        [(
            "/doc/content/0/content/0/kind".to_owned(),
            r#"expected one of "doc", "list", "item", "quote", "table", "row", "cell", "panel""#
                .to_owned(),
        )],
    );
    assert_eq!(only_message(&schema, &document(50, "sell")), UNLOCATED_MESSAGE);
}

/// Attack: data | deep arguments for a schema that uses much stack per level | the check is
/// rejected before it starts | No unbounded memory
#[test]
fn what_is_nested_too_deep_for_the_stack_is_refused() {
    let mut recursive = json!({"properties": {"x": {"$ref": "#"}}});
    for _ in 0..20 {
        recursive = json!({"allOf": [recursive]});
    }
    assert!(fits(&recursive, &nested(30, json!({}))));
    assert_eq!(
        only_message(&recursive, &nested(100, json!({}))),
        "nested too deeply to be checked against the schema",
    );
}

/// Attack: data | 30 arguments for an expensive schema | the check is rejected | No unbounded wait
#[test]
fn many_arguments_times_a_costly_schema_are_refused() {
    let mut parts: Map<String, Value> = (0..14)
        .map(|index| {
            let next = json!({"$ref": format!("#/$defs/a{}", index + 1)});
            (format!("a{index}"), json!({"allOf": [next, next]}))
        })
        .collect();
    parts.insert("a14".to_owned(), json!({"minimum": 0}));
    let schema = json!({"$defs": parts, "properties": {"all": {"items": {"$ref": "#/$defs/a0"}}}});
    assert!(fits(&schema, &json!({"all": [1, 2, 3]})));
    assert_eq!(only_message(&schema, &json!({"all": vec![1; 30]})), TOO_LARGE);
}

#[test]
fn one_mistake_in_a_long_list_is_still_found() {
    let schema = json!({"properties": {"rows": {"items": {
        "type": "object", "required": ["n"], "properties": {"n": {"anyOf": [
            {"type": "integer"}, {"type": "null"},
        ]}},
    }}}});
    let mut rows = vec![json!({"n": 1}); 12_000];
    rows[11_999] = json!({"n": "1"});
    assert_eq!(
        check(&schema, &json!({"rows": rows})),
        [("/rows/11999/n".to_owned(), "expected integer or null, found string".to_owned())],
    );
}

#[test]
fn errors_of_alternatives_do_not_copy_large_arguments_often() {
    let each: Vec<Value> = (0..800).map(|index| json!({"required": [index.to_string()]})).collect();
    let schema = json!({"anyOf": each});
    assert_eq!(only_message(&schema, &json!({"text": "x".repeat(1 << 20)})), UNLOCATED_MESSAGE);
    assert!(
        only_message(&schema, &json!({"text": "x"})).starts_with("missing required property `0`")
    );
}

mod patterns {
    use super::*;

    fn matching(pattern: &str) -> Value {
        json!({"properties": {"a": {"pattern": pattern}}})
    }

    /// Attack: data | the pattern `^(a+)+$` for 50,000 characters | the match takes linear time |
    /// No unbounded wait
    #[test]
    fn nested_repetition_takes_linear_time() {
        let mut text = "a".repeat(50_000);
        let schema = matching("^(a+)+$");
        assert!(fits(&schema, &json!({"a": text})));
        text.push('!');
        assert_eq!(pointers(&schema, &json!({"a": text})), ["/a"]);
    }

    /// Attack: data | the pattern `(a{1000}){1000}` | the schema is unusable | No unbounded memory
    #[test]
    fn a_huge_repetition_is_refused_when_it_is_compiled() {
        assert_eq!(
            only_message(&matching("(a{1000}){1000}"), &json!({"a": "a"})),
            "the schema is unusable: pattern `(a{1000}){1000}` is invalid or too large",
        );
    }

    #[test]
    fn a_large_pattern_is_not_matched_against_a_long_text() {
        let schema = matching("^(0|1)*1(0|1){500}$");
        assert!(fits(&schema, &json!({"a": "1".repeat(501)})));
        assert_eq!(only_message(&schema, &json!({"a": "1".repeat(50_000)})), TOO_LARGE);
    }

    #[test]
    fn looking_around_is_possible_for_short_texts_only() {
        let schema = matching(r"^(?!\.)(?!.*\.\.)[a-z.]+@([a-z]+\.)+[a-z]{2,}$");
        assert!(fits(&schema, &json!({"a": "some.one@example.com"})));
        assert_eq!(pointers(&schema, &json!({"a": "some..one@example.com"})), ["/a"]);
        assert_eq!(only_message(&schema, &json!({"a": "a".repeat(50_000)})), TOO_LARGE);
    }

    /// Attack: data | a pattern with back-references and exponential backtracking | the match ends
    /// with a violation | No unbounded wait
    #[test]
    fn a_match_that_takes_too_many_turns_is_given_up() {
        let schema = matching(r"^(?:(a|a|a)\1?)*(?=b)c$");
        assert_eq!(
            check(&schema, &json!({"a": "a".repeat(60)})),
            [("/a".to_owned(), "takes too long to match against its pattern".to_owned())],
        );
    }

    #[test]
    fn names_of_properties_count_as_texts() {
        let schema = json!({"patternProperties": {"^(0|1)*1(0|1){500}$": true}});
        assert!(fits(&schema, &json!({"1": 1})));
        assert_eq!(only_message(&schema, &json!({"1".repeat(50_000): 1})), TOO_LARGE);
    }

    /// Attack: data | a schema with 65 patterns | the schema is rejected | No unbounded wait
    #[test]
    fn more_patterns_than_can_be_compiled_quickly_are_refused() {
        let each = |count: usize| -> Vec<Value> {
            (0..count).map(|index| json!({"pattern": format!("^{index}")})).collect()
        };
        assert!(read(&json!({"properties": {"a": {"allOf": each(64)}}})).is_ok());
        let rejected = limit_message(&json!({"properties": {"a": {"allOf": each(65)}}}));
        assert_eq!(rejected, "more than 64 patterns");
    }
}

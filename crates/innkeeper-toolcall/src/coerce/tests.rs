//! Tests of coercion.

use serde_json::{Value, json};

use super::*;
use crate::parse::{MAX_DEPTH, parse_strict};

/// Coerces the argument `a`. Returns the result and the messages of the repairs.
fn coerce_argument(schema: &Value, a: &str) -> (String, Vec<String>) {
    let schema = json!({"type": "object", "properties": {"a": schema}});
    let arguments = parse_strict(&format!("{{\"a\":{a}}}")).unwrap();
    let mut repairs = Vec::new();
    let arguments = coerce(arguments, &schema, &mut repairs);
    let a = arguments.get("a").unwrap().to_string();
    (a, repairs.iter().map(Repair::to_string).collect())
}

fn assert_becomes(schema: &Value, from: &str, to: &str) {
    let (actual, repairs) = coerce_argument(schema, from);
    assert_eq!(actual, to, "{from} under {schema}");
    assert!(!repairs.is_empty(), "{from} under {schema} is changed in silence");
}

fn assert_unchanged(schema: &Value, a: &str) {
    assert_eq!(coerce_argument(schema, a), (a.to_owned(), Vec::new()), "under {schema}");
}

#[test]
fn a_string_becomes_what_it_spells_where_a_string_is_not_allowed() {
    assert_becomes(&json!({"type": "integer"}), r#"" 3 ""#, "3");
    assert_becomes(&json!({"type": "integer"}), r#""3.0""#, "3");
    assert_becomes(&json!({"type": "number"}), r#""1.50""#, "1.50");
    assert_becomes(&json!({"type": "number"}), r#""1e400""#, "1e400");
    assert_becomes(&json!({"type": "boolean"}), r#""true""#, "true");
    assert_becomes(&json!({"type": "boolean"}), r#""False""#, "false");
    assert_becomes(&json!({"type": ["integer", "null"]}), r#""None""#, "null");
    assert_becomes(&json!({"enum": [1, 2, null]}), r#""2""#, "2");
    assert_becomes(&json!({"const": 4}), r#""4""#, "4");
}

#[test]
fn a_whole_number_is_written_as_an_integer_where_the_schema_requires_one() {
    let integer = json!({"type": "integer"});
    assert_becomes(&integer, "140.0", "140");
    assert_becomes(&json!({"type": ["integer", "null"]}), "1e2", "100");
    assert_becomes(&json!({"type": "array", "items": integer}), "[1, 2.0, 3]", "[1,2,3]");
    assert_becomes(&json!({"anyOf": [integer, {"type": "string"}]}), "2.0", "2");
    let object = json!({"type": "object", "properties": {"x": integer}});
    for schema in [json!({"anyOf": [{"type": "null"}, object]}), json!({"allOf": [object]})] {
        assert_becomes(&schema, r#"{"x": -7.0}"#, r#"{"x":-7}"#);
    }
    assert_becomes(
        &json!({"type": "object", "additionalProperties": integer}),
        r#"{"x": 1.0}"#,
        r#"{"x":1}"#,
    );
    for schema in
        [json!({"type": "number"}), json!({}), json!({"anyOf": [integer, {"type": "number"}]})]
    {
        assert_unchanged(&schema, "140.0");
    }
    assert_unchanged(&integer, "140.5");
    assert_unchanged(&integer, "1e400");
}

#[test]
fn a_string_that_spells_nothing_else_stays() {
    for text in ["007", "3.5", "1e2", "three", "", "0x1F", "NaN"] {
        assert_unchanged(&json!({"type": "integer"}), &format!("\"{text}\""));
    }
    for text in ["yes", "1", "TRUE"] {
        assert_unchanged(&json!({"type": "boolean"}), &format!("\"{text}\""));
    }
    assert_unchanged(&json!({"type": ["string", "null"]}), r#""null""#);
    assert_unchanged(&json!({"type": "integer", "nullable": true}), r#""null""#);
}

#[test]
fn a_number_or_boolean_becomes_a_string_with_its_digits_untouched() {
    assert_becomes(
        &json!({"type": "string"}),
        "123456789012345678901",
        r#""123456789012345678901""#,
    );
    assert_becomes(&json!({"type": ["string", "null"]}), "1.50", r#""1.50""#);
    assert_becomes(&json!({"type": "string"}), "true", r#""true""#);
    assert_unchanged(&json!({"type": ["string", "number"]}), "3");
    assert_unchanged(&json!({"type": "string"}), "null");
    assert_unchanged(&json!({"type": "string"}), "[1]");
}

#[test]
fn a_single_value_becomes_an_array_of_one_unless_it_may_be_a_list() {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    assert_becomes(&strings, r#""red""#, r#"["red"]"#);
    assert_becomes(&strings, "7", r#"["7"]"#);
    assert_becomes(&json!({"type": "array"}), "true", "[true]");
    assert_becomes(&json!({"type": "array", "items": {"type": "integer"}}), r#""3""#, "[3]");
    for text in [r#""a, b""#, r#""a\nb""#, r#""""#, r#""[a""#, "null", "{}"] {
        assert_unchanged(&strings, text);
    }
    assert_unchanged(&json!({"type": "array", "items": {"type": "integer"}}), r#""x""#);
    assert_unchanged(&json!({"type": ["integer", "array"]}), r#""3""#);
}

#[test]
fn json_in_a_string_is_read_where_an_array_or_object_is_asked_for() {
    let object = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    assert_becomes(&object, r#""{\"n\": \"1\"}""#, r#"{"n":1}"#);
    assert_becomes(&json!({"type": "array"}), r#""[1, 2]""#, "[1,2]");
    let (actual, repairs) = coerce_argument(&object, r#""{'n': 1}""#);
    assert_eq!(actual, r#"{"n":1}"#);
    assert_eq!(
        repairs,
        [
            "`/a`: string parsed as JSON",
            "in the JSON text at `/a`: single quotes read as double quotes (byte 1)",
        ]
    );
    assert_unchanged(&json!({"type": "string"}), r#""{\"n\": 1}""#);
    assert_unchanged(&object, r#""[1]""#);
    assert_unchanged(&object, r#""{\"n\": 1""#);
}

#[test]
fn alternatives_that_disagree_change_nothing() {
    let either = |first: &str, other: &str| json!({"anyOf": [{"type": first}, {"type": other}]});
    assert_becomes(&either("integer", "null"), r#""3""#, "3");
    assert_becomes(&either("integer", "number"), r#""3""#, "3");
    assert_becomes(&either("boolean", "integer"), r#""true""#, "true");
    assert_becomes(&json!({"oneOf": [{"type": "null"}, {"type": "string"}]}), "3", r#""3""#);
    assert_unchanged(&either("string", "integer"), r#""3""#);
    assert_unchanged(&either("integer", "array"), r#""3""#);
}

#[test]
fn the_alternative_that_a_value_is_of_is_followed_into_its_parts() {
    let subschema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "b": {"type": "boolean"}}});
    let schema = json!({"anyOf": [subschema, {"type": "null"}]});
    assert_becomes(&schema, r#"{"n":"1","b":"maybe"}"#, r#"{"n":1,"b":"maybe"}"#);
}

#[test]
fn the_alternative_that_the_other_members_speak_for_is_followed() {
    let n = |kind: &str, kindly: Value| json!({"properties": {"k": kindly, "n": {"type": kind}}});
    let tagged = json!({"oneOf": [
        n("integer", json!({"const": "x"})), n("string", json!({"enum": ["y", "z"]})),
    ]});
    assert_becomes(&tagged, r#"{"k":"x","n":"3"}"#, r#"{"k":"x","n":3}"#);
    assert_unchanged(&tagged, r#"{"k":"z","n":"3"}"#);
    let mut required = json!({"anyOf": [n("integer", json!({})), n("string", json!({}))]});
    required["anyOf"][1]["required"] = json!(["k"]);
    assert_becomes(&required, r#"{"n":"3"}"#, r#"{"n":3}"#);
    assert_unchanged(&required, r#"{"k":1,"n":"3"}"#);
}

#[test]
fn references_in_the_schema_are_followed_and_others_are_left_alone() {
    let schema = json!({
        "properties": {"a": {"$ref": "#/$defs/a"}, "x": {"$ref": "#/nowhere"}, "l": {"$ref": "#/$defs/loop"}},
        "$defs": {
            "a": {"$ref": "#/$defs/b"},
            "b": {"type": "array", "items": {"allOf": [{"type": "integer"}]}},
            "loop": {"$ref": "#/$defs/loop"},
        },
    });
    let mut repairs = Vec::new();
    let arguments = parse_strict(r#"{"a":["1",2],"x":"1","l":"1"}"#).unwrap();
    let arguments = coerce(arguments, &schema, &mut repairs);
    assert_eq!(arguments.to_string(), r#"{"a":[1,2],"x":"1","l":"1"}"#);
    assert_eq!(repairs.len(), 1);
    assert_eq!(repairs[0].to_string(), "`/a/0`: string read as a number");
}

#[test]
fn arguments_are_never_renamed_added_or_dropped() {
    let schema = json!({
        "type": "object",
        "properties": {"query": {"type": "string"}, "n": {"type": "integer", "default": 5}},
        "required": ["query", "n"],
        "additionalProperties": false,
    });
    let arguments = parse_strict(r#"{"Query":"x","extra":1}"#).unwrap();
    let mut repairs = Vec::new();
    assert_eq!(coerce(arguments.clone(), &schema, &mut repairs), arguments);
    assert!(repairs.is_empty());
}

/// Attack: model | a string contains nested JSON past the depth limit | the string stays a string |
/// No unbounded memory
#[test]
fn strings_in_strings_do_not_go_deeper_than_the_limit() {
    let schema = json!({"$defs": {"l": {"type": "array", "items": {"$ref": "#/$defs/l"}}}, "$ref": "#/$defs/l"});
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let inside = |levels| Json::Array(vec![Json::String(nested(levels))]);
    let changed = coerce(inside(MAX_DEPTH - 1), &schema, &mut Vec::new());
    assert_eq!(changed.to_string(), nested(MAX_DEPTH));
    assert_eq!(coerce(inside(MAX_DEPTH), &schema, &mut Vec::new()), inside(MAX_DEPTH));
}

#[test]
fn a_schema_that_branches_into_itself_ends_and_changes_nothing() {
    let both = json!({"anyOf": [
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 0},
    ]});
    let arguments =
        Json::Array(vec![parse_strict(&("[".repeat(100) + "\"x\"" + &"]".repeat(100))).unwrap()]);
    let mut repairs = Vec::new();
    assert_eq!(coerce(arguments.clone(), &both, &mut repairs), arguments);
    assert!(repairs.is_empty());
}

/// References and alternatives in turn: the types behind them are a tree of 200⁸ leaves.
/// Attack: model | 200 alternatives of a schema refer to the schema itself | the conversion ends
/// and changes nothing | No unbounded wait
#[test]
fn a_wide_schema_of_references_to_itself_takes_bounded_work() {
    let branches = vec![json!({"$ref": "#"}); 200];
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let schema = json!({keyword: branches});
        let text = Json::String("1".to_owned());
        assert_eq!(coerce(text.clone(), &schema, &mut Vec::new()), text, "{keyword}");
        assert_eq!(coerce_text("1", Some(&schema), &schema), text, "{keyword}");
        let inside = json!({"properties": {"x": {"anyOf": [{"type": "integer"}, schema]}},
            "$defs": {"again": schema}});
        let arguments = parse_strict(r#"{"x": {"y": "1"}}"#).unwrap();
        assert_eq!(coerce(arguments.clone(), &inside, &mut Vec::new()), arguments, "{keyword}");
    }
    let listed = json!({"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/wide"}],
        "$defs": {"wide": {"type": "array", "anyOf": [{"$ref": "#/$defs/wide/anyOf/1"}, {"allOf": vec![json!({"$ref": "#/$defs/wide/anyOf/1"}); 200]}]}}});
    let text = Json::String("x".to_owned());
    assert_eq!(coerce(text.clone(), &listed, &mut Vec::new()), text);
}

#[test]
fn the_types_of_alternatives_are_unknown_as_soon_as_one_of_them_is() {
    let read = |schema: Value| coerce_text("3", Some(&schema), &schema).to_string();
    assert_eq!(read(json!({"anyOf": [{"type": "integer"}, {"type": "null"}]})), "3");
    assert_eq!(read(json!({"anyOf": [{"type": "integer"}, {}]})), r#""3""#);
    assert_eq!(read(json!({"oneOf": [{}, {"type": "integer"}]})), r#""3""#);
    assert_eq!(read(json!({"allOf": [{}, {"type": "integer"}]})), "3");
}

#[test]
fn arguments_at_the_limit_of_visits_are_changed_and_larger_ones_are_not() {
    let schema = json!({"type": "array", "items": {"type": "integer"}});
    let changed_at = |at: usize, count: usize| {
        let mut items = vec![Json::Number("1".to_owned()); count];
        items.insert(at, Json::String("2".to_owned()));
        let mut repairs = Vec::new();
        let before = Json::Array(items);
        let after = coerce(before.clone(), &schema, &mut repairs);
        assert_eq!(repairs.is_empty(), before == after);
        !repairs.is_empty()
    };
    assert!(!changed_at(0, MAX_VISITS), "half of it was changed");
    let changed = |count: usize| changed_at(count, count);
    // Each item has two visits: one to check all items and one to find the invalid item.
    let max_items = (MAX_VISITS - 10) / 2;
    assert!(changed(max_items));
    assert!(!changed(max_items + 10));
}

#[test]
fn raw_text_is_read_by_its_schema() {
    let read = |schema: &Value, text: &str| coerce_text(text, Some(schema), &json!({})).to_string();
    let string = json!({"type": "string"});
    for text in ["02139", "true", "123456789012345678901", "null", " a "] {
        assert_eq!(read(&string, text), format!("\"{text}\""));
        assert_eq!(read(&json!({"description": "?"}), text), format!("\"{text}\""));
        assert_eq!(coerce_text(text, None, &json!({})).to_string(), format!("\"{text}\""));
    }
    assert_eq!(read(&string, r#"{"a": 1}"#), r#""{\"a\": 1}""#);
    let nullable = json!({"type": ["string", "null"]});
    assert_eq!(read(&nullable, " null\n"), "null");
    assert_eq!(read(&nullable, "None"), r#""None""#);
    assert_eq!(read(&nullable, "7"), r#""7""#);
    assert_eq!(read(&nullable, "\"x\""), r#""\"x\"""#);
    let any = json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]});
    assert_eq!(read(&any, "some text"), r#""some text""#);
    assert_eq!(read(&any, "42"), "42");
    assert_eq!(read(&any, "4.5"), r#""4.5""#);
    assert_eq!(read(&json!({"type": "boolean"}), "True"), "true");
    assert_eq!(read(&json!({"type": ["integer", "null"]}), "None"), "null");
    assert_eq!(read(&json!({"type": "integer"}), "True"), r#""True""#);
    assert_eq!(read(&json!({"type": "integer"}), "3.50"), "3.50");
    assert_eq!(read(&json!({"type": "integer"}), "007"), r#""007""#);
    assert_eq!(read(&json!({"type": "array"}), "[1, \"a\"]\n"), r#"[1,"a"]"#);
    assert_eq!(read(&json!({"properties": {}}), r#"{"a": 1}"#), r#"{"a":1}"#);
    assert_eq!(read(&json!({"enum": ["1", "2"]}), "1"), r#""1""#);
}

#[test]
fn raw_text_is_read_by_a_schema_behind_references() {
    let root =
        json!({"$defs": {"n": {"allOf": [{"type": "number"}, {"type": ["integer", "null"]}]}}});
    let schema = json!({"$ref": "#/$defs/n"});
    assert_eq!(coerce_text("3", Some(&schema), &root).to_string(), "3");
    assert_eq!(coerce_text("None", Some(&schema), &root).to_string(), r#""None""#);
}

#[test]
fn a_chain_of_references_at_the_limit_is_followed_and_one_past_it_is_not() {
    let changed = |links: usize| {
        let mut definitions = json!({});
        for link in 1..links {
            definitions[link.to_string()] = json!({"$ref": format!("#/$defs/{}", link + 1)});
        }
        definitions[links.to_string()] = json!({"type": "integer"});
        let schema = json!({"items": {"$ref": "#/$defs/1"}, "$defs": definitions});
        let arguments = Json::Array(vec![Json::String("1".to_owned())]);
        coerce(arguments.clone(), &schema, &mut Vec::new()) != arguments
    };
    assert!(changed(schema::MAX_REFERENCES));
    assert!(!changed(schema::MAX_REFERENCES + 1));
}

#[test]
fn schemas_inside_one_another_up_to_the_limit_are_applied_and_one_past_it_are_not() {
    let changed = |around: usize| {
        let innermost = json!({"type": "integer"});
        let schema = (0..around).fold(innermost, |schema, _| json!({"allOf": [schema]}));
        let arguments = Json::String("1".to_owned());
        coerce(arguments.clone(), &schema, &mut Vec::new()) != arguments
    };
    assert!(changed(MAX_SCHEMA_NESTING - 1));
    assert!(!changed(MAX_SCHEMA_NESTING));
}

/// Attack: model | arguments at the depth limit under a recursive schema | the conversion fits on a
/// stack of 1 MiB | No unbounded memory
#[test]
fn a_deep_value_under_a_recursive_schema_fits_on_a_small_stack() {
    let schema = json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]});
    let run = move || {
        for levels in [MAX_DEPTH / 2, MAX_DEPTH - 1] {
            let text = "[".repeat(levels) + "\"1\"" + &"]".repeat(levels);
            coerce(parse_strict(&text).unwrap(), &schema, &mut Vec::new());
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn an_item_has_the_schema_of_its_place_in_the_tuple_or_of_the_items_behind() {
    let parts = json!([{"type": "integer"}, {"type": "string"}]);
    let boolean = json!({"type": "boolean"});
    for schema in [
        json!({"type": "array", "prefixItems": parts, "items": boolean}),
        json!({"type": "array", "items": boolean, "prefixItems": parts}),
    ] {
        assert_becomes(&schema, r#"["1",2,"true","false"]"#, r#"[1,"2",true,false]"#);
    }
    let old = json!({"type": "array", "items": parts});
    assert_becomes(&old, r#"["1",2,"true"]"#, r#"[1,"2","true"]"#);
    assert_becomes(&json!({"type": "array", "items": boolean}), r#"["true"]"#, "[true]");
}

#[test]
fn a_python_literal_in_a_text_counts_only_where_its_type_is_allowed_and_a_string_is_not() {
    let read = |text: &str, types: Value| {
        let schema = json!({"type": types});
        coerce_text(text, Some(&schema), &schema).to_string()
    };
    for (text, literal, type_name, other) in [
        ("True", "true", "boolean", "null"),
        ("False", "false", "boolean", "null"),
        ("None", "null", "null", "boolean"),
    ] {
        assert_eq!(read(text, json!(type_name)), literal);
        assert_eq!(read(text, json!([type_name, "integer"])), literal);
        let string = format!("\"{text}\"");
        assert_eq!(read(text, json!(other)), string);
        assert_eq!(read(text, json!("string")), string);
        assert_eq!(read(text, json!(["string", type_name])), string);
        assert_eq!(read(text, json!(["string", other])), string);
    }
}

#[test]
fn a_value_that_is_converted_there_and_back_is_not_a_repair() {
    let flag = json!({"allOf": [{"enum": ["3", 3, null]}, {"const": true}]});
    let schema = json!({"properties": {"a": {"allOf": [{"$ref": "#"}]}, "b": flag}});
    let arguments = parse_strict(r#"{"b":false}"#).unwrap();
    let mut repairs = Vec::new();
    assert_eq!(coerce(arguments.clone(), &schema, &mut repairs), arguments);
    assert_eq!(repairs, []);
}

//! Typed text against schemas as servers publish them.

use std::io::{Cursor, Read, repeat};

use serde_json::json;

use super::*;

fn pairs(typed: &[&str]) -> Vec<Pair> {
    typed.iter().map(|text| text.parse().unwrap()).collect()
}

fn json_of(arguments: &Arguments) -> String {
    serde_json::to_string(arguments).unwrap()
}

fn as_json(schema: &Value, typed: &[&str]) -> String {
    json_of(&super::typed(schema, &pairs(typed), &Arguments::new()).unwrap())
}

fn problem(schema: &Value, typed: &str) -> Problem {
    let problems = super::typed(schema, &pairs(&[typed]), &Arguments::new()).unwrap_err();
    assert_eq!(problems.len(), 1);
    problems.into_iter().next().unwrap()
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "deep": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "sizes": {"type": "array", "items": {"type": "integer"}},
            "filter": {"type": "object"},
            "mode": {"enum": ["fast", "slow", 3]},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "id": {"type": ["string", "integer"]},
            "place": {"$ref": "#/$defs/place"},
            "any": {}
        },
        "$defs": {"place": {"allOf": [{"type": "string"}]}, "loop": {"$ref": "#/$defs/loop"}}
    })
}

#[test]
fn a_string_stays_the_text_that_was_typed() {
    for text in ["5", "true", "null", "\"quoted\"", "{\"a\":1}", "", "a=b", " x "] {
        let expected = json!({ "text": text }).to_string();
        assert_eq!(as_json(&schema(), &[&format!("text={text}")]), expected);
    }
}

#[test]
fn numbers_booleans_arrays_and_objects_are_read_by_their_kind() {
    let typed = ["count=5", "ratio=0.5", "deep=true", "tags=[\"a\"]", "filter={\"a\": [1]}"];
    assert_eq!(
        as_json(&schema(), &typed),
        r#"{"count":5,"ratio":0.5,"deep":true,"tags":["a"],"filter":{"a": [1]}}"#
    );
}

#[test]
fn a_big_integer_keeps_every_digit() {
    let digits = "123456789012345678901234567890";
    assert_eq!(
        as_json(&schema(), &[&format!("count={digits}")]),
        format!("{{\"count\":{digits}}}")
    );
}

#[test]
fn an_unreadable_value_names_the_key_and_what_it_must_be() {
    for (typed, words) in [
        ("count=five", "argument `count` must be an integer"),
        ("count=5.5", "argument `count` must be an integer"),
        ("count=05", "argument `count` must be an integer"),
        ("ratio=1,5", "argument `ratio` must be a number"),
        ("deep=yes", "argument `deep` must be a boolean (true or false)"),
        ("tags=a", "argument `tags` must be an array (as JSON)"),
        ("filter=[]", "argument `filter` must be an object (as JSON)"),
        ("mode=medium", "argument `mode` must be `fast` or `slow` or `3`"),
        ("limit=x", "argument `limit` must be null or an integer"),
    ] {
        assert_eq!(problem(&schema(), typed).to_string(), words);
    }
}

#[test]
fn where_several_kinds_fit_the_narrowest_is_taken() {
    let typed = ["limit=null", "id=5", "mode=3", "any={\"x\":1}"];
    assert_eq!(as_json(&schema(), &typed), r#"{"limit":null,"id":5,"mode":3,"any":{"x":1}}"#);
    let typed = ["limit=7", "id=five", "mode=fast", "any=plain"];
    assert_eq!(
        as_json(&schema(), &typed),
        r#"{"limit":7,"id":"five","mode":"fast","any":"plain"}"#
    );
    assert_eq!(as_json(&schema(), &["id=\"5\""]), r#"{"id":"5"}"#);
}

#[test]
fn references_are_followed_and_endless_ones_restrict_nothing() {
    assert_eq!(as_json(&schema(), &["place=5"]), r#"{"place":"5"}"#);
    let endless = json!({
        "properties": {"a": {"$ref": "#/$defs/loop"}},
        "$defs": {"loop": {"anyOf": [{"$ref": "#/$defs/loop"}]}}
    });
    assert_eq!(as_json(&endless, &["a=5"]), r#"{"a":5}"#);
}

#[test]
fn a_repeated_key_makes_an_array_where_one_is_taken() {
    assert_eq!(
        as_json(&schema(), &["tags=a", "tags=5", "sizes=1", "sizes=2"]),
        r#"{"tags":["a","5"],"sizes":[1,2]}"#
    );
    let problems =
        super::typed(&schema(), &pairs(&["count=1", "count=2"]), &Arguments::new()).unwrap_err();
    assert_eq!(problems, [Problem::Repeated { key: "count".into() }]);
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    let Problem::Unknown { key, nearest, known } = problem(&schema(), "cuont=1") else {
        panic!("not an unknown key");
    };
    assert_eq!((key.as_str(), nearest.as_deref()), ("cuont", Some("count")));
    assert_eq!(known.len(), 12);
}

#[test]
fn every_problem_is_reported_at_once() {
    let pairs = pairs(&["count=x", "nope=1", "deep=2"]);
    let problems = super::typed(&schema(), &pairs, &Arguments::new()).unwrap_err();
    assert_eq!(problems.len(), 3);
    let mut schema = schema();
    schema["required"] = json!(["count", "flag"]);
    schema["allOf"] = json!([{"required": ["text"]}, {"$ref": "#"}]);
    let given = read_given(&Given::new(r#"{"text": "a"}"#), Cursor::new("")).unwrap();
    let problems = super::typed(&schema, &pairs, &given).unwrap_err();
    assert_eq!(problems[3..], [Problem::Missing { key: "flag".into() }]);
}

#[test]
fn a_key_that_is_given_twice_is_refused_by_name_at_every_level() {
    for (text, key) in [(r#"{"a":1,"b":[],"a":2}"#, "a"), (r#"{"x":[1,{"b":null,"b":2.5}]}"#, "b")]
    {
        let error = read_given(&Given::new(text), Cursor::new("")).unwrap_err();
        assert!(matches!(&error, GivenError::Repeated { key: twice } if twice == key), "{error}");
    }
    let fine = r#"{"a":{"b":1e400,"c":"x"},"b":[{"b":-3},{"b":true}],"c":12345678901234567890123}"#;
    assert_eq!(json_of(&read_given(&Given::new(fine), Cursor::new("")).unwrap()), fine);
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(read_given(&Given::new(&deep), Cursor::new("")).is_ok());
}

#[test]
fn keys_beyond_the_named_ones_pass_only_where_the_schema_is_open() {
    let typed_rest = json!({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}});
    assert_eq!(as_json(&typed_rest, &["b=5"]), r#"{"b":5}"#);
    assert!(matches!(problem(&typed_rest, "b=x"), Problem::Unreadable { .. }));
    assert_eq!(as_json(&json!({"type": "object"}), &["b=5", "c=x"]), r#"{"b":5,"c":"x"}"#);
    let closed = json!({"type": "object", "additionalProperties": false});
    assert!(matches!(problem(&closed, "b=5"), Problem::Unknown { .. }));
    let branches = json!({"oneOf": [{"properties": {"a": {"type": "string"}}}]});
    assert_eq!(as_json(&branches, &["a=5"]), r#"{"a":"5"}"#);
}

#[test]
fn single_arguments_add_to_the_given_object_or_replace_its_members() {
    let given = read_given(&Given::new(r#"{"text":"a","count":1}"#), Cursor::new("")).unwrap();
    let pairs =
        super::typed(&schema(), &pairs(&["count=2", "deep=true"]), &Arguments::new()).unwrap();
    assert_eq!(json_of(&merged(given, pairs)), r#"{"text":"a","count":2,"deep":true}"#);
}

#[test]
fn the_given_object_comes_from_the_line_a_file_or_stdin() {
    assert_eq!(Given::new("@a.json"), Given::File("a.json"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), r#"{"a":1}"#).unwrap();
    let path = file.path().to_str().unwrap();
    let from_file = read_given(&Given::new(&format!("@{path}")), Cursor::new("")).unwrap();
    let from_stdin = read_given(&Given::new("-"), Cursor::new(r#"{"a":1}"#)).unwrap();
    assert_eq!(json_of(&from_file), json_of(&from_stdin));
    for wrong in ["[1]", "{", "5", "{} {}"] {
        assert!(read_given(&Given::new(wrong), Cursor::new("")).is_err(), "{wrong}");
    }
    assert!(matches!(
        read_given(&Given::File("/nowhere/at/all"), Cursor::new("")),
        Err(GivenError::Unreadable { from, .. }) if from == "/nowhere/at/all"
    ));
}

#[test]
fn given_text_is_taken_up_to_its_limit_and_no_further() {
    let object = |padding: u64| Cursor::new("{}").chain(repeat(b' ').take(padding));
    let limit = given::MAX_GIVEN_BYTES;
    assert!(read_given(&Given::Stdin, object(limit - 2)).is_ok());
    let past = read_given(&Given::Stdin, object(limit - 1));
    assert!(matches!(past, Err(GivenError::TooLong { .. })));
}

//! Tests of typed text with published schemas.

use std::io::{Cursor, Read, repeat};

use serde_json::json;

use super::*;

fn pairs(typed: &[&str]) -> Vec<KeyValuePair> {
    typed.iter().map(|text| text.parse().unwrap()).collect()
}

fn to_json(arguments: &ArgumentMap) -> String {
    serde_json::to_string(arguments).unwrap()
}

fn parsed_json(schema: &Value, typed: &[&str]) -> String {
    to_json(&super::parse_pairs(schema, &pairs(typed), &ArgumentMap::new()).unwrap())
}

fn single_error(schema: &Value, typed: &str) -> ArgumentError {
    let problems = super::parse_pairs(schema, &pairs(&[typed]), &ArgumentMap::new()).unwrap_err();
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
        assert_eq!(parsed_json(&schema(), &[&format!("text={text}")]), expected);
    }
}

#[test]
fn numbers_booleans_arrays_and_objects_are_parsed_by_their_type() {
    let typed = ["count=5", "ratio=0.5", "deep=true", "tags=[\"a\"]", "filter={\"a\": [1]}"];
    assert_eq!(
        parsed_json(&schema(), &typed),
        r#"{"count":5,"ratio":0.5,"deep":true,"tags":["a"],"filter":{"a": [1]}}"#
    );
}

#[test]
fn a_big_integer_keeps_every_digit() {
    let digits = "123456789012345678901234567890";
    assert_eq!(
        parsed_json(&schema(), &[&format!("count={digits}")]),
        format!("{{\"count\":{digits}}}")
    );
}

#[test]
fn an_invalid_value_names_the_key_and_the_expected_type() {
    for (typed, expected) in [
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
        assert_eq!(single_error(&schema(), typed).to_string(), expected);
    }
}

#[test]
fn where_several_types_fit_the_narrowest_is_taken() {
    let typed = ["limit=null", "id=5", "mode=3", "any={\"x\":1}"];
    assert_eq!(parsed_json(&schema(), &typed), r#"{"limit":null,"id":5,"mode":3,"any":{"x":1}}"#);
    let typed = ["limit=7", "id=five", "mode=fast", "any=plain"];
    assert_eq!(
        parsed_json(&schema(), &typed),
        r#"{"limit":7,"id":"five","mode":"fast","any":"plain"}"#
    );
    assert_eq!(parsed_json(&schema(), &["id=\"5\""]), r#"{"id":"5"}"#);
}

#[test]
fn references_are_followed_and_endless_ones_restrict_nothing() {
    assert_eq!(parsed_json(&schema(), &["place=5"]), r#"{"place":"5"}"#);
    let recursive = json!({
        "properties": {"a": {"$ref": "#/$defs/loop"}},
        "$defs": {"loop": {"anyOf": [{"$ref": "#/$defs/loop"}]}}
    });
    assert_eq!(parsed_json(&recursive, &["a=5"]), r#"{"a":5}"#);
}

#[test]
fn references_that_multiply_end() {
    let branches: Vec<Value> = (0..20).map(|_| json!({"$ref": "#/$defs/loop"})).collect();
    let exploding = json!({
        "properties": {"a": {"$ref": "#/$defs/loop"}},
        "allOf": [{"$ref": "#/$defs/loop"}],
        "$defs": {"loop": {"anyOf": branches, "items": {"$ref": "#/$defs/loop"}}}
    });
    assert_eq!(parsed_json(&exploding, &["a=[5]"]), r#"{"a":[5]}"#);
}

#[test]
fn a_repeated_key_makes_an_array_where_one_is_taken() {
    assert_eq!(
        parsed_json(&schema(), &["tags=a", "tags=5", "sizes=1", "sizes=2"]),
        r#"{"tags":["a","5"],"sizes":[1,2]}"#
    );
    let problems =
        super::parse_pairs(&schema(), &pairs(&["count=1", "count=2"]), &ArgumentMap::new())
            .unwrap_err();
    assert_eq!(problems, [ArgumentError::DuplicateKey { key: "count".into() }]);
}

#[test]
fn an_unknown_key_is_rejected_with_the_nearest_known_one() {
    let ArgumentError::Unknown { key, suggestion, known_keys: keys } =
        single_error(&schema(), "cuont=1")
    else {
        panic!("not an unknown key");
    };
    assert_eq!((key.as_str(), suggestion.as_deref()), ("cuont", Some("count")));
    assert_eq!(keys.len(), 12);
}

#[test]
fn every_error_is_reported_at_once() {
    let pairs = pairs(&["count=x", "nope=1", "deep=2"]);
    let problems = super::parse_pairs(&schema(), &pairs, &ArgumentMap::new()).unwrap_err();
    assert_eq!(problems.len(), 3);
    let mut schema = schema();
    schema["required"] = json!(["count", "flag"]);
    schema["allOf"] = json!([{"required": ["text"]}, {"$ref": "#"}]);
    let arguments =
        read_arguments(&ArgumentSource::new(r#"{"text": "a"}"#), Cursor::new("")).unwrap();
    let problems = super::parse_pairs(&schema, &pairs, &arguments).unwrap_err();
    assert_eq!(problems[3..], [ArgumentError::Missing { key: "flag".into() }]);
}

#[test]
fn a_duplicate_key_is_rejected_by_name_at_every_level() {
    for (text, key) in [(r#"{"a":1,"b":[],"a":2}"#, "a"), (r#"{"x":[1,{"b":null,"b":2.5}]}"#, "b")]
    {
        let error = read_arguments(&ArgumentSource::new(text), Cursor::new("")).unwrap_err();
        assert!(
            matches!(&error, ArgumentSourceError::DuplicateKey { key: twice } if twice == key),
            "{error}"
        );
    }
    let fine = r#"{"a":{"b":1e400,"c":"x"},"b":[{"b":-3},{"b":true}],"c":12345678901234567890123}"#;
    assert_eq!(
        to_json(&read_arguments(&ArgumentSource::new(fine), Cursor::new("")).unwrap()),
        fine
    );
    let nested = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(read_arguments(&ArgumentSource::new(&nested), Cursor::new("")).is_ok());
}

#[test]
fn keys_beyond_the_named_ones_pass_only_where_the_schema_is_open() {
    let typed_rest = json!({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}});
    assert_eq!(parsed_json(&typed_rest, &["b=5"]), r#"{"b":5}"#);
    assert!(matches!(single_error(&typed_rest, "b=x"), ArgumentError::InvalidValue { .. }));
    assert_eq!(parsed_json(&json!({"type": "object"}), &["b=5", "c=x"]), r#"{"b":5,"c":"x"}"#);
    let closed = json!({"type": "object", "additionalProperties": false});
    assert!(matches!(single_error(&closed, "b=5"), ArgumentError::Unknown { .. }));
    let branches = json!({"oneOf": [{"properties": {"a": {"type": "string"}}}]});
    assert_eq!(parsed_json(&branches, &["a=5"]), r#"{"a":"5"}"#);
}

#[test]
fn single_arguments_add_to_the_given_object_or_replace_its_members() {
    let arguments =
        read_arguments(&ArgumentSource::new(r#"{"text":"a","count":1}"#), Cursor::new("")).unwrap();
    let pairs =
        super::parse_pairs(&schema(), &pairs(&["count=2", "deep=true"]), &ArgumentMap::new())
            .unwrap();
    assert_eq!(to_json(&merge(arguments, pairs)), r#"{"text":"a","count":2,"deep":true}"#);
}

#[test]
fn the_given_object_comes_from_the_line_a_file_or_stdin() {
    assert_eq!(ArgumentSource::new("@a.json"), ArgumentSource::File("a.json"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), r#"{"a":1}"#).unwrap();
    let path = file.path().to_str().unwrap();
    let from_file =
        read_arguments(&ArgumentSource::new(&format!("@{path}")), Cursor::new("")).unwrap();
    let from_stdin = read_arguments(&ArgumentSource::new("-"), Cursor::new(r#"{"a":1}"#)).unwrap();
    assert_eq!(to_json(&from_file), to_json(&from_stdin));
    for wrong in ["[1]", "{", "5", "{} {}"] {
        assert!(read_arguments(&ArgumentSource::new(wrong), Cursor::new("")).is_err(), "{wrong}");
    }
    assert!(matches!(
        read_arguments(&ArgumentSource::File("/nowhere/at/all"), Cursor::new("")),
        Err(ArgumentSourceError::Unreadable { origin, .. }) if origin == "/nowhere/at/all"
    ));
}

#[test]
fn argument_text_is_read_up_to_its_limit_and_no_further() {
    let object = |padding: u64| Cursor::new("{}").chain(repeat(b' ').take(padding));
    let limit = source::MAX_ARGUMENTS_BYTES;
    assert!(read_arguments(&ArgumentSource::Stdin, object(limit - 2)).is_ok());
    let past = read_arguments(&ArgumentSource::Stdin, object(limit - 1));
    assert!(matches!(past, Err(ArgumentSourceError::TooLong { .. })));
}

//! Tests of typed text with published schemas.

use std::io::{Cursor, Read, repeat};

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use serde_json::json;

use super::*;

fn read(typed: &[&str], json_args: Option<&str>) -> Result<ArgumentInput, ArgumentSourceError> {
    let typed: Vec<TypedArgument> = typed.iter().map(|text| text.parse().unwrap()).collect();
    ArgumentInput::read(&typed, json_args, Cursor::new(r#"{"from":"stdin"}"#))
}

fn convert(schema: &Value, typed: &[&str]) -> Result<ArgumentMap, Vec<ArgumentError>> {
    read(typed, None).unwrap().convert(schema)
}

fn to_json(arguments: &ArgumentMap) -> String {
    serde_json::to_string(arguments).unwrap()
}

fn parsed_json(schema: &Value, typed: &[&str]) -> String {
    to_json(&convert(schema, typed).unwrap())
}

fn single_error(schema: &Value, typed: &str) -> ArgumentError {
    let problems = convert(schema, &[typed]).unwrap_err();
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
        ("tags=[a", "argument `tags` must be a list: `tags='[\"text\"]'`"),
        ("sizes=x", "argument `sizes` must be a list: `sizes='[1]'`"),
        ("filter=[]", "argument `filter` must be an object: `filter='{\"key\": \"value\"}'`"),
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
    let problems = convert(&schema(), &["count=1", "count=2"]).unwrap_err();
    assert_eq!(problems, [ArgumentError::DuplicateKey { key: "count".into() }]);
}

#[test]
fn arrays_among_the_values_of_a_repeated_key_are_joined() {
    for (typed, expected) in [
        (&[r#"tags=["a"]"#, r#"tags=["b"]"#][..], r#"{"tags":["a","b"]}"#),
        (&[r#"tags=["a","b"]"#, "tags=c"], r#"{"tags":["a","b","c"]}"#),
        (&["tags=a", r#"tags:=["b"]"#], r#"{"tags":["a","b"]}"#),
        (&["tags=[draft", "tags=b"], r#"{"tags":["[draft","b"]}"#),
        (&["sizes=[]", "sizes=1"], r#"{"sizes":[1]}"#),
    ] {
        assert_eq!(parsed_json(&schema(), typed), expected);
    }
    let rows = json!({"properties": {"rows": {"type": "array", "items": {"type": "array"}}}});
    assert_eq!(parsed_json(&rows, &["rows=[1]", "rows=[2]"]), r#"{"rows":[[1],[2]]}"#);
}

#[test]
fn a_number_for_any_type_is_a_number_only_if_it_prints_as_the_text() {
    for text in ["1234e56", "1.10", "1e5", "00123", "1.0", "-0", "1E5", "+1"] {
        assert_eq!(
            parsed_json(&schema(), &[&format!("any={text}")]),
            json!({ "any": text }).to_string()
        );
    }
    for text in
        ["0", "7", "-7", "1.5", "0.05", "100", "true", "false", "null", "12345678901234567890"]
    {
        let expected = format!("{{\"any\":{text}}}");
        assert_eq!(parsed_json(&schema(), &[&format!("any={text}")]), expected);
    }
    assert_eq!(parsed_json(&schema(), &["ratio=1e5"]), r#"{"ratio":1e5}"#);
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
    let typed = ["count=x", "nope=1", "deep=2", r#"{"text": "a"}"#];
    assert_eq!(convert(&schema(), &typed).unwrap_err().len(), 3);
    let mut schema = schema();
    schema["required"] = json!(["count", "flag"]);
    schema["allOf"] = json!([{"required": ["text"]}, {"$ref": "#"}]);
    let problems = convert(&schema, &typed).unwrap_err();
    assert_eq!(problems[3..], [ArgumentError::Missing { key: "flag".into() }]);
}

#[test]
fn a_duplicate_key_is_rejected_by_name_at_every_level() {
    for (text, key) in [(r#"{"a":1,"b":[],"a":2}"#, "a"), (r#"{"x":[1,{"b":null,"b":2.5}]}"#, "b")]
    {
        let error = read(&[text], None).unwrap_err();
        assert!(
            matches!(&error, ArgumentSourceError::DuplicateKey { key: twice } if twice == key),
            "{error}"
        );
        let error = format!("x:={text}").parse::<TypedArgument>().unwrap_err();
        assert!(error.contains(&format!("the duplicate key `{key}`")), "{error}");
    }
    let fine = r#"{"a":{"b":1e400,"c":"x"},"b":[{"b":-3},{"b":true}],"c":12345678901234567890123}"#;
    assert_eq!(parsed_json(&json!({}), &[fine]), fine);
    let nested = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(read(&[&nested], None).is_ok());
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
    let typed = ["count=2", r#"{"text":"a","count":1}"#, "deep=true"];
    assert_eq!(parsed_json(&schema(), &typed), r#"{"text":"a","count":2,"deep":true}"#);
}

#[test]
fn one_value_makes_a_list_of_one() {
    let typed = ["tags=Ann", "sizes=5"];
    assert_eq!(parsed_json(&schema(), &typed), r#"{"tags":["Ann"],"sizes":[5]}"#);
    assert_eq!(parsed_json(&schema(), &["tags=5"]), r#"{"tags":["5"]}"#);
    assert_eq!(parsed_json(&schema(), &[r#"tags=["a", "b"]"#]), r#"{"tags":["a", "b"]}"#);
}

#[test]
fn exact_json_is_independent_of_the_schema() {
    let typed = ["text:=5", "count:=\"x\"", "filter:={\"a\": 1e400}", "tags:=1", "tags:=2"];
    assert_eq!(
        parsed_json(&schema(), &typed),
        r#"{"text":5,"count":"x","filter":{"a": 1e400},"tags":[1,2]}"#
    );
    let error = "count:=five".parse::<TypedArgument>().unwrap_err();
    assert!(error.starts_with("the value of `count:=` is not JSON"), "{error}");
    assert!(matches!(single_error(&schema(), "cuont:=1"), ArgumentError::Unknown { .. }));
}

#[test]
fn a_file_has_text_for_a_string_and_json_for_every_other_type() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let with_text = |text: &str, key: &str| {
        std::fs::write(file.path(), text).unwrap();
        convert(&schema(), &[&format!("{key}=@{path}")])
    };
    let json = |text, key| to_json(&with_text(text, key).unwrap());
    assert_eq!(json("[1]\n", "text"), r#"{"text":"[1]\n"}"#);
    assert_eq!(json(" [1, 2]\n", "sizes"), r#"{"sizes":[1, 2]}"#);
    assert_eq!(json("7\n", "count"), r#"{"count":7}"#);
    assert_eq!(json("plain\n", "any"), r#"{"any":"plain\n"}"#);
    let expected = "argument `tags` must be a list: `tags='[\"text\"]'`";
    assert_eq!(with_text("a\n", "tags").unwrap_err()[0].to_string(), expected);
    assert_eq!(parsed_json(&schema(), &["text=@@x"]), r#"{"text":"@x"}"#);
    assert_eq!(parsed_json(&schema(), &["text=a@b"]), r#"{"text":"a@b"}"#);
    assert!("text=@".parse::<TypedArgument>().unwrap_err().contains("`text=@@`"));
    assert!(matches!(
        read(&["text=@/nowhere/at/all"], None),
        Err(ArgumentSourceError::Unreadable { origin, .. }) if origin == "/nowhere/at/all"
    ));
}

#[test]
fn one_object_comes_from_the_line_a_file_or_stdin() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), r#"{"from":"file"}"#).unwrap();
    let from_file = format!("@{}", file.path().to_str().unwrap());
    let object = |typed: &[&str], json_args| to_json(&read(typed, json_args).unwrap().object);
    assert_eq!(object(&[], Some(&from_file)), r#"{"from":"file"}"#);
    assert_eq!(object(&[], Some("-")), r#"{"from":"stdin"}"#);
    assert_eq!(object(&["-"], None), r#"{"from":"stdin"}"#);
    assert_eq!(object(&[r#"{"a":1}"#], None), r#"{"a":1}"#);
    assert_eq!(object(&[], Some(r#"{"a":1}"#)), r#"{"a":1}"#);
    for wrong in ["{", "{} {}", "{1}"] {
        assert!(read(&[wrong], None).is_err(), "{wrong}");
    }
    assert!(matches!(read(&["{}", "{}"], None), Err(ArgumentSourceError::SeveralObjects)));
    assert!(matches!(read(&["-", "text=@-"], None), Err(ArgumentSourceError::RepeatedStdin)));
}

#[test]
fn an_argument_without_a_known_form_is_rejected_with_all_forms() {
    for wrong in ["text", "=x", ":=1", "[1]"] {
        let error = wrong.parse::<TypedArgument>().unwrap_err();
        assert!(error.contains("KEY=VALUE, KEY:=JSON, KEY=@FILE"), "{wrong}: {error}");
    }
}

#[test]
fn argument_text_is_read_up_to_its_limit_and_no_further() {
    let object = |padding: u64| {
        let stdin = Cursor::new("{}").chain(repeat(b' ').take(padding));
        ArgumentInput::read(&[TypedArgument::Stdin], None, stdin)
    };
    let limit = source::MAX_ARGUMENTS_BYTES;
    assert!(object(limit - 2).is_ok());
    assert!(matches!(object(limit - 1), Err(ArgumentSourceError::TooLong { .. })));
}

proptest! {
    #[test]
    fn every_text_of_a_string_arrives_unchanged(text in any::<String>()) {
        let typed = match text.strip_prefix('@') {
            Some(_) => format!("text=@{text}"),
            None => format!("text={text}"),
        };
        let converted = convert(&schema(), &[&typed]).unwrap();
        let arrived: String = serde_json::from_str(converted["text"].get()).unwrap();
        prop_assert_eq!(arrived, text);
    }

    #[test]
    fn every_list_of_texts_arrives_unchanged(texts in proptest::collection::vec("[^@\\[].*|", 1..5)) {
        let typed: Vec<String> = texts.iter().map(|text| format!("tags={text}")).collect();
        let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
        let converted = convert(&schema(), &typed).unwrap();
        let arrived: Vec<String> = serde_json::from_str(converted["tags"].get()).unwrap();
        prop_assert_eq!(arrived, texts);
    }

    #[test]
    fn every_json_value_arrives_as_typed(number in any::<i64>(), text in any::<String>()) {
        let json = json!({"number": number, "text": text, "list": [text, null]}).to_string();
        let converted = convert(&schema(), &[&format!("any:={json}")]).unwrap();
        prop_assert_eq!(converted["any"].get(), json);
    }

    #[test]
    fn no_typed_text_and_no_schema_panics(
        typed in "[^@]*",
        kind in "string|integer|number|boolean|null|array|object|other",
    ) {
        let schema = json!({"additionalProperties": {"type": kind, "items": {"type": kind}}});
        if let Ok(TypedArgument::Pair { key, value }) = typed.parse::<TypedArgument>() {
            let input = ArgumentInput::read(&[TypedArgument::Pair { key, value }], None, &b""[..]);
            if let Ok(arguments) = input.unwrap().convert(&schema) {
                prop_assert!(serde_json::from_str::<Value>(&to_json(&arguments)).is_ok());
            }
        }
    }
}

#[test]
fn a_key_with_dots_sets_a_member_of_a_nested_object() {
    let schema = json!({
        "properties": {
            "o": {"type": "object", "properties": {"n": {"type": "integer"}, "in": {"$ref": "#/$defs/p"}}},
            "open": {"type": "object"},
            "text": {"type": "string"},
            "a.b": {"type": "boolean"},
        },
        "$defs": {"p": {"type": "object", "properties": {"x": {"type": "string"}}}},
    });
    let all = ["o.n=5", "o.in.x=7", "open.url=https://x", "a.b=true"];
    let expected =
        json!({"a.b": true, "o": {"n": 5, "in": {"x": "7"}}, "open": {"url": "https://x"}});
    let parsed: Value = serde_json::from_str(&parsed_json(&schema, &all)).unwrap();
    assert_eq!(parsed, expected);
    for unknown in ["o.other=1", "text.x=1", "none.x=1"] {
        assert!(
            matches!(single_error(&schema, unknown), ArgumentError::Unknown { .. }),
            "{unknown}"
        );
    }
    assert!(matches!(single_error(&schema, "o.n=x"), ArgumentError::InvalidValue { .. }));
    assert!(convert(&schema, &["o.n=1", "o={}"]).is_err());
}

#[test]
fn properties_that_depend_on_another_one_are_known() {
    let schema = json!({
        "properties": {"a": {"type": "string"}},
        "dependentSchemas": {"a": {"properties": {"z": {"type": "integer"}}}},
    });
    assert_eq!(parsed_json(&schema, &["a=x", "z=3"]), r#"{"a":"x","z":3}"#);
}

//! Texts that a grammar accepts, over grids of schemas and values, judged by a validator.

use innkeeper_toolcall::grammar::{GbnfOptions, GrammarLoss, GrammarLossKind, OutputShape, gbnf};
use innkeeper_toolcall::{Tool, Tools};
use serde_json::{Map, Value, json};

use crate::gbnf::Grammar;

/// The grammar of a tool whose only property is `p`, and the losses.
fn property_grammar(property: &Value) -> (Grammar, Vec<GrammarLoss>) {
    let schema = json!({
        "properties": {"p": property}, "required": ["p"], "$defs": {"low": {"type": "integer", "maximum": 3}, "any": true, "positive": {"minimum": 1}}
    });
    let tools: Tools = [Tool::new("t", "", schema)].into_iter().collect();
    let written = gbnf(&tools, OutputShape::Call, GbnfOptions::default()).unwrap();
    (Grammar::parse(&written.text).unwrap(), written.losses)
}

fn accepts(grammar: &Grammar, value: &str) -> bool {
    grammar.accepts(&format!(r#"{{"name":"t","arguments":{{"p":{value}}}}}"#))
}

/// A bound in hundredths, and whether the bound itself is excluded.
type Bound = Option<(i64, bool)>;

/// A decimal number with at least this number of decimal places.
fn decimal(hundredths: i64, places: usize) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    let text = format!("{sign}{}.{:02}", hundredths.abs() / 100, hundredths.abs() % 100);
    let needed = match hundredths {
        it if it % 100 == 0 => 0,
        it if it % 10 == 0 => 1,
        _ => 2,
    };
    let digits = text.len() - 2 + needed.max(places);
    text[..digits].trim_end_matches('.').to_owned()
}

fn bound_pairs(bounds: &[i64]) -> Vec<(Bound, Bound)> {
    let all = || {
        let both = bounds.iter().flat_map(|bound| [Some((*bound, false)), Some((*bound, true))]);
        std::iter::once(None).chain(both)
    };
    all().flat_map(|low| all().map(move |high| (low, high))).skip(1).collect()
}

fn bounded(type_name: &str, low: Bound, high: Bound) -> Value {
    let mut schema = Map::from_iter([("type".to_owned(), json!(type_name))]);
    for (bound, plain, open) in
        [(low, "minimum", "exclusiveMinimum"), (high, "maximum", "exclusiveMaximum")]
    {
        if let Some((hundredths, exclusive)) = bound {
            let number: Value = serde_json::from_str(&decimal(hundredths, 0)).unwrap();
            schema.insert(if exclusive { open } else { plain }.to_owned(), number);
        }
    }
    Value::Object(schema)
}

fn is_inside(value: i64, low: Bound, high: Bound) -> bool {
    low.is_none_or(|(low, open)| value > low || value == low && !open)
        && high.is_none_or(|(high, open)| value < high || value == high && !open)
}

#[test]
fn an_integer_between_bounds_is_accepted_exactly_if_it_is_inside() {
    let bounds = [-1_200, -1_000, -950, -100, -50, 0, 50, 100, 900, 1_000, 1_100];
    for (low, high) in bound_pairs(&bounds) {
        let (grammar, losses) = property_grammar(&bounded("integer", low, high));
        let inside = |value: &i64| is_inside(value * 100, low, high);
        // Bounds without a number between them are reported.
        let is_empty = !(-10_000..10_000).any(|value| inside(&value));
        assert_eq!(!losses.is_empty(), is_empty, "{low:?} {high:?}");
        for value in (-14..=14).chain([-100, 99, 100, 12_345]).filter(|_| !is_empty) {
            let accepted = accepts(&grammar, &value.to_string());
            assert_eq!(accepted, inside(&value), "{value} between {low:?} and {high:?}");
        }
    }
}

#[test]
fn a_number_between_bounds_is_accepted_exactly_if_it_is_inside() {
    let bounds = [-250, -100, -75, -1, 0, 1, 50, 99, 100, 1_000];
    let near = |bound: &i64| [-25, -1, 0, 1, 25].map(|step| bound + step);
    let values: Vec<i64> = bounds.iter().flat_map(near).collect();
    for (low, high) in bound_pairs(&bounds) {
        let (grammar, losses) = property_grammar(&bounded("number", low, high));
        let places = |bound: Bound| {
            bound
                .map_or(0, |(it, _)| decimal(it, 0).split_once('.').map_or(0, |(_, all)| all.len()))
        };
        let places = places(low).max(places(high));
        let is_empty = low.zip(high).is_some_and(|((low, open), (high, high_open))| {
            low > high || low == high && (open || high_open)
        });
        assert_eq!(!losses.is_empty(), is_empty, "{low:?} {high:?}");
        for value in values.iter().filter(|_| !is_empty) {
            let text = decimal(*value, places);
            let accepted = accepts(&grammar, &text);
            assert_eq!(
                accepted,
                is_inside(*value, low, high),
                "{text} between {low:?} and {high:?}"
            );
        }
    }
}

#[test]
fn a_bound_has_at_most_six_decimal_places_and_fifteen_digits() {
    for (bound, text, kept) in [
        (json!(12.123_456), "12.123456", true),
        (json!(12.123_456_7), "", false),
        (json!(0.000_001), "", false),
        (json!(1_000_000_000_000_000_i64), "1000000000000000", true),
        (json!(1_000_000_000_000_001_i64), "", false),
        (json!(-1_000_000_000_000_000_i64), "-1000000000000000", true),
        (json!(-1_000_000_000_000_001_i64), "", false),
        (json!(12_345_678_901.5), "12345678901.5", true),
        (json!(1e300), "", false),
    ] {
        for keyword in ["minimum", "maximum"] {
            let (grammar, losses) = property_grammar(&json!({"type": "number", keyword: bound}));
            let keywords: Vec<&str> = losses.iter().map(|loss| loss.keyword.as_str()).collect();
            assert_eq!(keywords, if kept { vec![] } else { vec![keyword] }, "{bound}");
            assert!(!kept || accepts(&grammar, text), "{bound}");
        }
    }
}

#[test]
fn the_tighter_of_two_bounds_applies() {
    for (first, second) in [(1, 2), (2, 1), (2, 2)] {
        let low = json!({"type": "integer", "minimum": first, "exclusiveMinimum": second});
        let high = json!({"type": "integer", "maximum": first, "exclusiveMaximum": second});
        let (low, high) = (property_grammar(&low).0, property_grammar(&high).0);
        for value in -1..5 {
            let text = value.to_string();
            assert_eq!(accepts(&low, &text), value >= first && value > second, "{value}");
            assert_eq!(accepts(&high, &text), value <= first && value < second, "{value}");
        }
    }
}

/// Schemas whose values have one type or a list of types.
fn parts() -> Vec<Value> {
    let tagged = |tag: Value| {
        json!({
            "type": "object", "properties": {"k": tag, "n": {"type": "integer"}}, "required": ["k"],
            "additionalProperties": false
        })
    };
    vec![
        json!({"type": "integer"}),
        json!({"type": "integer", "minimum": 2, "maximum": 4}),
        json!({"type": "number", "exclusiveMaximum": 3}),
        json!({"type": ["string", "null"]}),
        json!({"type": "string", "minLength": 1, "maxLength": 2}),
        json!({"enum": [1, 2, "ab", null]}),
        json!({"const": "ab"}),
        json!({"type": "null"}),
        json!({"type": "boolean"}),
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}),
        json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "items": false, "minItems": 2}),
        json!({"type": "array", "items": {"type": ["integer", "string"]}}),
        tagged(json!({"const": "a"})),
        tagged(json!({"enum": ["b"]})),
        tagged(json!({"type": "string"})),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"$ref": "#/$defs/low"}),
        json!({"$ref": "#/$defs/low", "minimum": 1}),
        json!(true),
    ]
}

const VALUES: &[&str] = &[
    "-1",
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "1.5",
    "2.75",
    "3.5",
    "null",
    "true",
    "false",
    r#""""#,
    r#""a""#,
    r#""ab""#,
    r#""abc""#,
    "[]",
    "[1]",
    "[1,2]",
    "[1,2,3]",
    r#"[1,"a"]"#,
    r#"[1,"a",2]"#,
    r#"["a",1]"#,
    r#"{"k":"a"}"#,
    r#"{"k":"b"}"#,
    r#"{"k":"a","n":1}"#,
    r#"{"k":"b","n":2}"#,
    r#"{"k":"c","n":2}"#,
    r#"{"n":1}"#,
    r#"{"k":"a","z":"b"}"#,
    "{}",
];

#[test]
fn a_combined_schema_accepts_the_same_values_or_its_losses_say_otherwise() {
    let with = |mut schema: Value, key: &str, branches: Vec<&Value>| {
        schema[key] = json!(branches);
        schema
    };
    let mut wrong = Vec::new();
    let mut check = |property: Value| {
        let schema =
            json!({"$defs": {"low": {"type": "integer", "maximum": 3}}, "allOf": [property]});
        let validator = jsonschema::validator_for(&schema).unwrap();
        let (grammar, losses) = property_grammar(&property);
        let is_wider = losses.iter().any(|loss| loss.kind == GrammarLossKind::Dropped);
        for text in VALUES {
            let is_valid = validator.is_valid(&serde_json::from_str(text).unwrap());
            match (is_valid, accepts(&grammar, text)) {
                (true, false) if losses.is_empty() => {
                    wrong.push(format!("{property} rejects {text}"));
                }
                (false, true) if !is_wider => {
                    wrong.push(format!("{property} accepts {text}"));
                }
                (true | false, true | false) => {}
            }
        }
    };
    for (at, first) in parts().iter().enumerate() {
        check(first.clone());
        for (other_at, second) in parts().iter().enumerate() {
            let both = vec![first, second];
            check(with(json!({}), "allOf", both.clone()));
            if at <= other_at {
                check(with(json!({}), "anyOf", both.clone()));
                check(with(json!({}), "oneOf", both));
            }
            if first.is_object() {
                check(with(first.clone(), "anyOf", vec![second, &json!({"type": "boolean"})]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn one_of_is_enforced_exactly_if_types_or_required_constants_differ() {
    let tagged = |name: &str, tag: Value, required: bool| {
        let required = if required { vec![name] } else { vec![] };
        json!({"type": "object", "properties": {name: tag}, "required": required})
    };
    let (a, b) = (json!({"const": "a"}), json!({"const": "b"}));
    let low = json!({"$ref": "#/$defs/low"});
    for (first, second, enforced) in [
        (json!({"type": "string"}), json!({"type": "null"}), true),
        (json!({"type": "string"}), json!({"type": "string"}), false),
        (json!({"type": "integer"}), json!({"type": "number"}), false),
        (json!({"type": "number"}), json!({"type": "integer"}), false),
        (json!({"type": "number"}), json!({"type": "string"}), true),
        (low.clone(), json!({"type": "string"}), true),
        (low.clone(), low.clone(), false),
        (low, json!({"type": "number"}), false),
        (json!({"type": ["string", "null"]}), json!({"type": "integer"}), false),
        (json!({"const": 1}), json!({"const": 2}), false),
        (tagged("k", a.clone(), true), tagged("k", b.clone(), true), true),
        (tagged("k", a.clone(), true), tagged("k", json!({"enum": ["b"]}), true), true),
        (tagged("k", a.clone(), true), tagged("k", json!({"enum": ["a"]}), true), false),
        (tagged("k", a.clone(), true), tagged("k", json!({"enum": ["b", "c"]}), true), false),
        (tagged("k", a.clone(), true), tagged("k", a.clone(), true), false),
        (tagged("k", a.clone(), true), tagged("n", b.clone(), true), false),
        (tagged("k", a.clone(), true), tagged("k", b, false), false),
        (tagged("k", a, true), json!({"type": "string"}), true),
    ] {
        let schema = json!({"oneOf": [first, second]});
        let losses = property_grammar(&schema).1;
        let is_reported = losses.iter().any(|loss| loss.keyword == "oneOf");
        assert_eq!(is_reported, !enforced, "{schema}");
    }
    assert!(property_grammar(&json!({"oneOf": [{"type": ["string", "null"]}]})).1.is_empty());
}

#[test]
fn items_beside_a_tuple_are_reported_only_if_one_schema_has_no_tuple() {
    let tuple = json!({"type": "array", "prefixItems": [{"type": "integer"}]});
    let closed = json!({"type": "array", "prefixItems": [{"type": "integer"}], "items": false});
    let items = json!({"type": "array", "items": {"type": "integer"}});
    let plain = json!({"type": "array"});
    for (first, second, reported) in [
        (&tuple, &items, true),
        (&items, &tuple, true),
        (&closed, &items, true),
        (&tuple, &tuple, false),
        (&tuple, &closed, false),
        (&items, &items, false),
        (&items, &plain, false),
        (&plain, &items, false),
        (&tuple, &plain, false),
        (&plain, &plain, false),
    ] {
        let losses = property_grammar(&json!({"allOf": [first, second]})).1;
        let is_reported = losses.iter().any(|loss| loss.keyword == "items");
        assert_eq!(is_reported, reported, "{first} and {second}: {losses:?}");
    }
}

#[test]
fn a_typed_enum_accepts_exactly_its_values_of_the_type() {
    let values = json!([0, 1.5, 2.0, "a", null, true, [1], {"a": 1}]);
    let types = ["null", "boolean", "integer", "number", "string", "array", "object"];
    for type_name in types {
        let schema = json!({"type": type_name, "enum": values});
        let validator = jsonschema::validator_for(&schema).unwrap();
        let (grammar, _) = property_grammar(&schema);
        for value in values.as_array().unwrap() {
            let accepted = accepts(&grammar, &value.to_string());
            assert_eq!(accepted, validator.is_valid(value), "{value} as {type_name}");
        }
    }
}

#[test]
fn a_string_with_a_format_is_accepted_exactly_if_it_has_the_format() {
    let values = [
        "2026-01-31",
        "2026-02-28",
        "2026-02-30",
        "2026-04-31",
        "2026-13-01",
        "2026-1-1",
        "12:00:00Z",
        "23:59:59.25+01:30",
        "24:00:00Z",
        "12:60:00Z",
        "12:00",
        "2026-01-31T12:00:00Z",
        "2026-01-31 12:00:00Z",
        "2026-01-32T12:00:00Z",
        "00000000-0000-4000-8000-00000000000a",
        "00000000-0000-4000-8000-00000000000",
        "g0000000-0000-4000-8000-000000000000",
        "192.0.2.1",
        "255.255.255.255",
        "256.0.0.1",
        "1.2.3",
        "01.2.3.4",
        "0.0.0.0",
        "",
    ];
    for format in ["date", "time", "date-time", "uuid", "ipv4"] {
        let schema = json!({"type": "string", "format": format});
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let (grammar, losses) = property_grammar(&schema);
        assert_eq!(losses, []);
        for value in values.map(Value::from) {
            let accepted = accepts(&grammar, &value.to_string());
            assert_eq!(accepted, validator.is_valid(&value), "{value} as {format}");
        }
    }
}

#[test]
fn counts_are_kept_up_to_the_limit_and_reported_beyond_it_or_if_they_are_none() {
    for (schema, lost) in [
        (json!({"minLength": 2, "maxLength": 3}), vec![]),
        (json!({"minLength": 2.0, "maxLength": 3.0}), vec![]),
        (json!({"minLength": 2}), vec![]),
        (json!({"minLength": -1}), vec!["minLength"]),
        (json!({"maxLength": 1.5}), vec!["maxLength"]),
        (json!({"maxLength": "3"}), vec!["maxLength"]),
        (json!({"minLength": 1_000}), vec![]),
        (json!({"minLength": 1_001}), vec!["minLength"]),
        (json!({"maxLength": 1_000}), vec![]),
        (json!({"maxLength": 1_001}), vec!["maxLength"]),
        (json!({"minLength": 1, "maxLength": 1_001}), vec!["maxLength"]),
        (json!({"minLength": 3, "maxLength": 2}), vec!["maxLength"]),
        (json!({"minLength": 2, "format": "date"}), vec!["minLength"]),
    ] {
        let mut schema = schema;
        schema["type"] = json!("string");
        let (grammar, losses) = property_grammar(&schema);
        let keywords: Vec<&str> = losses.iter().map(|loss| loss.keyword.as_str()).collect();
        assert_eq!(keywords, lost, "{schema}");
        if lost.is_empty() {
            let validator = jsonschema::validator_for(&schema).unwrap();
            for value in ["", "a", "ab", "abc", "abcd"].map(Value::from) {
                let accepted = accepts(&grammar, &value.to_string());
                assert_eq!(accepted, validator.is_valid(&value), "{value} as {schema}");
            }
        }
    }
}

#[test]
fn a_constant_with_any_character_is_accepted_and_the_grammar_has_printable_characters_only() {
    let constant: String = (0..=0x180)
        .chain([0x2027, 0x2028, 0x2029, 0x202A, 0xFEFE, 0xFEFF])
        .filter_map(char::from_u32)
        .collect();
    let schema = json!({"const": constant});
    let (grammar, losses) = property_grammar(&schema);
    assert_eq!(losses, []);
    assert!(accepts(&grammar, &json!(constant).to_string()));
    let tool = Tool::new("t", "", json!({"properties": {"p": schema}}));
    let tools: Tools = [tool].into_iter().collect();
    let text = gbnf(&tools, OutputShape::Call, GbnfOptions::default()).unwrap().text;
    let hidden = |letter: char| {
        letter != '\n' && letter.is_control()
            || ['\u{A0}', '\u{2028}', '\u{2029}', '\u{FEFF}'].contains(&letter)
    };
    assert_eq!(text.chars().find(|letter| hidden(*letter)), None);
}

#[test]
fn a_required_property_that_is_not_declared_has_the_schema_of_additional_properties() {
    let schema = |additional: Value| json!({"type": "object", "required": ["x"], "additionalProperties": additional});
    for (additional, losses, accepted) in [
        (json!({"type": "integer"}), 0, [true, false]),
        (json!(true), 0, [true, true]),
        (json!(false), 1, [true, true]),
    ] {
        let (grammar, reported) = property_grammar(&schema(additional.clone()));
        assert_eq!(reported.len(), losses, "{additional}");
        let texts = [r#"{"x":1}"#, r#"{"x":"a"}"#];
        assert_eq!(texts.map(|text| accepts(&grammar, text)), accepted, "{additional}");
        assert!(!accepts(&grammar, "{}"));
    }
}

#[test]
fn keywords_beside_a_reference_are_merged_with_the_referenced_schema() {
    let low = json!({"$ref": "#/$defs/low"});
    for (schema, accepted) in [
        (json!({"$ref": "#/$defs/low", "minimum": 1}), 1..=3),
        (json!({"$ref": "#/$defs/any", "type": "integer", "minimum": 2, "maximum": 5}), 2..=5),
        (json!({"allOf": [low, {"minimum": 1}]}), 1..=3),
        (json!({"allOf": [{"minimum": 2}, low]}), 2..=3),
        (json!({"allOf": [{"$ref": "#/$defs/low", "minimum": 0}, {"type": "integer"}]}), 0..=3),
        (json!({"allOf": [low, {"$ref": "#/$defs/positive"}]}), 1..=3),
        (json!({"minimum": 3, "anyOf": [low, low]}), 3..=3),
    ] {
        let (grammar, losses) = property_grammar(&schema);
        assert_eq!(losses, [], "{schema}");
        for value in -2..8 {
            let is_accepted = accepts(&grammar, &value.to_string());
            assert_eq!(is_accepted, accepted.contains(&value), "{value} as {schema}");
        }
    }
}

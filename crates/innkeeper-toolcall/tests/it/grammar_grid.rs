//! Texts that a grammar accepts, over grids of schemas and values, judged by a validator.

use innkeeper_toolcall::grammar::{GbnfOptions, GrammarLoss, GrammarLossKind, OutputShape, gbnf};
use innkeeper_toolcall::{Tool, Tools};
use serde_json::{Map, Value, json};

use crate::gbnf::Grammar;

/// The grammar of a tool whose only property is `p`, and the losses.
fn property_grammar(property: &Value) -> (Grammar, Vec<GrammarLoss>) {
    let schema = json!({
        "properties": {"p": property}, "required": ["p"], "$defs": {"low": {"type": "integer", "maximum": 3}}
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
    let near = |bound: &i64| [-25, -2, -1, 0, 1, 2, 25, 100].map(|step| bound + step);
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
        (json!(0.000_001), "0.000001", true),
        (json!(0.000_000_5), "", false),
        (json!(0.000_001_5), "", false),
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
        let has = |kind: GrammarLossKind| losses.iter().any(|loss| loss.kind == kind);
        for text in VALUES {
            let is_valid = validator.is_valid(&serde_json::from_str(text).unwrap());
            match (is_valid, accepts(&grammar, text)) {
                (true, false) if !has(GrammarLossKind::Narrowed) && losses.is_empty() => {
                    wrong.push(format!("{property} rejects {text}"));
                }
                (false, true) if !has(GrammarLossKind::Dropped) => {
                    wrong.push(format!("{property} accepts {text}"));
                }
                (true | false, true | false) => {}
            }
        }
    };
    for first in parts() {
        check(first.clone());
        for second in parts() {
            let both = vec![&first, &second];
            check(with(json!({}), "allOf", both.clone()));
            check(with(json!({}), "anyOf", both.clone()));
            check(with(json!({}), "oneOf", both));
            if first.is_object() {
                check(with(first.clone(), "anyOf", vec![&second, &json!({"type": "boolean"})]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} {:#?}", wrong.len(), &wrong[..wrong.len().min(60)]);
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
        (tagged("k", a.clone(), true), tagged("k", b.clone(), false), false),
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

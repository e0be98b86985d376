//! Strategies for values, schemas and texts.

use innkeeper_toolcall::{Completeness, Json};
use proptest::prelude::*;
use serde_json::{Value, json};

fn number() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?"
}

/// A number within the range and the precision of the validator.
fn valid_number() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,5})(\\.[0-9]{1,20})?([eE](\\+?[0-9]|-[0-9]{1,3}))?"
}

pub(crate) fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        number().prop_map(Json::Number),
        any::<String>().prop_map(Json::String),
        "[ -~]{0,12}".prop_map(Json::String),
        prop_oneof!["3", "true", "None", "[1]", "\\{\"a\": 1\\}"].prop_map(Json::String),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::hash_map("[a-d]|[ -~]{0,6}", inner, 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// Schemas whose property names and types often match the generated values.
pub(crate) fn any_schema() -> impl Strategy<Value = Value> {
    let kind = || {
        prop_oneof![
            Just("null"),
            Just("boolean"),
            Just("integer"),
            Just("number"),
            Just("string"),
            Just("array"),
            Just("object"),
            Just("unknown"),
        ]
    };
    let leaf = prop_oneof![
        kind().prop_map(|kind| json!({"type": kind})),
        prop::collection::vec(kind(), 1..4).prop_map(|kinds| json!({"type": kinds})),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/properties/a"})),
        Just(json!({"enum": ["3", 3, null]})),
        Just(json!({"const": true})),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            prop::collection::hash_map("[a-d]", inner.clone(), 0..4)
                .prop_map(|properties| json!({"type": "object", "properties": properties})),
            prop::collection::hash_map("[a-d]", inner.clone(), 0..4).prop_map(|properties| json!({
                "properties": properties, "required": ["a"], "additionalProperties": false,
            })),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|all| json!({"additionalProperties": all})),
            list.clone().prop_map(|parts| json!({"anyOf": parts})),
            list.clone().prop_map(|parts| json!({"oneOf": parts})),
            list.prop_map(|parts| json!({"allOf": parts})),
        ]
    })
}

/// Text of fragments of JSON and of its common syntax errors.
pub(crate) fn almost_json() -> impl Strategy<Value = String> {
    let chunk = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just("\""),
        Just("'"),
        Just("\\"),
        Just("\n"),
        Just(" "),
        Just("//"),
        Just("/*"),
        Just("*/"),
        Just("```json\n"),
        Just("```"),
        Just("{{"),
        Just("}}"),
        Just("“"),
        Just("’"),
        Just("True"),
        Just("null"),
        Just("NaN"),
        Just("key"),
        Just("\"a\": 1"),
        Just("'b': 'x'"),
        Just("007"),
        Just("-1.5e3"),
        Just("\\ud83d"),
        Just("\\u00e9"),
        Just("\\d"),
        Just("é"),
        Just("\u{0}"),
    ];
    prop::collection::vec(chunk, 0..30).prop_map(|chunks| chunks.concat())
}

pub(crate) fn end() -> impl Strategy<Value = Completeness> {
    prop_oneof![
        Just(Completeness::Complete),
        Just(Completeness::Stopped),
        Just(Completeness::Truncated)
    ]
}

/// A schema, a valid value, and the same value with wrong types that can be coerced unambiguously.
pub(crate) fn schema_with_values() -> impl Strategy<Value = (Value, Json, Json)> {
    let string = |text: &str| Json::String(text.to_owned());
    let integer = "-?(0|[1-9][0-9]{0,25})";
    let leaf = prop_oneof![
        integer.prop_map(move |text| {
            (json!({"type": "integer"}), Json::Number(text.clone()), string(&text))
        }),
        valid_number().prop_map(move |text| {
            (json!({"type": ["number", "null"]}), Json::Number(text.clone()), string(&text))
        }),
        valid_number().prop_map(move |text| {
            (json!({"type": "string"}), string(&text), Json::Number(text))
        }),
        any::<bool>().prop_map(move |it| {
            let python = if it { "True" } else { "False" };
            (json!({"enum": [true, false]}), Json::Bool(it), string(python))
        }),
        Just((
            json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]}),
            Json::Null,
            string("None")
        )),
        any::<bool>().prop_map(move |it| {
            (json!({"type": ["string", "null"]}), string(&it.to_string()), Json::Bool(it))
        }),
        "[ -~]{0,9}".prop_map(move |text| (
            json!({"type": "string"}),
            string(&text),
            string(&text)
        )),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|(schema, fits, slips)| {
                let encoded = Json::Array(vec![slips]).to_string();
                let schema = json!({"type": "array", "items": schema});
                (schema, Json::Array(vec![fits]), Json::String(encoded))
            }),
            valid_number().prop_map(|text| {
                let one = Json::Number(text);
                let schema = json!({"type": "array", "items": {"type": "number"}});
                (schema, Json::Array(vec![one.clone()]), one)
            }),
            (prop::collection::btree_map("[a-d]|[ -~]{0,6}", inner, 0..4), any::<bool>()).prop_map(
                |(parts, encoded)| {
                    let (mut schemas, mut fits, mut slips) = (json!({}), vec![], vec![]);
                    for (key, (schema, fit, slip)) in parts {
                        schemas[&key] = schema;
                        fits.push((key.clone(), fit));
                        slips.push((key, slip));
                    }
                    let slips = Json::Object(slips);
                    let slips = if encoded { Json::String(slips.to_string()) } else { slips };
                    let schema = json!({"type": "object", "properties": schemas});
                    (schema, Json::Object(fits), slips)
                }
            ),
        ]
    })
}

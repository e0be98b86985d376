//! Property tests of the grammar and the call schema of any schema.

use innkeeper_toolcall::grammar::{
    CallSchemaOptions, Gbnf, GbnfOptions, GrammarLossKind, OutputShape, call_schema, gbnf,
    structural_tag,
};
use innkeeper_toolcall::prompt::Template;
use innkeeper_toolcall::{ModelFamily, Tool, Tools};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::gbnf::Grammar;

/// Names of properties, definitions and tools.
fn name() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        4 => "[ab]{1,2}",
        1 => Just("na\"me\\ é\n".to_owned()),
        1 => Just(String::new()),
        1 => "\\PC{0,3}",
    ]
}

/// Any JSON.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3_i64..40).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,4}".prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((name(), inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// JSON with schema keywords.
fn schema() -> impl Strategy<Value = Value> {
    let type_name = prop::sample::select(vec![
        "null", "boolean", "integer", "number", "string", "array", "object",
    ]);
    let text = ("[a-z]{2}", 0_u64..4, 0_u64..9).prop_map(|(format, least, more)| {
        let format = if format.as_str() < "m" { "date-time" } else { "uuid" };
        if least == 3 {
            json!({"type": "string", "format": format})
        } else {
            json!({"type": "string", "minLength": least, "maxLength": least + more})
        }
    });
    let number = (any::<bool>(), -2000_i64..2000, 0_i64..3000, 0_u32..3, any::<(bool, bool)>())
        .prop_map(|(is_integer, low, size, decimals, (low_open, high_open))| {
            let unit = f64::from(10_u32.pow(decimals));
            let low_key = if low_open { "exclusiveMinimum" } else { "minimum" };
            let high_key = if high_open { "exclusiveMaximum" } else { "maximum" };
            json!({
                "type": if is_integer { "integer" } else { "number" },
                low_key: low as f64 / unit,
                high_key: (low + size) as f64 / unit,
            })
        });
    let leaf = prop_oneof![
        4 => type_name.prop_map(|of| json!({"type": of})),
        3 => text,
        3 => number,
        1 => prop::collection::vec(anything(), 0..3).prop_map(|values| json!({"enum": values})),
        1 => anything().prop_map(|value| json!({"const": value})),
        1 => anything(),
        1 => name().prop_map(|name| json!({"$ref": format!("#/$defs/{name}")})),
        1 => Just(json!({"$ref": "#"})),
        1 => Just(json!({"type": ["string", "null"]})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..3);
        let named_schemas = prop::collection::vec((name(), inner.clone()), 0..4).boxed();
        let names = prop::collection::vec(name(), 0..3);
        let object = (named_schemas.clone(), names, prop::option::of(inner.clone())).prop_map(
            |(properties, mut required, more)| {
                let property_names: Vec<String> =
                    properties.iter().map(|(name, _)| name.clone()).collect();
                required.retain(|name| property_names.contains(name) || name.len() == 1);
                required.dedup();
                let properties: Map<String, Value> = properties.into_iter().collect();
                let mut schema =
                    json!({"type": "object", "properties": properties, "required": required});
                if let Some(more) = more {
                    schema["additionalProperties"] = more;
                }
                schema
            },
        );
        let array = (inner.clone(), 0_u64..4, 0_u64..4).prop_map(|(items, least, more)| {
            json!({"type": "array", "items": items, "minItems": least, "maxItems": least + more})
        });
        let composed = (
            prop::sample::select(vec!["anyOf", "oneOf", "allOf", "prefixItems"]),
            list,
            inner.clone(),
            any::<bool>(),
        )
            .prop_map(|(keyword, branches, with_siblings, is_single)| {
                let mut schema = if is_single { json!({}) } else { with_siblings };
                if let Some(keywords) = schema.as_object_mut() {
                    keywords.insert(keyword.to_owned(), Value::Array(branches));
                }
                schema
            });
        let defined = (named_schemas, inner).prop_map(|(definitions, mut schema)| {
            if let Some(keywords) = schema.as_object_mut() {
                keywords
                    .insert("$defs".to_owned(), Value::Object(definitions.into_iter().collect()));
            }
            schema
        });
        prop_oneof![3 => object, 2 => array, 2 => composed, 1 => defined]
    })
}

fn tools(schemas: Vec<Value>) -> Tools {
    let tool = |(at, schema)| Tool::new(format!("tööl.{at}\"\n"), "", schema);
    schemas.into_iter().enumerate().map(tool).collect()
}

fn shape() -> impl Strategy<Value = OutputShape> {
    let family = prop::sample::select(ModelFamily::ALL.to_vec());
    prop_oneof![
        Just(OutputShape::Call),
        Just(OutputShape::Calls),
        family.clone().prop_map(OutputShape::FreeText),
        family.prop_map(OutputShape::Triggered),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_grammar_of_any_schemas_is_one_that_llama_cpp_takes(
        schemas in prop::collection::vec(prop_oneof![schema(), anything()], 1..4), shape in shape(),
    ) {
        let text = gbnf(&tools(schemas), shape, GbnfOptions::default()).unwrap().text;
        if let Err(error) = Grammar::parse(&text) {
            prop_assert!(false, "{error}\n{text}");
        }
    }

    #[test]
    fn what_a_grammar_lets_through_fits_the_schema_unless_a_loss_is_reported(
        arguments in schema(), random in any::<[u8; 32]>(),
    ) {
        let tools = tools(vec![arguments.clone()]);
        let options = GbnfOptions { string_limit: Some(4) };
        let Gbnf { text, losses } = gbnf(&tools, OutputShape::Call, options).unwrap();
        let Ok(validator) = jsonschema::validator_for(&arguments) else { return Ok(()) };
        let mut random = prop::test_runner::TestRng::from_seed(prop::test_runner::RngAlgorithm::ChaCha, &random);
        let grammar = Grammar::parse(&text).unwrap();
        if grammar.is_endless() {
            return Ok(());
        }
        for _ in 0..4 {
            let sentence = grammar.random_sentence(&mut random);
            let call: Value = match serde_json::from_str(&sentence) {
                Ok(call) => call,
                Err(error) => return Err(TestCaseError::fail(format!("{error}: {sentence}\n{text}"))),
            };
            prop_assert_eq!(&call["name"], &json!("tööl.0\"\n"));
            let fits = validator.is_valid(&call["arguments"]);
            let dropped = losses.iter().any(|loss| loss.kind == GrammarLossKind::Dropped);
            prop_assert!(fits || dropped, "{sentence}\n{arguments}\n{text}");
        }
    }

    #[test]
    fn no_schema_makes_a_union_a_tag_or_a_prompt_panic_and_every_reference_leads_somewhere(
        schemas in prop::collection::vec(prop_oneof![schema(), anything()], 1..4),
    ) {
        let tools = tools(schemas);
        let whole = call_schema(&tools, CallSchemaOptions::default()).unwrap().schema;
        let mut seen = vec![&whole];
        while let Some(value) = seen.pop() {
            match value {
                Value::Object(members) => {
                    // Inside `properties`, `$ref` would be an ordinary name.
                    if let Some(Value::String(reference)) = members.get("$ref") {
                        let target = reference.strip_prefix('#').and_then(|it| whole.pointer(it));
                        prop_assert!(target.is_some(), "{reference} in {whole}");
                    }
                    seen.extend(members.iter().filter(|(key, _)| *key != "const" && *key != "enum").map(|(_, value)| value));
                }
                Value::Array(items) => seen.extend(items),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        for family in ModelFamily::ALL {
            structural_tag(&tools, family, Default::default());
            Template::for_family(family).system_prompt("", &tools).unwrap();
        }
    }
}

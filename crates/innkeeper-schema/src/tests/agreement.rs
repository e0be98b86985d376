//! Tests with random schemas: no panics, and accepted schemas validate as JSON Schema specifies.

use jsonschema::Draft;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::read;
use crate::compiled::SchemaOutline;
use crate::correction;
use crate::schema_size;

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "ab", "c/~d"]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-2_i64..4).prop_map(Value::from),
        Just(json!(1.5)),
        name().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(name(), inner, 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    btree_map(name(), value(), 0..4).prop_map(|members| members.into_iter().collect())
}

/// Generates one keyword with a valid or, rarely, an arbitrary value.
fn keyword(
    schema: impl Strategy<Value = Value> + Clone + 'static,
) -> BoxedStrategy<(String, Value)> {
    let kinds = ["null", "boolean", "number", "integer", "string", "array", "object"];
    let under = |names: &'static [&'static str]| prop::sample::select(names.to_vec());
    let one = under(&[
        "not",
        "if",
        "then",
        "else",
        "items",
        "contains",
        "propertyNames",
        "additionalProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
    ]);
    let many = under(&["allOf", "anyOf", "oneOf", "prefixItems"]);
    let named = under(&["properties", "dependentSchemas"]);
    let sized = under(&["minimum", "exclusiveMaximum", "maxLength", "minItems", "maxProperties"]);
    let wild = under(&["type", "$ref", "properties", "items", "allOf", "pattern", "$anchor"]);
    let reference = under(&["#", "#/$defs/a", "#/$defs/b", "#/$defs/c", "#here", "#/properties/a"]);
    let schemas = btree_map(name(), schema.clone(), 1..3).prop_map(|all| all.into_iter().collect());
    let owned = |(keyword, value): (&str, Value)| (keyword.to_owned(), value);
    prop_oneof![
        4 => prop::sample::select(kinds.to_vec()).prop_map(|kind| ("type".into(), json!(kind))),
        3 => (one, schema.clone()).prop_map(owned),
        3 => (many, vec(schema.clone(), 1..3).prop_map(Value::from)).prop_map(owned),
        4 => (named, schemas).prop_map(owned),
        2 => (sized, (0_i64..4).prop_map(Value::from)).prop_map(owned),
        3 => reference.prop_map(|to| ("$ref".into(), json!(to))),
        1 => vec(name(), 0..3).prop_map(|names| ("required".into(), json!(names))),
        1 => vec(value(), 1..3).prop_map(|values| ("enum".into(), values.into())),
        1 => value().prop_map(|value| ("const".into(), value)),
        1 => schema.prop_map(|schema| ("patternProperties".into(), json!({"^a": schema}))),
        1 => Just(("pattern".into(), json!("^(?!b)a"))),
        1 => (wild, value()).prop_map(owned),
    ]
    .boxed()
}

fn part() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![Just(json!(true)), Just(json!({"type": "integer"}))];
    let part = leaf.prop_recursive(4, 32, 3, |inner| {
        vec(keyword(inner.boxed()), 0..4).prop_map(|keywords| keywords.into_iter().collect())
    });
    part.boxed()
}

fn schema() -> impl Strategy<Value = Value> {
    let part = part();
    let keywords = vec(keyword(part.clone()), 1..5);
    (keywords, btree_map(prop::sample::select(vec!["a", "b", "c"]), part, 2..4)).prop_map(
        |(keywords, definitions)| {
            let mut schema: Value = keywords.into_iter().collect();
            // The declaration prevents another dialect from being tried for an invalid schema.
            schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
            schema["$defs"] = definitions
                .into_iter()
                .map(|(name, part)| (name.to_owned(), part))
                .collect::<Value>();
            schema
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Proves: FR4.5, FR4.6
    #[test]
    fn what_is_accepted_is_applied_as_the_validator_does(schema in schema(), arguments in object()) {
        let Ok(read) = read(&schema) else { return Ok(()) };
        let checked = read.violations(&arguments);
        let build =
            |schema: &Value| jsonschema::options().offline().should_validate_formats(false).build(schema);
        let corrected = || build(&correction::correct(&schema, Draft::Draft202012));
        match build(&schema).or_else(|_| corrected()) {
            Ok(validator) => prop_assert_eq!(
                checked.as_ref().is_ok_and(Vec::is_empty),
                validator.is_valid(&arguments)
            ),
            Err(_) => prop_assert!(checked.is_err()),
        }
        for violation in checked.unwrap_or_default() {
            prop_assert!(arguments.pointer(&violation.pointer).is_some(), "{:?}", violation);
        }
    }

    #[test]
    fn a_text_that_shows_its_limits_is_within_them(schema in part()) {
        let text = schema.to_string();
        if schema_size::is_certainly_small(&text) {
            prop_assert!(SchemaOutline::new(&schema).is_ok(), "{}", text);
        }
    }

    #[test]
    fn reading_anything_as_a_schema_ends_without_a_panic(anything in value(), arguments in object()) {
        if let Ok(schema) = read(&anything) {
            drop(schema.violations(&arguments));
        }
    }
}

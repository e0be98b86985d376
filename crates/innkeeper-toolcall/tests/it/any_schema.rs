//! Property tests: any JSON as a tool's schema gives a schema that every provider accepts.

use innkeeper_toolcall::{Dialect, Json, lower_schema};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::schema_checker::problems;

pub(crate) const DIALECTS: [Dialect; 7] = [
    Dialect::OpenAi,
    Dialect::OpenAiStrict,
    Dialect::Anthropic,
    Dialect::AnthropicStrict,
    Dialect::Gemini,
    Dialect::Ollama,
    Dialect::JsonSchema,
];

/// The actual dialect of a lowered schema.
pub(crate) fn effective_dialect(dialect: Dialect, strict: bool) -> Dialect {
    match dialect {
        Dialect::OpenAiStrict if !strict => Dialect::OpenAi,
        Dialect::AnthropicStrict if !strict => Dialect::Anthropic,
        Dialect::OpenAiStrict
        | Dialect::AnthropicStrict
        | Dialect::OpenAi
        | Dialect::Anthropic
        | Dialect::Gemini
        | Dialect::Ollama
        | Dialect::JsonSchema => dialect,
    }
}

const KEYWORDS: &[&str] = &[
    "type",
    "type",
    "properties",
    "properties",
    "required",
    "items",
    "prefixItems",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "$ref",
    "$defs",
    "definitions",
    "default",
    "title",
    "description",
    "format",
    "pattern",
    "minimum",
    "exclusiveMinimum",
    "maxItems",
    "minLength",
    "multipleOf",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "dependentRequired",
    "nullable",
    "additionalItems",
    "uniqueItems",
    "examples",
    "example",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "$schema",
    "$id",
    "optional",
    "a",
    "b-c",
    "1",
    "",
];

const SCHEMA_LIST_KEYWORDS: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems"];

fn leaf() -> impl Strategy<Value = Value> {
    const STRINGS: &[&str] = &[
        "object",
        "array",
        "string",
        "integer",
        "number",
        "null",
        "boolean",
        "dict",
        "float",
        "any",
        "tuple",
        "#",
        "#/$defs/a",
        "#/definitions/a",
        "#/properties/a",
        "#/items",
        "a",
        "b-c",
        "uri",
        "date",
        "(?=x)",
        "",
        "é",
    ];
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2i64..12).prop_map(Value::from),
        Just(json!(1.5)),
        proptest::sample::select(STRINGS).prop_map(Value::from),
        proptest::sample::select(STRINGS).prop_map(Value::from),
    ]
}

/// JSON with any schema keyword anywhere and any value.
fn any_keywords() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(7, 80, 6, |inner| {
        prop_oneof![
            1 => proptest::collection::vec(leaf(), 0..4).prop_map(|all| json!({"enum": all})),
            2 => (inner.clone(), inner.clone()).prop_map(|(one, other)| {
                json!({"type": "object", "properties": {"a": one, "b-c": other}})
            }),
            1 => (proptest::sample::select(SCHEMA_LIST_KEYWORDS), proptest::collection::vec(inner.clone(), 0..4))
                .prop_map(|(key, all)| json!({key: all})),
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            4 => proptest::collection::vec((proptest::sample::select(KEYWORDS), inner), 0..7)
                .prop_map(|members| {
                    let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
                    Value::Object(members.collect::<Map<_, _>>())
                }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn whatever_comes_in_something_the_provider_takes_comes_out(
        schema in any_keywords(), arguments in any_keywords()
    ) {
        for dialect in DIALECTS {
            let fitted = lower_schema(&schema, dialect);
            let found = problems(&fitted.schema, effective_dialect(dialect, fitted.strict));
            prop_assert!(found.is_empty(), "{dialect:?} {found:?}\n{schema}\n{}", fitted.schema);
            fitted.restore_arguments(Json::from(&arguments));
        }
    }
}

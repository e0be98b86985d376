//! Tests of schema lowering.

use serde_json::{Map, Value, json};

use super::losses::MAX_LOSSES;
use super::*;

mod combinations;
mod limits;

/// An object with one required property.
fn schema_with_property(property: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": {}, "required": ["a"]});
    schema["properties"]["a"] = property;
    schema
}

/// Lowers the property of [`schema_with_property`].
fn lower_property(schema: Value, dialect: Dialect) -> (Value, Vec<String>) {
    let lowered = lower_schema(&schema_with_property(schema), dialect);
    let losses = lowered.losses.iter().filter(|loss| loss.pointer.starts_with("/properties/a"));
    (lowered.schema["properties"]["a"].clone(), losses.map(SchemaLoss::to_string).collect())
}

fn parse_json(text: &str) -> Json {
    Json::from(&serde_json::from_str::<Value>(text).unwrap())
}

#[test]
fn what_a_provider_does_not_take_stands_in_the_description() {
    let schema = json!({
        "type": "string", "description": "When.", "minLength": 3, "pattern": "^(?=a)", "default": "x"
    });
    let (lowered, losses) = lower_property(schema, Dialect::OpenAiStrict);
    let text = "When. (minLength: 3; pattern: ^(?=a); default: x)";
    assert_eq!(lowered, json!({"type": "string", "description": text}));
    assert_eq!(losses[0], "`#/properties/a` `minLength`: moved into the description");
    assert_eq!(losses.len(), 3);
}

#[test]
fn strict_dialects_get_a_union_for_several_types_only_if_one_has_subschemas() {
    for dialect in [Dialect::OpenAiStrict, Dialect::AnthropicStrict] {
        let items = json!({"type": ["string", "array"], "items": {"type": "integer"}});
        let union = json!({"anyOf": [
            {"type": "string"}, {"type": "array", "items": {"type": "integer"}}
        ]});
        assert_eq!(lower_property(items, dialect), (union, vec![]), "{dialect:?}");
        let plain = json!({"type": ["string", "integer"]});
        assert_eq!(lower_property(plain.clone(), dialect), (plain, vec![]), "{dialect:?}");
    }
}

#[test]
fn only_forbidden_unevaluated_properties_close_an_object() {
    let lowered = |value: bool| {
        let schema = json!({
            "type": "object", "properties": {"x": {"type": "string"}}, "unevaluatedProperties": value
        });
        lower_property(schema, Dialect::Gemini).1
    };
    let closed = [
        "`#/properties/a` `unevaluatedProperties`: replaced",
        "`#/properties/a` `additionalProperties`: widened",
    ];
    assert_eq!(lowered(false), closed);
    assert_eq!(
        lowered(true),
        ["`#/properties/a` `unevaluatedProperties`: moved into the description"]
    );
}

#[test]
fn dependent_schemas_precede_the_dependencies_of_old_drafts() {
    let schema = json!({
        "type": "object", "properties": {"x": {"type": "string"}},
        "dependentSchemas": {"x": {"required": ["y"]}}, "dependencies": {"x": {"required": ["z"]}},
    });
    let (lowered, _) = lower_property(schema, Dialect::Gemini);
    assert_eq!(lowered["description"], r#"(dependentSchemas: {"x":{"required":["y"]}})"#);
}

/// Proves: G36
#[test]
fn gemini_gets_no_reference_closed_object_const_or_one_of() {
    let schema = json!({
        "type": "object", "additionalProperties": false, "title": "T",
        "$defs": {"n": {"type": "integer", "exclusiveMinimum": 0}},
        "properties": {
            "n": {"$ref": "#/$defs/n"}, "c": {"const": "x"}, "$f": {"type": "string"},
            "o": {"oneOf": [{"type": "string", "format": "uri"}, {"enum": [1, null]}]}
        },
        "required": ["$f"]
    });
    let lowered = lower_schema(&schema, Dialect::Gemini);
    assert_eq!(
        lowered.schema,
        json!({
            "type": "object", "description": "T",
            "properties": {
                "n": {"type": "integer", "description": "(exclusiveMinimum: 0)"},
                "c": {"type": "string", "enum": ["x"]},
                "_f": {"type": "string", "description": "(name: $f)"},
                "o": {"anyOf": [
                    {"type": "string", "description": "(format: uri)"},
                    {"anyOf": [{"type": "integer", "enum": [1]}, {"type": "null"}]}
                ]}
            },
            "required": ["_f"]
        })
    );
    let losses: Vec<(&str, &str, SchemaLossKind)> =
        lowered.losses.iter().map(|entry| (&*entry.pointer, &*entry.keyword, entry.kind)).collect();
    for loss in [
        ("", "additionalProperties", SchemaLossKind::Widened),
        ("/$defs/n", "exclusiveMinimum", SchemaLossKind::Described),
        ("/properties/c", "const", SchemaLossKind::Replaced),
        ("/properties/$f", "", SchemaLossKind::Replaced),
        ("/properties/o", "oneOf", SchemaLossKind::Replaced),
        ("/properties/o/oneOf/1", "enum", SchemaLossKind::Replaced),
    ] {
        assert!(losses.contains(&loss), "{loss:?} {losses:?}");
    }
    let restored = lowered.restore_arguments(parse_json(r#"{"_f":"x","n":12345678901234567890}"#));
    assert_eq!(restored.to_string(), r#"{"$f":"x","n":12345678901234567890}"#);
}

#[test]
fn an_optional_property_becomes_nullable_and_its_null_goes_again() {
    let schema = json!({
        "type": "object",
        "properties": {
            "must": {"type": ["string", "null"]},
            "may": {"type": "string"},
            "null": {"type": ["string", "null"]},
            "choice": {"enum": ["x", "y"]},
            "list": {"type": "array", "items": {
                "type": "object", "properties": {"in": {"type": "number"}}
            }},
            "more": {"$ref": "#"}
        },
        "required": ["must"]
    });
    let lowered = lower_schema(&schema, Dialect::OpenAiStrict);
    assert!(lowered.strict, "{:?}", lowered.losses);
    let properties = &lowered.schema["properties"];
    assert_eq!(properties["may"], json!({"type": ["string", "null"]}));
    assert_eq!(properties["choice"]["enum"], json!(["x", "y", null]));
    assert_eq!(properties["more"]["anyOf"][1], json!({"type": "null"}));
    assert_eq!(lowered.schema["required"].as_array().unwrap().len(), 6);
    let arguments = r#"{"must":null,"may":null,"null":null,"choice":null,"list":[{"in":null},{"in":1e2}],
        "more":{"must":"x","may":null,"null":"y","choice":"x","list":null,"more":null},"odd":null}"#;
    let restored = lowered.restore_arguments(parse_json(arguments)).to_string();
    assert_eq!(
        restored,
        r#"{"must":null,"null":null,"list":[{},{"in":100.0}],"more":{"must":"x","null":"y","choice":"x"},"odd":null}"#
    );
}

#[test]
fn the_branch_of_a_union_that_fits_says_which_null_goes() {
    let branch = |kind: &str, key: &str| {
        json!({"type": "object", "required": ["k"],
            "properties": {"k": {"const": kind}, key: {"type": "integer"}}})
    };
    let schema = schema_with_property(json!({"anyOf": [branch("one", "x"), branch("two", "y")]}));
    let lowered = lower_schema(&schema, Dialect::OpenAiStrict);
    assert!(lowered.strict, "{:?}", lowered.losses);
    let restored =
        lowered.restore_arguments(parse_json(r#"{"a":{"k":"two","y":null}}"#)).to_string();
    assert_eq!(restored, r#"{"a":{"k":"two"}}"#);
    let neither = r#"{"a":{"k":"three","y":null}}"#;
    assert_eq!(lowered.restore_arguments(parse_json(neither)).to_string(), neither);
}

#[test]
fn a_renamed_member_does_not_take_the_place_of_one_that_is_there() {
    let schema = json!({"type": "object", "properties": {"$f": {"type": "string"}}});
    let lowered = lower_schema(&schema, Dialect::Gemini);
    let both = r#"{"_f":"x","$f":"y"}"#;
    assert_eq!(lowered.restore_arguments(parse_json(both)).to_string(), both);
}

#[test]
fn a_strict_form_that_cannot_be_had_becomes_the_plain_one_and_says_why() {
    let cases = [
        (json!({"type": "object"}), "/properties/a", "additionalProperties"),
        (
            json!({"type": "object", "properties": {"b": {"type": "string"}},
            "additionalProperties": true}),
            "/properties/a",
            "additionalProperties",
        ),
        (
            json!({"type": "object", "patternProperties": {"^x": {}}}),
            "/properties/a",
            "additionalProperties",
        ),
        (json!({}), "/properties/a", "type"),
        (json!({"type": "any"}), "/properties/a", "type"),
        (json!({"type": "array"}), "/properties/a", "items"),
        (json!({"type": "array", "items": {}}), "/properties/a/items", "type"),
    ];
    for (inside, pointer, keyword) in cases {
        for (dialect, plain) in [
            (Dialect::OpenAiStrict, Dialect::OpenAi),
            (Dialect::AnthropicStrict, Dialect::Anthropic),
        ] {
            let lowered = lower_schema(&schema_with_property(inside.clone()), dialect);
            assert!(!lowered.strict, "{inside}");
            assert_eq!(
                lowered.schema,
                lower_schema(&schema_with_property(inside.clone()), plain).schema
            );
            let loss = SchemaLoss {
                pointer: pointer.into(),
                keyword: keyword.into(),
                kind: SchemaLossKind::NotStrict,
            };
            assert_eq!(lowered.losses[0], loss);
        }
    }
}

#[test]
fn recursion_stays_where_references_do_and_is_cut_and_reported_elsewhere() {
    let schema = json!({
        "type": "object", "properties": {"tree": {"$ref": "#/$defs/T"}}, "required": ["tree"],
        "$defs": {"T": {"type": "object", "description": "A node.", "properties": {
            "next": {"$ref": "#/$defs/T"}
        }}}
    });
    let strict = lower_schema(&schema, Dialect::OpenAiStrict);
    assert!(strict.strict);
    assert_eq!(strict.schema["properties"]["tree"], json!({"$ref": "#/$defs/T"}));
    assert_eq!(strict.schema["$defs"]["T"]["required"], json!(["next"]));
    let restored = strict.restore_arguments(parse_json(r#"{"tree":{"next":{"next":null}}}"#));
    assert_eq!(restored.to_string(), r#"{"tree":{"next":{}}}"#);
    let anthropic = lower_schema(&schema, Dialect::AnthropicStrict);
    assert!(!anthropic.strict);
    assert_eq!(anthropic.losses[0].keyword, "$ref");
    assert_eq!(anthropic.schema["properties"]["tree"], json!({"$ref": "#/$defs/T"}));
    for dialect in [Dialect::Gemini, Dialect::Ollama, Dialect::JsonSchema] {
        let lowered = lower_schema(&schema, dialect);
        assert_eq!(lowered.schema["properties"]["tree"]["properties"]["next"], json!({}));
        let truncation = SchemaLoss {
            pointer: "/$defs/T".into(),
            keyword: "$ref".into(),
            kind: SchemaLossKind::Widened,
        };
        assert!(lowered.losses.contains(&truncation), "{:?}", lowered.losses);
    }
}

#[test]
fn the_types_and_keywords_of_other_languages_and_drafts_become_json_schema() {
    let schema = json!({
        "type": "dict",
        "properties": {
            "f": {"type": "float"}, "t": {"type": "tuple", "items": {"type": "String"}},
            "n": {"type": "string", "nullable": true}, "old": {"minimum": 1, "exclusiveMinimum": true},
            "pair": {"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "null"}},
            "three": {"type": "integer", "required": true}, "e": {"type": "integer", "enum": ["1"]}
        },
        "definitions": {"unused": {}}, "dependencies": {"f": ["t"]}
    });
    let lowered = lower_schema(&schema, Dialect::OpenAi);
    assert_eq!(
        lowered.schema,
        json!({
            "type": "object",
            "dependentRequired": {"f": ["t"]},
            "properties": {
                "f": {"type": "number"}, "t": {"type": "array", "items": {"type": "string"}},
                "n": {"type": ["string", "null"]}, "old": {"exclusiveMinimum": 1},
                "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "null"}},
                "three": {"type": "integer"}, "e": {"type": "string", "enum": ["1"]}
            },
            "required": ["three"]
        })
    );
}

#[test]
fn all_parts_of_an_all_of_become_one_object() {
    let schema = json!({"allOf": [
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["b"]},
        {"$ref": "#/$defs/B"},
        {"properties": {"a": {"type": "number", "minimum": 3, "maximum": 9}}}
    ], "$defs": {"B": {"properties": {"b": {"type": "string"}}}}});
    let lowered = lower_schema(&schema, Dialect::OpenAiStrict);
    assert!(lowered.strict, "{:?}", lowered.losses);
    let properties = json!({
        "a": {"type": ["integer", "null"], "minimum": 3, "maximum": 9}, "b": {"type": "string"}
    });
    assert_eq!(lowered.schema["properties"], properties);
}

#[test]
fn a_union_at_the_root_becomes_one_object_that_names_the_groups() {
    let schema = json!({"type": "object", "oneOf": [
        {"properties": {"id": {"type": "string"}}, "required": ["id"]},
        {"properties": {"name": {"type": "string"}}, "required": ["name"]}
    ]});
    let lowered = lower_schema(&schema, Dialect::Anthropic);
    assert_eq!(
        lowered.schema,
        json!({
            "type": "object", "description": "(oneOf: id, or name)",
            "properties": {"id": {"type": "string"}, "name": {"type": "string"}}
        })
    );
    let widened = SchemaLoss {
        pointer: String::new(),
        keyword: "oneOf".into(),
        kind: SchemaLossKind::Widened,
    };
    assert!(lowered.losses.contains(&widened));
}

#[test]
fn what_stands_beside_a_union_goes_into_its_branches() {
    let schema = json!({"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"],
    "additionalProperties": false, "anyOf": [
        {"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"type": "null"},
        {"properties": {"y": {"type": "integer"}}, "required": ["y"]}
    ]});
    let (lowered, _) = lower_property(schema, Dialect::Ollama);
    let branch = |key: &str| {
        json!({"type": "object", "properties": {"k": {"type": "string"}, key: {"type": "integer"}},
            "required": ["k", key]})
    };
    assert_eq!(lowered, json!({"anyOf": [branch("x"), branch("y")]}));
}

#[test]
fn branches_that_only_require_become_a_description() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
        "anyOf": [{"required": ["x"]}, {"required": ["y"]}]});
    let (lowered, losses) = lower_property(schema, Dialect::Gemini);
    assert_eq!(lowered["description"], "(anyOf: x, or y)");
    assert_eq!(losses, ["`#/properties/a` `anyOf`: moved into the description"]);
}

#[test]
fn what_is_no_schema_of_arguments_becomes_an_empty_object() {
    for schema in
        [json!(null), json!(true), json!(7), json!([]), json!("x"), json!({"type": "string"})]
    {
        for dialect in [Dialect::OpenAi, Dialect::Gemini, Dialect::JsonSchema] {
            let lowered = lower_schema(&schema, dialect);
            assert_eq!(lowered.schema, json!({"type": "object", "properties": {}}), "{schema}");
        }
    }
}

#[test]
fn a_tool_without_arguments_is_strict() {
    for dialect in [Dialect::OpenAiStrict, Dialect::AnthropicStrict] {
        let lowered = lower_schema(&json!({"type": "object"}), dialect);
        assert!(lowered.strict);
        let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(lowered.schema, closed);
    }
}

#[test]
fn a_reference_that_leads_nowhere_accepts_everything_and_is_reported() {
    for reference in ["http://elsewhere/x#/a", "#/$defs/none", "#anchor", "x"] {
        let (lowered, losses) = lower_property(json!({"$ref": reference}), Dialect::OpenAi);
        assert_eq!(lowered, json!({}));
        assert_eq!(losses, ["`#/properties/a` `$ref`: widened"]);
    }
}

#[test]
fn a_reference_may_be_encoded_and_have_the_schema_as_its_base() {
    let mut schema = schema_with_property(json!({"$ref": "http://own/s.json#/$defs/a%20b%+5"}));
    schema["$id"] = json!("http://own/s.json");
    schema["$defs"] = json!({"a b%+5": {"type": "string"}});
    let lowered = lower_schema(&schema, Dialect::Gemini);
    assert_eq!(lowered.schema["properties"]["a"], json!({"type": "string"}));
}

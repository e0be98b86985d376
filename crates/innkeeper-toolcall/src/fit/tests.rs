//! Tests of fitting schemas to providers.

use serde_json::{Map, Value, json};

use super::losses::MOST_LOSSES;
use super::*;

mod limits;

/// An object with one required property.
fn with(property: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": {}, "required": ["a"]});
    schema["properties"]["a"] = property;
    schema
}

/// What became of the property of [`with`].
fn property(schema: Value, dialect: Dialect) -> (Value, Vec<String>) {
    let fitted = fit(&with(schema), dialect);
    let told = fitted.losses.iter().filter(|it| it.pointer.starts_with("/properties/a"));
    (fitted.schema["properties"]["a"].clone(), told.map(Loss::to_string).collect())
}

fn json_of(text: &str) -> Json {
    Json::from(&serde_json::from_str::<Value>(text).unwrap())
}

#[test]
fn what_a_provider_does_not_take_stands_in_the_description() {
    let schema = json!({
        "type": "string", "description": "When.", "minLength": 3, "pattern": "^(?=a)", "default": "x"
    });
    let (fitted, told) = property(schema, Dialect::OpenAiStrict);
    let text = "When. (minLength: 3; pattern: ^(?=a); default: x)";
    assert_eq!(fitted, json!({"type": "string", "description": text}));
    assert_eq!(told[0], "`#/properties/a` `minLength`: moved into the description");
    assert_eq!(told.len(), 3);
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
    let fitted = fit(&schema, Dialect::Gemini);
    assert_eq!(
        fitted.schema,
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
    let told: Vec<(&str, &str, Change)> =
        fitted.losses.iter().map(|it| (&*it.pointer, &*it.keyword, it.change)).collect();
    for loss in [
        ("", "additionalProperties", Change::Widened),
        ("/$defs/n", "exclusiveMinimum", Change::Described),
        ("/properties/c", "const", Change::Replaced),
        ("/properties/$f", "", Change::Replaced),
        ("/properties/o", "oneOf", Change::Replaced),
        ("/properties/o/oneOf/1", "enum", Change::Replaced),
    ] {
        assert!(told.contains(&loss), "{loss:?} {told:?}");
    }
    let back = fitted.unfit(json_of(r#"{"_f":"x","n":12345678901234567890}"#));
    assert_eq!(back.to_string(), r#"{"$f":"x","n":12345678901234567890}"#);
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
    let fitted = fit(&schema, Dialect::OpenAiStrict);
    assert!(fitted.strict, "{:?}", fitted.losses);
    let properties = &fitted.schema["properties"];
    assert_eq!(properties["may"], json!({"type": ["string", "null"]}));
    assert_eq!(properties["choice"]["enum"], json!(["x", "y", null]));
    assert_eq!(properties["more"]["anyOf"][1], json!({"type": "null"}));
    assert_eq!(fitted.schema["required"].as_array().unwrap().len(), 6);
    let said = r#"{"must":null,"may":null,"null":null,"choice":null,"list":[{"in":null},{"in":1e2}],
        "more":{"must":"x","may":null,"null":"y","choice":"x","list":null,"more":null},"odd":null}"#;
    let back = fitted.unfit(json_of(said)).to_string();
    assert_eq!(
        back,
        r#"{"must":null,"null":null,"list":[{},{"in":100.0}],"more":{"must":"x","null":"y","choice":"x"},"odd":null}"#
    );
}

#[test]
fn the_branch_of_a_union_that_fits_says_which_null_goes() {
    let branch = |kind: &str, key: &str| {
        json!({"type": "object", "required": ["k"],
            "properties": {"k": {"const": kind}, key: {"type": "integer"}}})
    };
    let schema = with(json!({"anyOf": [branch("one", "x"), branch("two", "y")]}));
    let fitted = fit(&schema, Dialect::OpenAiStrict);
    assert!(fitted.strict, "{:?}", fitted.losses);
    let back = fitted.unfit(json_of(r#"{"a":{"k":"two","y":null}}"#)).to_string();
    assert_eq!(back, r#"{"a":{"k":"two"}}"#);
    let neither = r#"{"a":{"k":"three","y":null}}"#;
    assert_eq!(fitted.unfit(json_of(neither)).to_string(), neither);
}

#[test]
fn a_renamed_member_does_not_take_the_place_of_one_that_is_there() {
    let schema = json!({"type": "object", "properties": {"$f": {"type": "string"}}});
    let fitted = fit(&schema, Dialect::Gemini);
    let both = r#"{"_f":"x","$f":"y"}"#;
    assert_eq!(fitted.unfit(json_of(both)).to_string(), both);
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
            let fitted = fit(&with(inside.clone()), dialect);
            assert!(!fitted.strict, "{inside}");
            assert_eq!(fitted.schema, fit(&with(inside.clone()), plain).schema);
            let why = Loss {
                pointer: pointer.into(),
                keyword: keyword.into(),
                change: Change::NotStrict,
            };
            assert_eq!(fitted.losses[0], why);
        }
    }
}

#[test]
fn recursion_stays_where_references_do_and_is_cut_and_told_elsewhere() {
    let schema = json!({
        "type": "object", "properties": {"tree": {"$ref": "#/$defs/T"}}, "required": ["tree"],
        "$defs": {"T": {"type": "object", "description": "A node.", "properties": {
            "next": {"$ref": "#/$defs/T"}
        }}}
    });
    let strict = fit(&schema, Dialect::OpenAiStrict);
    assert!(strict.strict);
    assert_eq!(strict.schema["properties"]["tree"], json!({"$ref": "#/$defs/T"}));
    assert_eq!(strict.schema["$defs"]["T"]["required"], json!(["next"]));
    let back = strict.unfit(json_of(r#"{"tree":{"next":{"next":null}}}"#));
    assert_eq!(back.to_string(), r#"{"tree":{"next":{}}}"#);
    let anthropic = fit(&schema, Dialect::AnthropicStrict);
    assert!(!anthropic.strict);
    assert_eq!(anthropic.losses[0].keyword, "$ref");
    assert_eq!(anthropic.schema["properties"]["tree"], json!({"$ref": "#/$defs/T"}));
    for dialect in [Dialect::Gemini, Dialect::Ollama, Dialect::JsonSchema] {
        let fitted = fit(&schema, dialect);
        assert_eq!(fitted.schema["properties"]["tree"]["properties"]["next"], json!({}));
        let cut =
            Loss { pointer: "/$defs/T".into(), keyword: "$ref".into(), change: Change::Widened };
        assert!(fitted.losses.contains(&cut), "{:?}", fitted.losses);
    }
}

#[test]
fn the_words_of_other_languages_and_drafts_become_json_schema() {
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
    let fitted = fit(&schema, Dialect::OpenAi);
    assert_eq!(
        fitted.schema,
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
    let fitted = fit(&schema, Dialect::OpenAiStrict);
    assert!(fitted.strict, "{:?}", fitted.losses);
    let properties = json!({
        "a": {"type": ["integer", "null"], "minimum": 3, "maximum": 9}, "b": {"type": "string"}
    });
    assert_eq!(fitted.schema["properties"], properties);
}

#[test]
fn a_union_at_the_root_becomes_one_object_that_names_the_groups() {
    let schema = json!({"type": "object", "oneOf": [
        {"properties": {"id": {"type": "string"}}, "required": ["id"]},
        {"properties": {"name": {"type": "string"}}, "required": ["name"]}
    ]});
    let fitted = fit(&schema, Dialect::Anthropic);
    assert_eq!(
        fitted.schema,
        json!({
            "type": "object", "description": "(oneOf: id, or name)",
            "properties": {"id": {"type": "string"}, "name": {"type": "string"}}
        })
    );
    let widened = Loss { pointer: String::new(), keyword: "oneOf".into(), change: Change::Widened };
    assert!(fitted.losses.contains(&widened));
}

#[test]
fn what_stands_beside_a_union_goes_into_its_branches() {
    let schema = json!({"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"],
    "additionalProperties": false, "anyOf": [
        {"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"type": "null"},
        {"properties": {"y": {"type": "integer"}}, "required": ["y"]}
    ]});
    let (fitted, _) = property(schema, Dialect::Ollama);
    let branch = |key: &str| {
        json!({"type": "object", "properties": {"k": {"type": "string"}, key: {"type": "integer"}},
            "required": ["k", key]})
    };
    assert_eq!(fitted, json!({"anyOf": [branch("x"), branch("y")]}));
}

#[test]
fn branches_that_only_require_become_words() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
        "anyOf": [{"required": ["x"]}, {"required": ["y"]}]});
    let (fitted, told) = property(schema, Dialect::Gemini);
    assert_eq!(fitted["description"], "(anyOf: x, or y)");
    assert_eq!(told, ["`#/properties/a` `anyOf`: moved into the description"]);
}

#[test]
fn what_is_no_schema_of_arguments_becomes_an_empty_object() {
    for schema in
        [json!(null), json!(true), json!(7), json!([]), json!("x"), json!({"type": "string"})]
    {
        for dialect in [Dialect::OpenAi, Dialect::Gemini, Dialect::JsonSchema] {
            let fitted = fit(&schema, dialect);
            assert_eq!(fitted.schema, json!({"type": "object", "properties": {}}), "{schema}");
        }
    }
}

#[test]
fn a_tool_without_arguments_is_strict() {
    for dialect in [Dialect::OpenAiStrict, Dialect::AnthropicStrict] {
        let fitted = fit(&json!({"type": "object"}), dialect);
        assert!(fitted.strict);
        let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(fitted.schema, closed);
    }
}

#[test]
fn a_reference_that_leads_nowhere_accepts_everything_and_is_told() {
    for reference in ["http://elsewhere/x#/a", "#/$defs/none", "#anchor", "x"] {
        let (fitted, told) = property(json!({"$ref": reference}), Dialect::OpenAi);
        assert_eq!(fitted, json!({}));
        assert_eq!(told, ["`#/properties/a` `$ref`: widened"]);
    }
}

#[test]
fn a_reference_may_be_encoded_and_have_the_schema_as_its_base() {
    let mut schema = with(json!({"$ref": "http://own/s.json#/$defs/a%20b"}));
    schema["$id"] = json!("http://own/s.json");
    schema["$defs"] = json!({"a b": {"type": "string"}});
    let fitted = fit(&schema, Dialect::Gemini);
    assert_eq!(fitted.schema["properties"]["a"], json!({"type": "string"}));
}

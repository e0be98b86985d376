//! Equivalence of lowered schemas and original schemas, judged by an independent validator.

use innkeeper_toolcall::{Dialect, Json, LoweredSchema, SchemaLoss, SchemaLossKind, lower_schema};
use jsonschema::is_valid;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::any_schema::DIALECTS;

/// A schema and a valid value.
type SchemaAndValue = (Value, Value);

fn leaf() -> impl Strategy<Value = SchemaAndValue> {
    prop_oneof![
        "[a-c]{1,3}".prop_map(|text| (json!({"type": "string", "minLength": 1}), json!(text))),
        Just((json!({"type": "string", "format": "uri"}), json!("x:y"))),
        Just((json!({"type": "string", "pattern": "^(?=a)"}), json!("ab"))),
        (0..9).prop_map(|it| (json!({"type": "integer", "minimum": 0, "maximum": 9}), json!(it))),
        Just((json!({"type": "number", "exclusiveMinimum": 0, "default": 2}), json!(1.5))),
        Just((json!({"enum": ["x", "y", null], "title": "T"}), json!("y"))),
        Just((json!({"enum": ["x", "y", null]}), json!(null))),
        Just((json!({"const": true}), json!(true))),
        Just((json!({"type": ["string", "null"]}), json!(null))),
        Just((json!({"type": "boolean", "description": "D"}), json!(false))),
        Just((json!({"$ref": "#/$defs/word"}), json!("w"))),
        Just((json!({"$ref": "#/$defs/tree"}), json!({"v": 1, "next": {"v": 2}}))),
        Just((
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false}),
            json!(["a", 1])
        )),
        Just((json!({}), json!({"free": [1]}))),
        Just((json!({"type": "object"}), json!({"free": "form"}))),
    ]
}

fn schema_and_value() -> impl Strategy<Value = SchemaAndValue> {
    leaf().prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            3 => object(inner.clone()),
            1 => proptest::collection::vec(inner.clone(), 1..2).prop_map(|mut all| {
                let (schema, value) = all.remove(0);
                (json!({"type": "array", "items": schema, "minItems": 1}), json!([value.clone(), value]))
            }),
            1 => (inner.clone(), inner.clone()).prop_map(|((one, value), (two, _))| {
                (json!({"anyOf": [two, one]}), value)
            }),
            1 => inner.clone().prop_map(|(schema, value)| {
                (json!({"allOf": [schema, {"description": "beside"}]}), value)
            }),
            1 => inner.prop_map(|(schema, value)| {
                (json!({"type": ["object", "string", "array", "number", "boolean", "null"], "anyOf": [schema]}), value)
            }),
        ]
    })
}

fn object(inner: impl Strategy<Value = SchemaAndValue>) -> impl Strategy<Value = SchemaAndValue> {
    let member = (inner, any::<bool>(), any::<bool>());
    (proptest::collection::vec(member, 0..4), 0..4).prop_map(|(members, additional)| {
        let (mut properties, mut required, mut value) = (Map::new(), Vec::new(), Map::new());
        for (name, ((schema, inside), must, present)) in ["a", "b", "$c", "d-e"].iter().zip(members)
        {
            properties.insert((*name).to_owned(), schema);
            if must {
                required.push(*name);
            }
            if must || present {
                value.insert((*name).to_owned(), inside);
            }
        }
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        match additional {
            0 => {}
            1 => schema["additionalProperties"] = json!(true),
            _ => schema["additionalProperties"] = json!(false),
        }
        (schema, Value::Object(value))
    })
}

/// A tool's schema and valid arguments.
fn tool() -> impl Strategy<Value = SchemaAndValue> {
    object(schema_and_value()).prop_map(|(mut schema, value)| {
        schema["$defs"] = definitions();
        (schema, value)
    })
}

fn definitions() -> Value {
    json!({
        "word": {"type": "string"},
        "tree": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/tree"}},
            "required": ["v"], "additionalProperties": false
        }
    })
}

/// Converts arguments to the form that a model writes: lowered member names, and in the strict form
/// of OpenAI a `null` for each absent required member.
fn lowered_arguments(value: &Value, lowered: &LoweredSchema, dialect: Dialect) -> Value {
    let text = lowered.schema.to_string();
    let names = ["$c", "d-e"].into_iter().filter(|name| text.contains(&format!("name: {name}")));
    let renamed = rename_members(value, &names.collect::<Vec<_>>());
    match dialect == Dialect::OpenAiStrict && lowered.strict {
        true => fill_members(&renamed, &lowered.schema, &lowered.schema),
        false => renamed,
    }
}

fn rename_members(value: &Value, names: &[&str]) -> Value {
    match value {
        Value::Object(members) => {
            let renamed = members.iter().map(|(name, inside)| {
                let is_renamed = names.contains(&name.as_str());
                let name = if is_renamed { name.replace(['$', '-'], "_") } else { name.clone() };
                (name, rename_members(inside, names))
            });
            Value::Object(renamed.collect())
        }
        Value::Array(items) => items.iter().map(|item| rename_members(item, names)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Adds a `null` for each absent required member.
fn fill_members(value: &Value, lowered: &Value, root: &Value) -> Value {
    let lowered = match lowered["$ref"].as_str() {
        Some(reference) => root.pointer(&reference[1..]).expect("a definition"),
        None => lowered,
    };
    if let Some(branches) = lowered["anyOf"].as_array() {
        let mut filled = branches.iter().map(|branch| (fill_members(value, branch, root), branch));
        let fitting =
            filled.find(|(candidate, branch)| is_valid(&with_definitions(branch, root), candidate));
        return fitting.map_or_else(|| value.clone(), |(candidate, _)| candidate);
    }
    match value {
        Value::Object(members) => {
            let mut filled = Map::new();
            for (name, inside) in members {
                let schema = &lowered["properties"][name];
                filled.insert(name.clone(), fill_members(inside, schema, root));
            }
            for name in lowered["required"].as_array().into_iter().flatten() {
                filled.entry(name.as_str().expect("a name")).or_insert(Value::Null);
            }
            Value::Object(filled)
        }
        Value::Array(items) => {
            items.iter().map(|item| fill_members(item, &lowered["items"], root)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Adds the definitions of the root to a subschema.
fn with_definitions(schema: &Value, root: &Value) -> Value {
    let mut schema = schema.clone();
    if let (Some(map), Some(definitions)) = (schema.as_object_mut(), root.get("$defs")) {
        map.insert("$defs".to_owned(), definitions.clone());
    }
    schema
}

/// Values that most of the generated schemas reject.
fn any_probe() -> impl Strategy<Value = Value> {
    let all =
        ["-1", "0", "10", "1.5", "null", "true", "false", "\"\"", "\"b\"", "[]", "[1,2]", "{}"];
    proptest::sample::select(all.map(|text| serde_json::from_str(text).expect("JSON")).to_vec())
}

/// Whether the report contains a widening of this member's schema.
fn reports_widening(lowered: &LoweredSchema, member: &str) -> bool {
    let annotations = ["title", "default", "description"];
    let pointer = format!("/properties/{member}");
    let concerns_member = |loss: &&SchemaLoss| {
        loss.pointer.starts_with(&pointer) || loss.pointer.starts_with("/$defs")
    };
    lowered.losses.iter().filter(concerns_member).any(|loss| match loss.kind {
        SchemaLossKind::Widened => true,
        SchemaLossKind::Dropped | SchemaLossKind::Described => {
            !annotations.contains(&loss.keyword.as_str())
        }
        SchemaLossKind::Narrowed | SchemaLossKind::Replaced | SchemaLossKind::NotStrict => false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn arguments_the_tool_accepts_fit_every_dialect_and_are_restored((schema, value) in tool()) {
        prop_assume!(is_valid(&schema, &value));
        for dialect in DIALECTS {
            let fitted = lower_schema(&schema, dialect);
            let known = schema["properties"].as_object().unwrap();
            let own = value.as_object().unwrap().keys().all(|name| known.contains_key(name));
            prop_assert!(own);
            let said = lowered_arguments(&value, &fitted, dialect);
            prop_assert!(
                is_valid(&fitted.schema, &said), "{dialect:?}\n{schema}\n{}\n{said}", fitted.schema
            );
            let back = fitted.restore_arguments(Json::from(&said)).to_string();
            let back: Value = serde_json::from_str(&back).unwrap();
            prop_assert!(is_valid(&schema, &back), "{dialect:?}\n{schema}\n{said}\n{back}");
        }
    }

    #[test]
    fn full_forms_mean_the_same((schema, _) in tool(), (_, value) in tool()) {
        for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
            let fitted = lower_schema(&schema, dialect);
            let said = lowered_arguments(&value, &fitted, dialect);
            prop_assert_eq!(
                is_valid(&schema, &value), is_valid(&fitted.schema, &said),
                "{:?}\n{}\n{}\n{}", dialect, schema, fitted.schema, value
            );
        }
    }

    #[test]
    fn no_dialect_accepts_more_without_reporting_it((schema, value) in object(leaf()), probe in any_probe()) {
        let schema = with_definitions(&schema, &json!({"$defs": definitions()}));
        for name in schema["properties"].as_object().unwrap().keys() {
            let mut value = value.clone();
            value[name] = probe.clone();
            for dialect in DIALECTS {
                let fitted = lower_schema(&schema, dialect);
                let said = lowered_arguments(&value, &fitted, dialect);
                if !reports_widening(&fitted, name) && is_valid(&fitted.schema, &said) {
                    let back = fitted.restore_arguments(Json::from(&said)).to_string();
                    let back: Value = serde_json::from_str(&back).unwrap();
                    prop_assert!(
                        is_valid(&schema, &back), "{dialect:?}\n{schema}\n{}\n{said}", fitted.schema
                    );
                }
            }
        }
    }
}

//! Fitted schemas mean what the tool's own schema means, judged by an independent validator.

use innkeeper_toolcall::{Change, Dialect, Fitted, Json, Loss, fit};
use jsonschema::is_valid;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::any_schema::DIALECTS;

/// A schema and a value it accepts.
type Pair = (Value, Value);

fn leaf() -> impl Strategy<Value = Pair> {
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

fn pair() -> impl Strategy<Value = Pair> {
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

fn object(inner: impl Strategy<Value = Pair>) -> impl Strategy<Value = Pair> {
    let member = (inner, any::<bool>(), any::<bool>());
    (proptest::collection::vec(member, 0..4), 0..4).prop_map(|(members, additional)| {
        let (mut properties, mut required, mut value) = (Map::new(), Vec::new(), Map::new());
        for (name, ((schema, inside), must, there)) in ["a", "b", "$c", "d-e"].iter().zip(members) {
            properties.insert((*name).to_owned(), schema);
            if must {
                required.push(*name);
            }
            if must || there {
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

/// A tool's schema and arguments for it.
fn tool() -> impl Strategy<Value = Pair> {
    object(pair()).prop_map(|(mut schema, value)| {
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

/// What a model would say for these arguments: members under the names they have, and if it is to
/// `fill`, `null` for each required one that is not there.
fn said(value: &Value, fitted: &Value, root: &Value, fill: bool) -> Value {
    let fitted = match fitted["$ref"].as_str() {
        Some(reference) => root.pointer(&reference[1..]).expect("a definition"),
        None => fitted,
    };
    if let Some(branches) = fitted["anyOf"].as_array() {
        let all = branches.iter().map(|branch| said(value, branch, root, fill));
        let fits = |(it, branch): &(Value, &Value)| is_valid(&rooted(branch, root), it);
        return all.zip(branches).find(fits).map_or_else(|| value.clone(), |(it, _)| it);
    }
    match value {
        Value::Object(members) => {
            let mut out = Map::new();
            for (name, inside) in members {
                let properties = &fitted["properties"];
                let other = name.replace(['$', '-'], "_");
                let known = |name: &str| properties.get(name).is_some();
                let renamed = if known(&other) && !known(name) { other } else { name.clone() };
                let value = said(inside, &fitted["properties"][&renamed], root, fill);
                out.insert(renamed, value);
            }
            for name in fitted["required"].as_array().filter(|_| fill).into_iter().flatten() {
                out.entry(name.as_str().expect("a name")).or_insert(Value::Null);
            }
            Value::Object(out)
        }
        Value::Array(items) => {
            items.iter().map(|it| said(it, &fitted["items"], root, fill)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// A part of a schema with the definitions of the whole.
fn rooted(part: &Value, root: &Value) -> Value {
    let mut part = part.clone();
    if let (Some(map), Some(definitions)) = (part.as_object_mut(), root.get("$defs")) {
        map.insert("$defs".to_owned(), definitions.clone());
    }
    part
}

/// Values that most schemas of [`leaf`] refuse.
fn probe() -> impl Strategy<Value = Value> {
    let all =
        ["-1", "0", "10", "1.5", "null", "true", "false", "\"\"", "\"b\"", "[]", "[1,2]", "{}"];
    proptest::sample::select(all.map(|text| serde_json::from_str(text).expect("JSON")).to_vec())
}

/// Whether the report says that the schema of this member accepts more than it did.
fn tells_of_more(fitted: &Fitted, member: &str) -> bool {
    let annotations = ["title", "default", "description"];
    let place = format!("/properties/{member}");
    let about =
        |loss: &&Loss| loss.pointer.starts_with(&place) || loss.pointer.starts_with("/$defs");
    fitted.losses.iter().filter(about).any(|loss| match loss.change {
        Change::Widened => true,
        Change::Dropped | Change::Described => !annotations.contains(&loss.keyword.as_str()),
        Change::Narrowed | Change::Replaced | Change::NotStrict => false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_the_tool_accepts_can_be_said_in_every_form_and_comes_back((schema, value) in tool()) {
        prop_assume!(is_valid(&schema, &value));
        for dialect in DIALECTS {
            let fitted = fit(&schema, dialect);
            let known = schema["properties"].as_object().unwrap();
            let own = value.as_object().unwrap().keys().all(|name| known.contains_key(name));
            prop_assert!(own);
            let said = said(&value, &fitted.schema, &fitted.schema, dialect == Dialect::OpenAiStrict && fitted.strict);
            prop_assert!(
                is_valid(&fitted.schema, &said), "{dialect:?}\n{schema}\n{}\n{said}", fitted.schema
            );
            let back = fitted.unfit(Json::from(&said)).to_string();
            let back: Value = serde_json::from_str(&back).unwrap();
            prop_assert!(is_valid(&schema, &back), "{dialect:?}\n{schema}\n{said}\n{back}");
        }
    }

    #[test]
    fn full_forms_mean_the_same((schema, _) in tool(), (_, value) in tool()) {
        for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
            let fitted = fit(&schema, dialect);
            prop_assert_eq!(
                is_valid(&schema, &value), is_valid(&fitted.schema, &value),
                "{:?}\n{}\n{}\n{}", dialect, schema, fitted.schema, value
            );
        }
    }

    #[test]
    fn no_form_accepts_more_without_saying_so((schema, value) in object(leaf()), probe in probe()) {
        let schema = rooted(&schema, &json!({"$defs": definitions()}));
        for name in schema["properties"].as_object().unwrap().keys() {
            let mut value = value.clone();
            value[name] = probe.clone();
            for dialect in DIALECTS {
                let fitted = fit(&schema, dialect);
                let said = said(&value, &fitted.schema, &fitted.schema, dialect == Dialect::OpenAiStrict && fitted.strict);
                if !tells_of_more(&fitted, name) && is_valid(&fitted.schema, &said) {
                    let back = fitted.unfit(Json::from(&said)).to_string();
                    let back: Value = serde_json::from_str(&back).unwrap();
                    prop_assert!(
                        is_valid(&schema, &back), "{dialect:?}\n{schema}\n{}\n{said}", fitted.schema
                    );
                }
            }
        }
    }
}

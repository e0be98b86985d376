//! Properties of headers: value round trip, and agreement with a simple schema search.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_protocol::http::{ParamHeaders, decode_value, encode_value};
use proptest::prelude::*;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// Decodes a header value as a server does.
fn decoded(value: &str) -> String {
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    encoded.map_or(value.to_owned(), |encoded| {
        String::from_utf8(STANDARD.decode(encoded).expect("base64")).expect("UTF-8")
    })
}

/// Returns every annotation with its path, or `None` if an annotation is invalid.
fn annotations(schema: &Value, path: Option<&str>) -> Option<Vec<(String, String)>> {
    let Some(schema) = schema.as_object() else { return Some(Vec::new()) };
    let mut pairs = Vec::new();
    for (key, value) in schema {
        match key.as_str() {
            "properties" => {
                for (name, property) in value.as_object().into_iter().flatten() {
                    let path = path.map(|path| format!("{path}/{name}"));
                    pairs.extend(annotations(property, path.as_deref())?);
                }
            }
            "items" | "not" => pairs.extend(annotations(value, None)?),
            "anyOf" => {
                for schema in value.as_array().into_iter().flatten() {
                    pairs.extend(annotations(schema, None)?);
                }
            }
            "x-mcp-header" => {
                let name = value.as_str().filter(|name| !name.is_empty() && !name.contains(' '))?;
                let type_ = schema.get("type")?.as_str()?;
                ["string", "integer", "boolean"].contains(&type_).then_some(())?;
                pairs.push((name.to_owned(), path.filter(|path| !path.is_empty())?.to_owned()));
            }
            _ => {}
        }
    }
    Some(pairs)
}

/// Generates schemas with many annotations, mostly valid.
fn schema() -> impl Strategy<Value = Value> {
    let type_ = prop::sample::select(vec!["string", "string", "integer", "boolean", "number"]);
    let leaf = prop_oneof![
        2 => type_.clone().prop_map(|type_| json!({"type": type_})),
        3 => (type_, "[a-zA-C]{1,2}|[ ]?").prop_map(|(type_, name)| {
            json!({"x-mcp-header": name, "type": type_})
        }),
        1 => Just(json!(true)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let name = "[ab]|x-mcp-header|type";
        let properties = prop::collection::btree_map(name, inner.clone(), 1..3);
        prop_oneof![
            8 => properties.prop_map(|properties| json!({"type": "object", "properties": properties})),
            1 => inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            1 => inner.clone().prop_map(|other| json!({"anyOf": [{}, other]})),
            1 => inner.prop_map(|data| json!({"default": data})),
        ]
    })
}

/// Generates an argument of any type.
fn argument() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<String>().prop_map(Value::from),
        "[ -~]{0,6}".prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|number| Value::from(f64::from(number))),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        Just(json!({"a": "x"})),
    ]
}

proptest! {
    #[test]
    fn every_value_can_be_sent_and_read_back(value in prop_oneof![any::<String>(), "[ -~]{0,20}"]) {
        let sent = encode_value(&value);
        prop_assert!(sent.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{}", sent);
        prop_assert_eq!(sent.trim(), &sent);
        prop_assert_eq!(&decoded(&sent), &value);
        prop_assert_eq!(decode_value(sent.as_bytes()), Ok(value.as_str().into()));
    }

    #[test]
    fn annotations_are_those_of_a_plain_reading(schema in schema()) {
        let expected = annotations(&schema, Some("")).filter(|found| {
            let mut names: Vec<_> = found.iter().map(|(name, _)| name.to_lowercase()).collect();
            names.sort_unstable();
            names.windows(2).all(|pair| pair[0] != pair[1])
        });
        let read = ParamHeaders::from_schema(&to_raw_value(&schema).unwrap());
        prop_assert_eq!(read.is_ok(), expected.is_some(), "{:?}", read);
        let (Ok(headers), Some(expected)) = (read, expected) else { return Ok(()) };
        prop_assert_eq!(headers.is_empty(), expected.is_empty());
        for (name, path) in expected {
            let steps = path.split('/').skip(1).collect::<Vec<_>>();
            let arguments = steps.iter().rev().fold(json!("x"), |inner, step| json!({*step: inner}));
            let header = (format!("Mcp-Param-{name}"), "x".to_owned());
            prop_assert_eq!(headers.for_arguments(&to_raw_value(&arguments).unwrap()), [header]);
        }
    }

    #[test]
    fn the_headers_that_a_client_sends_pass_the_check_and_others_do_not(
        schema in schema(),
        a in argument(),
        b in argument(),
        other in argument(),
    ) {
        let Ok(headers) = ParamHeaders::from_schema(&to_raw_value(&schema).unwrap()) else {
            return Ok(());
        };
        let arguments = json!({"a": {"a": a, "b": b}, "b": a, "type": b, "x-mcp-header": other});
        let sent = headers.for_arguments(&to_raw_value(&arguments).unwrap());
        let params = to_raw_value(&json!({"arguments": arguments})).unwrap();
        let check = |sent: &[(String, String)]| {
            let find = |name: &str| sent.iter().find(|(header, _)| header == name);
            headers.check_call(Some(&params), |name| find(name).map(|(_, value)| value.as_bytes()))
        };
        prop_assert_eq!(check(&sent), Ok(()));
        for index in 0..sent.len() {
            let mut changed = sent.clone();
            changed[index].1.push('x');
            prop_assert!(check(&changed).is_err(), "{:?}", changed);
            changed.remove(index);
            prop_assert!(check(&changed).is_err(), "{:?}", changed);
        }
    }
}

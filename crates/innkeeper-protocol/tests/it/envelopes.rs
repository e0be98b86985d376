//! Properties of envelopes: write and parse round trip, and agreement with a parsed tree.

use innkeeper_protocol::envelope::{
    ErrorId, parse, write_error, write_error_with_data, write_notification, write_request,
    write_request_with_id, write_response,
};
use innkeeper_protocol::{Incoming, MalformedKind, Message, RequestId};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::json::{text, tree, written};

fn id() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        any::<i64>().prop_map(RequestId::Integer),
        text().prop_map(|text| RequestId::String(text.into())),
    ]
}

fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).expect("valid JSON")
}

/// Parses `line`, which has exactly one line with one message.
fn read(line: &[u8]) -> Incoming<'_> {
    let Some((b'\n', line)) = line.split_last() else { panic!("no newline at the end") };
    assert!(!line.iter().any(|byte| b"\r\n".contains(byte)), "a line break inside");
    match parse(line) {
        Ok(Message::Single(incoming)) => incoming,
        other => panic!("{other:?}"),
    }
}

/// Generates the members of an envelope, each present or absent, valid or invalid.
fn envelope() -> impl Strategy<Value = Value> {
    let maybe = |value| prop::option::weighted(0.7, value);
    let version = prop_oneof![4 => Just(Value::from("2.0")), 1 => tree()];
    let id = prop_oneof![2 => any::<i64>().prop_map(Value::from), 1 => tree()];
    let method = prop_oneof![2 => text().prop_map(Value::from), 1 => tree()];
    let error = prop_oneof![
        (any::<i64>(), text())
            .prop_map(|(code, message)| serde_json::json!({"code": code, "message": message})),
        tree(),
    ];
    let members = (maybe(version.boxed()), maybe(id.boxed()), prop::option::of(method));
    (members, prop::option::of(tree()), prop::option::of(tree()), prop::option::of(error)).prop_map(
        |((version, id, method), params, result, error)| {
            let all = [
                ("result", result),
                ("jsonrpc", version),
                ("method", method),
                ("other", Some(Value::from(1))),
                ("id", id),
                ("params", params),
                ("error", error),
            ];
            let present = all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
            Value::Object(present.collect::<Map<_, _>>())
        },
    )
}

/// Returns the kind of message according to a tree: response, request, notification or none.
fn message_kind(tree: &Value) -> Option<&'static str> {
    let member = |key: &str| tree.get(key).filter(|value| !value.is_null());
    let is_integer = |value: &Value| match value {
        Value::Number(number) => {
            number.as_i64().is_some()
                || number.as_u64().is_none()
                    && number.as_f64().is_some_and(|float| float.fract() == 0.0)
        }
        _ => false,
    };
    let has_id = tree.get("id").is_some_and(|id| id.is_string() || is_integer(id));
    if tree.get("jsonrpc") != Some(&Value::from("2.0")) {
        return None;
    }
    let result = tree.get("result").is_some();
    match (tree.get("method"), result, member("error")) {
        (Some(Value::String(method)), false, None) => match tree.get("id") {
            None => Some("notification"),
            Some(Value::Null) if method.starts_with("notifications/") => Some("notification"),
            Some(_) => has_id.then_some("request"),
        },
        (None, true, None) => has_id.then_some("response"),
        (None, false, Some(error)) => {
            let fine = error.get("code").is_some_and(is_integer)
                && error.get("message").is_some_and(Value::is_string);
            (fine && has_id).then_some("response")
        }
        _ => None,
    }
}

proptest! {
    /// Proves: TR5.1, TR3.2, TR3.6
    #[test]
    fn a_request_that_is_written_is_read_back(
        id in any::<u32>(), name in text(), params in tree(), pretty: bool,
    ) {
        let raw = RawValue::from_string(written(&params, pretty)).unwrap();
        let mut out = Vec::new();
        write_request(&mut out, id.into(), &name, &*raw).unwrap();
        let Incoming::Request { id: read_id, method, params: read } = read(&out) else { panic!() };
        prop_assert_eq!(read_id, RequestId::Integer(id.into()));
        prop_assert_eq!(method, name);
        prop_assert_eq!(read.map_or(Value::Null, value), params);
    }

    /// Proves: TR5.1, TR3.1
    #[test]
    fn an_answer_that_is_written_is_read_back(id in id(), result in tree(), code: i64, words in text()) {
        let mut out = Vec::new();
        write_response(&mut out, &id, &result).unwrap();
        let Incoming::Response { id: read_id, outcome: Ok(raw) } = read(&out) else { panic!() };
        prop_assert_eq!((&read_id, value(raw)), (&id, result));
        out.clear();
        write_error(&mut out, &id, code, &words).unwrap();
        let Incoming::Response { id: read_id, outcome: Err(error) } = read(&out) else { panic!() };
        prop_assert_eq!((read_id, error.code, error.message), (id, code, words));
    }

    #[test]
    fn a_request_and_error_data_of_a_server_are_read_back(
        id in id(), name in text(), code: i64, tree in tree(), pretty: bool,
    ) {
        let raw = RawValue::from_string(written(&tree, pretty)).unwrap();
        let mut out = Vec::new();
        write_request_with_id(&mut out, &id, &name, Some(&*raw)).unwrap();
        let Incoming::Request { id: read_id, method, params } = read(&out) else { panic!() };
        prop_assert_eq!((&read_id, method.as_ref()), (&id, name.as_str()));
        prop_assert_eq!(&params.map_or(Value::Null, value), &tree);
        out.clear();
        write_error_with_data(&mut out, ErrorId::Request(&id), code, &name, Some(&raw)).unwrap();
        let Incoming::Response { id: read_id, outcome: Err(error) } = read(&out) else { panic!() };
        prop_assert_eq!((read_id, error.code, error.message), (id, code, name));
        prop_assert_eq!(error.data.map_or(Value::Null, |data| value(&data)), tree);
    }

    /// Proves: TR5.1, TR3.4
    #[test]
    fn a_notification_that_is_written_is_read_back(name in text(), params in tree()) {
        let mut out = Vec::new();
        write_notification(&mut out, &name, Some(&params)).unwrap();
        let Incoming::Notification { method, params: read } = read(&out) else { panic!() };
        prop_assert_eq!(method, name);
        prop_assert_eq!(read.map_or(Value::Null, value), params);
    }

    /// Proves: TR3.1, TR3.6
    #[test]
    fn a_message_is_what_its_tree_says_it_is(tree in envelope(), pretty: bool) {
        let line = written(&tree, pretty);
        let sorted = match parse(line.as_bytes()) {
            Ok(Message::Single(Incoming::Response { outcome, .. })) => {
                if let Ok(result) = outcome {
                    prop_assert_eq!(value(result), tree["result"].clone());
                }
                Some("response")
            }
            Ok(Message::Single(Incoming::Request { method, .. })) => {
                prop_assert_eq!(&method, tree["method"].as_str().unwrap());
                Some("request")
            }
            Ok(Message::Single(Incoming::Notification { method, .. })) => {
                prop_assert_eq!(&method, tree["method"].as_str().unwrap());
                Some("notification")
            }
            Ok(Message::Batch(_)) => panic!("an object is no batch"),
            Err(malformed) => {
                prop_assert_ne!(malformed.kind, MalformedKind::NotJson);
                None
            }
        };
        prop_assert_eq!(sorted, message_kind(&tree), "{}", line);
    }
}

//! Tests of message serialization.

use serde::ser::{Error, Serialize, Serializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::parse_single;
use crate::envelope::{
    ErrorId, Incoming, code, write_error, write_error_with_data, write_notification, write_request,
    write_request_with_id, write_response,
};
use crate::id::RequestId;

fn into_text(out: Vec<u8>) -> String {
    String::from_utf8(out).unwrap()
}

#[test]
fn each_message_is_one_line() {
    let mut out = Vec::new();
    write_request(&mut out, 7, "tools/list", &json!({})).unwrap();
    write_notification(&mut out, "notifications/initialized", None::<&()>).unwrap();
    write_notification(&mut out, "notifications/x", Some(&json!({"a": 1}))).unwrap();
    write_response(&mut out, &RequestId::String("q".into()), &json!({})).unwrap();
    write_error(&mut out, &RequestId::Integer(9), code::METHOD_NOT_FOUND, "no \"x\"").unwrap();
    let expected = [
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":"q","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"no \"x\""}}"#,
    ];
    let out = into_text(out);
    assert!(out.ends_with('\n'));
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn raw_params_and_data_keep_their_text() {
    let raw = RawValue::from_string("{ \"n\": 1.50e+400,\n\"a\":1 }".to_owned()).unwrap();
    let mut out = Vec::new();
    write_notification(&mut out, "notifications/x", Some(&*raw)).unwrap();
    write_request_with_id(&mut out, &RequestId::String("a".into()), "ping", None::<&()>).unwrap();
    write_request_with_id(&mut out, &RequestId::Integer(-1), "x", Some(&*raw)).unwrap();
    let id = RequestId::Integer(2);
    write_error_with_data(&mut out, ErrorId::Request(&id), -1, "e", Some(&raw)).unwrap();
    let expected = [
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{ "n": 1.50e+400, "a":1 }}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":-1,"method":"x","params":{ "n": 1.50e+400, "a":1 }}"#,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"e","data":{ "n": 1.50e+400, "a":1 }}}"#,
    ];
    assert_eq!(into_text(out).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn an_error_may_have_no_request_id() {
    let mut out = Vec::new();
    write_error_with_data(&mut out, ErrorId::Null, code::PARSE_ERROR, "x", None).unwrap();
    write_error_with_data(&mut out, ErrorId::Absent, code::INVALID_REQUEST, "y", None).unwrap();
    let expected = [
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"y"}}"#,
    ];
    assert_eq!(into_text(out).lines().collect::<Vec<_>>(), expected);
}

/// Proves: TR3.2, TR3.6
#[test]
fn line_breaks_inside_a_message_do_not_end_its_line() {
    let pretty: Box<RawValue> =
        RawValue::from_string("{\n  \"text\": \"a\\nb\",\r\n  \"n\": [\r1\n]\n}".to_owned())
            .unwrap();
    let mut out = Vec::new();
    write_request(&mut out, 1, "x\ny", &*pretty).unwrap();
    let out = into_text(out);
    assert_eq!(out.matches(['\n', '\r']).count(), 1, "{out:?}");
    let Incoming::Request { method, params, .. } = parse_single(out.trim_end()) else {
        panic!("{out}")
    };
    assert_eq!(method, "x\ny");
    let value = |raw: &RawValue| serde_json::from_str::<serde_json::Value>(raw.get()).unwrap();
    assert_eq!(value(params.unwrap()), value(&pretty));
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    struct FailingSerialize;

    impl Serialize for FailingSerialize {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("broken"))
        }
    }

    let mut out = b"before\n".to_vec();
    assert!(write_request(&mut out, 1, "x", &("start", FailingSerialize)).is_err());
    assert!(write_notification(&mut out, "x", Some(&FailingSerialize)).is_err());
    assert!(write_response(&mut out, &RequestId::Integer(1), &FailingSerialize).is_err());
    assert_eq!(out, b"before\n");
}

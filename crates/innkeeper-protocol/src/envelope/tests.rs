//! Tests of message parsing.

mod malformed;
mod write;

use serde_json::value::RawValue;

use super::{ErrorObject, Incoming, Message, error_without_id, parse};
use crate::id::RequestId;

pub(super) fn parse_single(line: &str) -> Incoming<'_> {
    match parse(line.as_bytes()) {
        Ok(Message::Single(incoming)) => incoming,
        other => panic!("{line} is {other:?}"),
    }
}

fn parse_response_id(line: &str) -> RequestId {
    match parse_single(line) {
        Incoming::Response { id, .. } | Incoming::Request { id, .. } => id,
        Incoming::Notification { .. } => panic!("{line} is a notification"),
    }
}

/// Proves: TR3.1
#[test]
fn a_result_is_handed_on_byte_for_byte() {
    let result = r#"{"n":123456789012345678901234567890,"f":1e999,"t":"\ud83d","u":{ "x" : [ ] }}"#;
    let line = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{result},"future":true}}"#);
    let Incoming::Response { id, outcome: Ok(raw) } = parse_single(&line) else {
        panic!("no result")
    };
    assert_eq!(id, RequestId::Integer(3));
    assert_eq!(raw.get(), result);
}

/// Proves: TR3.1
#[test]
fn null_is_a_legal_result() {
    let Incoming::Response { outcome: Ok(raw), .. } =
        parse_single(r#"{"jsonrpc":"2.0","id":3,"result":null}"#)
    else {
        panic!("no result")
    };
    assert_eq!(raw.get(), "null");
}

/// Proves: TR3.1
#[test]
fn ids_are_integers_or_strings_in_any_order_of_members() {
    let text = |text: &str| RequestId::String(text.into());
    assert_eq!(parse_response_id(r#"{"result":1,"id":3,"jsonrpc":"2.0"}"#), RequestId::Integer(3));
    assert_eq!(parse_response_id(r#"{"id":"3","jsonrpc":"2.0","result":1}"#), text("3"));
    assert_eq!(
        parse_response_id(r#"{"id":3.0,"jsonrpc":"2.0","result":1}"#),
        RequestId::Integer(3)
    );
    assert_eq!(parse_response_id(r#"{"id":"ä\n","jsonrpc":"2.0","method":"ping"}"#), text("ä\n"));
    assert_eq!(
        parse_response_id(r#"{"id":-1,"jsonrpc":"2.0","method":"ping"}"#),
        RequestId::Integer(-1)
    );
}

/// Proves: TR3.1
#[test]
fn an_error_has_a_code_a_message_and_maybe_data() {
    let line =
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no","data":{"a":[1]}}}"#;
    let Incoming::Response { outcome: Err(error), .. } = parse_single(line) else {
        panic!("no error")
    };
    assert_eq!((error.code, error.message.as_str()), (-32602, "no"));
    assert_eq!(error.data.unwrap().get(), r#"{"a":[1]}"#);
}

#[test]
fn an_error_object_outside_of_a_response_is_read_in_the_same_way() {
    let read = |json: &str| ErrorObject::from_raw(&RawValue::from_string(json.to_owned()).unwrap());
    let error = read(r#"{"code":-32000,"message":"no","data":[1]}"#).unwrap();
    assert_eq!((error.code, error.message.as_str()), (-32000, "no"));
    assert_eq!(error.data.unwrap().get(), "[1]");
    assert!(read(r#"{"code":1,"message":"","data":null}"#).unwrap().data.is_none());
    for other in ["null", "{}", "[]", r#"{"code":1}"#, r#"{"code":"1","message":""}"#] {
        assert!(read(other).is_none(), "{other}");
    }
}

#[test]
fn escapes_in_names_of_an_error_object_are_read() {
    let line = r#"{"jsonrpc":"2.0","id":3,"error":{"c\u006fde":-1,"m\u0065ssage":"no"}}"#;
    let Incoming::Response { outcome: Err(error), .. } = parse_single(line) else {
        panic!("no error")
    };
    assert_eq!((error.code, error.message.as_str()), (-1, "no"));
}

#[test]
fn an_error_that_is_null_is_no_error() {
    let line = r#"{"jsonrpc":"2.0","id":3,"error":null,"result":{}}"#;
    assert!(matches!(parse_single(line), Incoming::Response { outcome: Ok(_), .. }));
}

/// Proves: TR3.4
#[test]
fn a_message_with_a_method_and_no_id_is_a_notification() {
    let line = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;
    let Incoming::Notification { method, params } = parse_single(line) else {
        panic!("no notification")
    };
    assert_eq!(method, "notifications/progress");
    assert_eq!(params.unwrap().get(), r#"{"progress":1}"#);
    let bare = r#"{"jsonrpc":"2.0","method":"notifications/x","params":null,"id":null}"#;
    assert!(matches!(parse_single(bare), Incoming::Notification { params: None, .. }));
}

#[test]
fn escapes_in_names_and_values_of_the_envelope_are_read() {
    let line = r#"{"\u006asonrpc":"2\u002e0","i\u0064":3,"method":"pin\u0067"}"#;
    let Incoming::Request { id, method, .. } = parse_single(line) else { panic!("no request") };
    assert_eq!((id, method.as_ref()), (RequestId::Integer(3), "ping"));
}

/// Proves: TR3.7
#[test]
fn half_a_character_does_not_lose_the_message() {
    let line = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"cut \ud83d"}}"#;
    let Incoming::Response { outcome: Err(error), .. } = parse_single(line) else {
        panic!("no error")
    };
    assert!(error.message.starts_with("cut \u{FFFD}"), "{}", error.message);
}

/// Proves: TR3.7
#[test]
fn half_a_character_in_the_name_of_an_unknown_member_does_not_lose_the_message() {
    let line = r#"{"jsonrpc":"2.0","\ud83d":1,"id":3,"result":{"\ude00":1}}"#;
    assert_eq!(parse_response_id(line), RequestId::Integer(3));
    let batch = format!("[{line}]");
    let Ok(Message::Batch(items)) = parse(batch.as_bytes()) else { panic!("no batch") };
    assert!(matches!(items[..], [Ok(Incoming::Response { .. })]), "{items:?}");
}

#[test]
fn each_message_of_a_batch_stands_alone() {
    let line = r#" [{"jsonrpc":"2.0","id":1,"result":{}}, {"id":2,"result":{}} ,7,
        {"jsonrpc":"2.0","method":"notifications/x"}]"#;
    let Ok(Message::Batch(items)) = parse(line.as_bytes()) else { panic!("no batch") };
    assert_eq!(items.len(), 4);
    assert!(matches!(items[0], Ok(Incoming::Response { .. })));
    assert_eq!(items[1].as_ref().unwrap_err().id, Some(RequestId::Integer(2)));
    assert_eq!(items[2].as_ref().unwrap_err().id, None);
    assert!(matches!(items[3], Ok(Incoming::Notification { .. })));
}

#[test]
fn an_error_that_names_no_request_can_still_be_read() {
    let body =
        br#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"not initialized"},"id":null}"#;
    assert_eq!(error_without_id(body).unwrap().code, -32000);
    let with_id = br#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"x"},"id":1}"#;
    assert!(error_without_id(with_id).is_none());
    assert!(error_without_id(b"<html>").is_none());
}

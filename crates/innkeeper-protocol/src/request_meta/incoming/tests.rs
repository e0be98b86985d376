//! Tests of the `_meta` of a client's request.

use serde_json::value::RawValue;

use super::{IncomingMeta, RequiredMeta};
use crate::envelope::code;
use crate::params_error::ParamsError;
use crate::request_params::RequestParams;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn read(params: &RawValue) -> Result<IncomingMeta<'_>, ParamsError> {
    IncomingMeta::from_params(&RequestParams::from_raw(Some(params))?)
}

fn error(params: &str) -> String {
    let params = raw(params);
    let error = read(&params).unwrap_err();
    assert_eq!(error.code(), code::INVALID_PARAMS);
    error.to_string()
}

const MODERN: &str = r#"{"_meta":{
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "x": {"n": 1.50},
    "io.modelcontextprotocol/clientInfo": {"name": "a", "extra": 1e999},
    "io.modelcontextprotocol/clientCapabilities": { "roots":{} },
    "traceparent": "00",
    "io.modelcontextprotocol/logLevel": "d\u0065bug", "progressToken": 12345678901234567890123
},"name":"t"}"#;

#[test]
fn the_meta_of_a_modern_request_is_read_as_it_was_sent() {
    let params = raw(MODERN);
    let meta = read(&params).unwrap();
    assert_eq!(meta.client_info, Some(r#"{"name": "a", "extra": 1e999}"#));
    assert_eq!(meta.log_level.as_deref(), Some("debug"));
    assert_eq!(meta.progress_token, Some("12345678901234567890123"));
    assert_eq!(meta.subscription_id, None);
    let expected =
        RequiredMeta { protocol_version: "2026-07-28", client_capabilities: r#"{ "roots":{} }"# };
    assert_eq!(meta.required(), Ok(expected));
}

#[test]
fn the_members_of_other_parties_are_forwarded_as_they_were_sent() {
    let params = raw(MODERN);
    let meta = read(&params).unwrap();
    let forwarded = meta.forwarded_without(|_| false).unwrap();
    let members = crate::skim::members(&forwarded).collect::<Vec<_>>();
    assert_eq!(members, [("x", r#"{"n": 1.50}"#), ("traceparent", r#""00""#)]);
    let params = raw(
        r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"s","progress\u0054oken":"\u0061"}}"#,
    );
    let meta = read(&params).unwrap();
    assert_eq!((meta.progress_token, meta.subscription_id), (Some(r#""\u0061""#), Some(r#""s""#)));
    let expected = r#"{"io.modelcontextprotocol/subscriptionId":"s"}"#;
    assert_eq!(meta.forwarded_without(|_| false).as_deref(), Some(expected));
}

#[test]
fn nothing_is_forwarded_if_no_member_remains() {
    for params in [
        "{}",
        r#"{"_meta":null}"#,
        r#"{"_meta":{}}"#,
        r#"{"_meta":{"progressToken":1,"io.modelcontextprotocol/logLevel":null}}"#,
    ] {
        let params = raw(params);
        let meta = read(&params).unwrap();
        assert_eq!(meta.forwarded_without(|_| false), None, "{params}");
    }
    assert_eq!(IncomingMeta::from_params(&RequestParams::default()), Ok(IncomingMeta::default()));
}

#[test]
fn a_request_without_revision_or_capabilities_is_not_modern() {
    let meta = |text: &str| {
        let params = raw(text);
        let meta = read(&params).unwrap();
        meta.required().unwrap_err().to_string()
    };
    assert_eq!(
        meta("{}"),
        "invalid `params`: expected a string at \
         `/_meta/io.modelcontextprotocol~1protocolVersion`, found nothing"
    );
    assert_eq!(
        meta(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}"#),
        "invalid `params`: expected an object at \
         `/_meta/io.modelcontextprotocol~1clientCapabilities`, found nothing"
    );
}

#[test]
fn a_member_of_the_wrong_type_is_an_error() {
    assert_eq!(error("[]"), "invalid `params`: expected an object, found an array");
    assert_eq!(
        error(r#"{"_meta":5}"#),
        "invalid `params`: expected an object at `/_meta`, found a number"
    );
    let prefixed = |key: &str| format!("io.modelcontextprotocol/{key}");
    let cases = [
        (prefixed("protocolVersion"), "5", "a string"),
        (prefixed("logLevel"), "{}", "a string"),
        (prefixed("clientCapabilities"), "[]", "an object"),
        (prefixed("clientInfo"), "\"{\"", "an object"),
        (prefixed("subscriptionId"), "true", "a string or a number"),
        ("progressToken".to_owned(), "[1]", "a string or a number"),
    ];
    for (key, value, expected) in cases {
        let text = error(&format!("{{\"_meta\":{{\"{key}\":{value}}}}}"));
        let pointer = key.replace('/', "~1");
        let expected = format!("expected {expected} at `/_meta/{pointer}`, found ");
        assert!(text.contains(&expected), "{text}");
    }
}

/// Attack: data | a client sends two members with the same key, also escaped and nested, so that the
/// check and the server read different values | the request is an error | Complete checks
#[test]
fn a_key_that_occurs_twice_is_an_error() {
    for params in [r#"{"name":"a","n\u0061me":"b"}"#, r#"{"_meta":{},"_meta":{}}"#] {
        assert_eq!(error(params), "two members of one object in `params` have the same key");
    }
    for meta in [
        r#"{"progressToken":1,"progressToken":1}"#,
        r#"{"x":1,"\u0078":2}"#,
        r#"{"io.modelcontextprotocol/clientCapabilities":{"roots":{},"roots":null}}"#,
    ] {
        let params = raw(&format!("{{\"_meta\":{meta}}}"));
        let error = read(&params).unwrap_err();
        assert_eq!(error, ParamsError::DuplicateKey { object: "_meta" });
    }
    let params = raw(r#"{"arguments":{"a":1,"a":2}}"#);
    assert!(read(&params).is_ok(), "the check of the tool's schema");
}

//! Tests of the check of headers against the body.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::{HeaderMismatch, check_request_headers, legacy_revision};
use crate::http::{HeaderValueError, ParamHeaders};
use crate::revision::Revision;

type Headers<'h> = &'h [(&'h str, &'h str)];

fn lookup<'h>(headers: Headers<'h>) -> impl Fn(&str) -> Option<&'h [u8]> {
    |name| {
        let header = headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_bytes())
    }
}

fn check(method: &str, params: &str, headers: Headers<'_>) -> Result<(), HeaderMismatch> {
    let params = RawValue::from_string(params.to_owned()).unwrap();
    check_request_headers(method, Some(&params), "2026-07-28", lookup(headers))
}

fn message(result: Result<(), HeaderMismatch>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code(), -32020);
    error.to_string()
}

const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
const CALL: (&str, &str) = ("mcp-method", "tools/call");

#[test]
fn headers_that_repeat_the_body_are_accepted() {
    let read = ("Mcp-Method", "resources/read");
    let cases: [(&str, &str, Headers<'_>); 5] = [
        ("tools/list", "{}", &[VERSION, ("Mcp-Method", "tools/list")]),
        ("tools/call", r#"{"name":"a b"}"#, &[VERSION, CALL, ("Mcp-Name", "a b")]),
        (
            "tools/call",
            r#"{"n\u0061me":"\u00e9"}"#,
            &[VERSION, CALL, ("Mcp-Name", "=?base64?w6k=?=")],
        ),
        ("tools/call", r#"{"name":""}"#, &[VERSION, CALL, ("Mcp-Name", "")]),
        ("resources/read", r#"{"uri":"a:b","name":"c"}"#, &[VERSION, read, ("MCP-NAME", "a:b")]),
    ];
    for (method, params, headers) in cases {
        assert_eq!(check(method, params, headers), Ok(()), "{params}");
    }
    let list = ("Mcp-Method", "tools/list");
    assert!(check_request_headers("tools/list", None, "x", lookup(&[VERSION, list])).is_err());
    assert_eq!(
        check_request_headers("tools/list", None, "2026-07-28", lookup(&[VERSION, list])),
        Ok(())
    );
}

#[test]
fn a_standard_header_that_is_missing_or_differs_is_an_error_with_both_values() {
    let params = r#"{"name":"bar"}"#;
    let name = ("Mcp-Name", "bar");
    let cases: [(Headers<'_>, &str); 7] = [
        (
            &[CALL, name],
            "header `MCP-Protocol-Version` is missing; the value of the body is `2026-07-28`",
        ),
        (&[VERSION, name], "header `Mcp-Method` is missing; the value of the body is `tools/call`"),
        (&[VERSION, CALL], "header `Mcp-Name` is missing; the value of the body is `bar`"),
        (
            &[("mcp-protocol-version", "2025-11-25"), CALL, name],
            "the value of header `MCP-Protocol-Version` is `2025-11-25`; the value of the body is `2026-07-28`",
        ),
        (
            &[VERSION, ("mcp-method", "Tools/Call"), name],
            "the value of header `Mcp-Method` is `Tools/Call`; the value of the body is `tools/call`",
        ),
        (
            &[VERSION, CALL, ("Mcp-Name", "foo")],
            "the value of header `Mcp-Name` is `foo`; the value of the body is `bar`",
        ),
        (
            &[VERSION, CALL, ("Mcp-Name", "=?base64?Zm9v?=")],
            "the value of header `Mcp-Name` is `foo`; the value of the body is `bar`",
        ),
    ];
    for (headers, expected) in cases {
        assert_eq!(
            message(check("tools/call", params, headers)),
            format!("header mismatch: {expected}")
        );
    }
}

#[test]
fn a_name_that_the_body_does_not_have_once_is_an_error() {
    let named = [VERSION, CALL, ("Mcp-Name", "foo")];
    for params in ["{}", r#"{"name":5}"#, r#"{"name":null}"#, "[]"] {
        let error = check("tools/call", params, &named).unwrap_err();
        assert!(matches!(error, HeaderMismatch::Unexpected { .. }), "{params}: {error}");
        let error = check("tools/call", params, &[VERSION, CALL]).unwrap_err();
        assert!(matches!(error, HeaderMismatch::Missing { .. }), "{params}: {error}");
    }
    let error = check("tools/call", r#"{"name":"foo","n\u0061me":"bar"}"#, &named).unwrap_err();
    assert_eq!(error, HeaderMismatch::Ambiguous { header: "Mcp-Name".to_owned() });
    let replacement = [VERSION, CALL, ("Mcp-Name", "=?base64?77+9?=")];
    assert_eq!(check("tools/call", "{\"name\":\"\u{FFFD}\"}", &replacement), Ok(()));
    for header in ["=?base64?77+9?=", r#""\ud800""#] {
        let headers = [VERSION, CALL, ("Mcp-Name", header)];
        assert!(check("tools/call", r#"{"name":"\ud800"}"#, &headers).is_err(), "{header}");
    }
}

/// Attack: terminal | a client sends names with escape codes in a header and in the body | the error
/// is short and contains no escape code | Foreign text stays text
#[test]
fn what_an_error_quotes_is_escaped_and_short() {
    let name = format!("{{\"name\":\"{}\"}}", "\\u001b[2J".repeat(500));
    let text = message(check("tools/call", &name, &[VERSION, CALL, ("Mcp-Name", "\u{1b}[0m")]));
    assert!(text.contains("`\\u{1b}[0m`"), "{text}");
    let text = message(check("tools/call", &name, &[VERSION, CALL, ("Mcp-Name", "x")]));
    assert!(text.len() < 300 && !text.contains('\u{1b}'), "{text}");
}

fn check_call(arguments: &Value, headers: Headers<'_>) -> Result<(), HeaderMismatch> {
    let schema = to_raw_value(&json!({"properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "options": {"properties": {"limit": {"type": "integer", "x-mcp-header": "Limit"}}},
        "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
    }}));
    let params = to_raw_value(&json!({"name": "t", "arguments": arguments})).unwrap();
    let param_headers = ParamHeaders::from_schema(&schema.unwrap()).unwrap();
    param_headers.check_call(Some(&params), lookup(headers))
}

#[test]
fn headers_that_repeat_the_arguments_are_accepted() {
    let all = json!({"region": "é", "options": {"limit": 42}, "verbose": true});
    let headers = |limit| {
        [
            ("mcp-param-region", "=?base64?w6k=?="),
            ("mcp-param-limit", limit),
            ("mcp-param-verbose", "true"),
        ]
    };
    for limit in ["42", "42.0", "4.2e1", "=?base64?NDI=?="] {
        assert_eq!(check_call(&all, &headers(limit)), Ok(()), "{limit}");
    }
    for limit in ["43", "042", "+42", "", "42x", "inf", "0x2a"] {
        assert!(check_call(&all, &headers(limit)).is_err(), "{limit}");
    }
    assert_eq!(
        check_call(&json!({"options": {"limit": 42.0}}), &[("Mcp-Param-Limit", "42")]),
        Ok(())
    );
    assert_eq!(check_call(&json!({"options": {"limit": 0}}), &[("Mcp-Param-Limit", "-0")]), Ok(()));
    assert!(check_call(&json!({"region": "42"}), &[("Mcp-Param-Region", "42.0")]).is_err());
    let huge = "123456789012345678901234567890";
    let params = format!(r#"{{"arguments":{{"region":null,"options":{{"limit":{huge}}}}}}}"#);
    let params = RawValue::from_string(params).unwrap();
    let schema = r#"{"properties":{"options":{"properties":{"limit":{"type":"integer","x-mcp-header":"L"}}}}}"#;
    let schema = RawValue::from_string(schema.to_owned()).unwrap();
    let headers = ParamHeaders::from_schema(&schema).unwrap();
    assert_eq!(headers.check_call(Some(&params), lookup(&[("Mcp-Param-L", huge)])), Ok(()));
    let other = "123456789012345678901234567891";
    assert!(headers.check_call(Some(&params), lookup(&[("Mcp-Param-L", other)])).is_err());
}

#[test]
fn an_argument_without_a_value_has_no_header() {
    for arguments in [json!({}), json!(null), json!({"region": null}), json!({"region": {"a": 1}})]
    {
        assert_eq!(check_call(&arguments, &[]), Ok(()), "{arguments}");
        let error = check_call(&arguments, &[("Mcp-Param-Region", "eu")]).unwrap_err();
        assert!(matches!(error, HeaderMismatch::Unexpected { .. }), "{arguments}: {error}");
    }
    let other = [("Mcp-Param-Unknown", "\u{e9}")];
    assert_eq!(check_call(&json!({}), &other), Ok(()), "a header of no argument is ignored");
}

#[test]
fn a_header_that_differs_from_its_argument_is_an_error() {
    assert_eq!(
        message(check_call(&json!({"region": "us"}), &[("Mcp-Param-Region", "eu")])),
        "header mismatch: the value of header `Mcp-Param-Region` is `eu`; the value of the body is `us`"
    );
    assert_eq!(
        message(check_call(&json!({"verbose": false}), &[])),
        "header mismatch: header `Mcp-Param-Verbose` is missing; the value of the body is `false`"
    );
    let error = check_call(&json!({"region": "é"}), &[("Mcp-Param-Region", "é")]).unwrap_err();
    let HeaderMismatch::Invalid { source, .. } = error else { panic!("{error}") };
    assert_eq!(source, HeaderValueError::InvalidCharacter);
    let params = r#"{"arguments":{"region":"eu","region":"us"}}"#;
    let params = RawValue::from_string(params.to_owned()).unwrap();
    let schema = r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
    let schema = RawValue::from_string(schema.to_owned()).unwrap();
    let headers = ParamHeaders::from_schema(&schema).unwrap();
    let error = headers.check_call(Some(&params), lookup(&[("Mcp-Param-Region", "us")]));
    assert_eq!(error, Err(HeaderMismatch::Ambiguous { header: "Mcp-Param-Region".to_owned() }));
}

#[test]
fn the_revision_of_a_legacy_request_is_its_header_or_that_of_the_session() {
    let session = Some(Revision::V2025_11_25);
    assert_eq!(legacy_revision(Some(b"2025-06-18"), session), Ok(Revision::V2025_06_18));
    assert_eq!(legacy_revision(None, session), Ok(Revision::V2025_11_25));
    assert_eq!(legacy_revision(None, None), Ok(Revision::V2025_03_26));
    for value in ["2026-07-28", "1900-01-01", "", "2025-06-18 "] {
        let error = legacy_revision(Some(value.as_bytes()), session).unwrap_err();
        assert_eq!(error.to_string(), format!("unsupported `MCP-Protocol-Version`: `{value}`"));
    }
    assert_eq!(legacy_revision(Some(b"\xFF\n"), None).unwrap_err().value, "\u{FFFD}\\n");
}

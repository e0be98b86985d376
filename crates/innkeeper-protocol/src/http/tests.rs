//! Tests of header values and of repeated arguments.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::{
    HeaderValueError, MAX_PARAM_HEADERS, MAX_PARAM_NAME_BYTES, ParamHeaderError, ParamHeaders,
    decode_value, encode_value, name_member,
};

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

fn parse_properties(properties: &Value) -> Result<ParamHeaders, ParamHeaderError> {
    ParamHeaders::from_schema(&raw(&json!({"type": "object", "properties": properties})))
}

fn schema_error(schema: &Value) -> String {
    ParamHeaders::from_schema(&raw(schema)).unwrap_err().to_string()
}

#[test]
fn a_method_is_about_a_name_a_uri_or_a_task() {
    assert_eq!(name_member("tools/call"), Some("name"));
    assert_eq!(name_member("prompts/get"), Some("name"));
    assert_eq!(name_member("resources/read"), Some("uri"));
    assert_eq!(name_member("tasks/get"), Some("taskId"));
    assert_eq!(name_member("tasks/update"), Some("taskId"));
    assert_eq!(name_member("tasks/cancel"), Some("taskId"));
    assert_eq!(name_member("tools/list"), None);
}

#[test]
fn a_value_that_is_printable_stays_as_it_is() {
    for value in ["us-west1", "", "us west 1", "a~!\"", "file:///a?b#c", "=?base64?x", "?="] {
        assert_eq!(encode_value(value), value);
    }
}

/// Attack: remote | an argument that becomes a header contains line breaks, control characters or
/// the prefix of an encoded value | the header contains Base64 | Foreign text stays text
#[test]
fn a_value_that_no_header_can_carry_is_base64() {
    let cases = [
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        (" a", "=?base64?IGE=?="),
        ("a ", "=?base64?YSA=?="),
        ("a\tb", "=?base64?YQli?="),
        ("\0", "=?base64?AA==?="),
        ("\u{7F}", "=?base64?fw==?="),
    ];
    for (value, encoded) in cases {
        assert_eq!(encode_value(value), encoded, "{value:?}");
    }
}

#[test]
fn a_header_value_is_decoded_strictly() {
    let cases = [
        ("us west", "us west"),
        ("", ""),
        ("a\tb", "a\tb"),
        ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
        ("=?base64?YQ==?=", "a"),
        ("=?base64??=", ""),
        ("=?base64?=", "=?base64?="),
        ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
    ];
    for (value, decoded) in cases {
        assert_eq!(decode_value(value.as_bytes()).as_deref(), Ok(decoded), "{value}");
    }
    for value in ["é", " a", "a ", "a\t", "a\nb", "\0", "\u{7f}"] {
        let error = decode_value(value.as_bytes());
        assert_eq!(error, Err(HeaderValueError::InvalidCharacter), "{value:?}");
    }
    // No padding, bits after the last character, another alphabet, white space.
    for encoded in ["YQ", "YR==", "-_8=", "YQ= =", "Y"] {
        let value = format!("=?base64?{encoded}?=");
        assert_eq!(
            decode_value(value.as_bytes()),
            Err(HeaderValueError::InvalidBase64),
            "{encoded}"
        );
    }
    assert_eq!(decode_value(b"=?base64?/w==?="), Err(HeaderValueError::NotUtf8));
}

#[test]
fn annotated_arguments_are_headers_of_a_call() {
    let headers = parse_properties(&json!({
        "region": {"type": "string", "x-mcp-header": "Region"},
        "priority": {"x-mcp-header": "Priority", "type": "integer"},
        "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
        "options": {"type": "object", "properties": {
            "deep": {"properties": {"limit": {"type": "integer", "x-mcp-header": "Limit"}}},
        }},
        "query": {"type": "string"},
        "x-mcp-header": {"type": "string"},
    }))
    .unwrap();
    assert!(!headers.is_empty());
    let header_lines = |arguments: Value| {
        let headers = headers.for_arguments(&raw(&arguments)).into_iter();
        headers.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
    };
    let all = header_lines(json!({
        "region": " é", "priority": -7, "verbose": false, "query": "q", "x-mcp-header": "no",
        "options": {"deep": {"limit": 9_007_199_254_740_991_i64}},
    }));
    let expected = [
        "Mcp-Param-Region: =?base64?IMOp?=",
        "Mcp-Param-Priority: -7",
        "Mcp-Param-Verbose: false",
        "Mcp-Param-Limit: 9007199254740991",
    ];
    assert_eq!(all, expected);
    assert_eq!(
        header_lines(json!({"region": "", "verbose": null, "options": null})),
        ["Mcp-Param-Region: "]
    );
    assert_eq!(
        header_lines(json!({"region": {}, "priority": [1], "options": {"deep": 5}})),
        [""; 0]
    );
    assert_eq!(header_lines(json!({"priority": 42.0})), ["Mcp-Param-Priority: 42"]);
    assert_eq!(header_lines(json!({"priority": 1.5})), ["Mcp-Param-Priority: 1.5"]);
    assert_eq!(
        header_lines(json!({"priority": u64::MAX})),
        ["Mcp-Param-Priority: 18446744073709551615"]
    );
    assert_eq!(header_lines(json!(null)), [""; 0]);
    let digits = r#"{"priority": 123456789012345678901234567890, "regi\u006fn": "a\u0062"}"#;
    let digits = RawValue::from_string(digits.to_owned()).unwrap();
    let expected =
        [("Mcp-Param-Region", "ab"), ("Mcp-Param-Priority", "123456789012345678901234567890")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(headers.for_arguments(&digits), expected);
}

#[test]
fn a_schema_without_annotations_repeats_nothing() {
    let schemas = [
        json!({}),
        json!(true),
        json!({"properties": 5, "items": "x", "allOf": {}}),
        json!({"properties": {"a": {"type": "string"}, "b": true}}),
        json!({"default": {"x-mcp-header": "A"}, "const": [{"x-mcp-header": "B"}]}),
        json!({"properties": {"a": {"enum": [{"x-mcp-header": "A"}], "x-vendor": {"x-mcp-header": 1}}}}),
    ];
    for schema in schemas {
        assert_eq!(
            ParamHeaders::from_schema(&raw(&schema)),
            Ok(ParamHeaders::default()),
            "{schema}"
        );
    }
}

#[test]
fn an_annotation_is_found_however_its_key_is_escaped() {
    let schema =
        r#"{"prop\u0065rties":{"a\"b":{"\u0078-mcp-header":"\u0041","type":"str\u0069ng"}}}"#;
    let headers =
        ParamHeaders::from_schema(&RawValue::from_string(schema.to_owned()).unwrap()).unwrap();
    assert_eq!(
        headers.for_arguments(&raw(&json!({"a\"b": "x"}))),
        [("Mcp-Param-A".to_owned(), "x".to_owned())]
    );
}

#[test]
fn an_annotation_must_name_a_header() {
    for name in ["", "My Region", "Region:Primary", "Région", "Reg\tion", "a\nb", "a(b)", "a/b"] {
        let error =
            parse_properties(&json!({"a": {"type": "string", "x-mcp-header": name}})).unwrap_err();
        assert!(matches!(error, ParamHeaderError::InvalidName { .. }), "{name}: {error}");
    }
    for name in [json!(null), json!(5), json!(["Region"]), json!({})] {
        let error =
            parse_properties(&json!({"a": {"type": "string", "x-mcp-header": name}})).unwrap_err();
        assert_eq!(error, ParamHeaderError::NotString { property: "a".to_owned() });
    }
    assert!(
        parse_properties(
            &json!({"a": {"type": "string", "x-mcp-header": "!#$%&'*+-.^_`|~09azAZ"}})
        )
        .is_ok()
    );
}

#[test]
fn only_strings_integers_and_booleans_can_be_annotated() {
    let types = [
        json!("number"),
        json!("object"),
        json!("array"),
        json!("null"),
        json!(["string", "null"]),
        json!("String"),
        json!(5),
    ];
    for type_ in types {
        let error =
            parse_properties(&json!({"a": {"type": type_, "x-mcp-header": "A"}})).unwrap_err();
        assert!(matches!(error, ParamHeaderError::NotPrimitive { .. }), "{type_}: {error}");
    }
    let error = parse_properties(&json!({"a": {"x-mcp-header": "A"}})).unwrap_err();
    assert!(error.to_string().ends_with("the type of argument `a` is nothing"), "{error}");
}

#[test]
fn names_are_unique_whatever_their_case() {
    let error = parse_properties(&json!({
        "a": {"type": "string", "x-mcp-header": "MyField"},
        "b": {"properties": {"c": {"type": "string", "x-mcp-header": "myfield"}}},
    }))
    .unwrap_err();
    let expected =
        ParamHeaderError::Duplicate { property: "b.c".to_owned(), name: "myfield".to_owned() };
    assert_eq!(error, expected);
}

#[test]
fn an_annotation_anywhere_but_on_a_property_is_refused() {
    let annotated = json!({"type": "string", "x-mcp-header": "A"});
    let object = json!({"properties": {"a": annotated}});
    let schemas = [
        annotated.clone(),
        json!({"properties": {"l": {"type": "array", "items": annotated}}}),
        json!({"properties": {"l": {"prefixItems": [true, annotated]}}}),
        json!({"oneOf": [{}, object]}),
        json!({"allOf": [object]}),
        json!({"anyOf": [object]}),
        json!({"not": object}),
        json!({"if": {}, "then": object, "else": true}),
        json!({"$defs": {"x": annotated}}),
        json!({"definitions": {"x": object}}),
        json!({"patternProperties": {"^a": annotated}}),
        json!({"additionalProperties": annotated}),
        json!({"dependentSchemas": {"a": object}}),
    ];
    for schema in schemas {
        let error = schema_error(&schema);
        assert!(
            error.contains("`x-mcp-header` \"A\" is not reachable through `properties`"),
            "{schema}: {error}"
        );
    }
}

#[test]
fn annotations_at_the_limits_are_kept_and_one_past_them_are_not() {
    let header_count = |count: usize| {
        let names = (0..count).map(|at| format!("p{at}"));
        let schema = |name: String| {
            let schema = json!({"type": "string", "x-mcp-header": name});
            (name, schema)
        };
        let headers = parse_properties(&Value::Object(names.clone().map(schema).collect()))?;
        let arguments = Value::Object(names.map(|name| (name, json!(""))).collect());
        Ok(headers.for_arguments(&raw(&arguments)).len())
    };
    assert_eq!(header_count(MAX_PARAM_HEADERS), Ok(MAX_PARAM_HEADERS));
    assert_eq!(header_count(MAX_PARAM_HEADERS + 1), Err(ParamHeaderError::TooMany));
    let with_name_len = |length| {
        parse_properties(&json!({"a": {"type": "string", "x-mcp-header": "x".repeat(length)}}))
    };
    assert!(with_name_len(MAX_PARAM_NAME_BYTES).is_ok());
    assert!(with_name_len(MAX_PARAM_NAME_BYTES + 1).is_err());
}

/// Attack: data | a schema with header annotations nests 100,000 levels | the schema is rejected
/// without recursion | No unbounded memory
#[test]
fn a_schema_as_deep_as_a_message_may_be_is_read_and_a_deeper_one_is_refused() {
    use crate::envelope::MAX_MESSAGE_DEPTH;
    let nested = |levels: usize| {
        let schema = format!("{}true{}", r#"{"not":"#.repeat(levels), "}".repeat(levels));
        ParamHeaders::from_schema(&RawValue::from_string(schema).unwrap())
    };
    assert_eq!(nested(MAX_MESSAGE_DEPTH), Ok(ParamHeaders::default()));
    assert_eq!(nested(MAX_MESSAGE_DEPTH + 1), Err(ParamHeaderError::TooDeep));
    assert_eq!(nested(100_000), Err(ParamHeaderError::TooDeep));
}

/// Attack: terminal | a schema names properties with escape codes, 500 times | the error is short
/// and contains no escape code | Foreign text stays text
#[test]
fn what_an_error_quotes_is_safe_to_show() {
    let odd = "\u{1b}[2J".repeat(500);
    let error = schema_error(&json!({"properties": {&odd: {"type": &odd, "x-mcp-header": "A"}}}));
    assert!(error.len() < 400 && !error.contains('\u{1b}'), "{error}");
}
